// SPDX-License-Identifier: Apache-2.0
//
// A checksum of many bytes, by several threads.

#ifndef ENCORE_ENGINE_PLATFORM_CHECKSUM_IN_PIECES_H_
#define ENCORE_ENGINE_PLATFORM_CHECKSUM_IN_PIECES_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "encore/executor.h"
#include "encore/status.h"

namespace encore::inline v0_1::internal {

// ChecksumOf the checksums of pieces of 1 MiB, in their order. The same with any executor, by which
// it may be stopped. Throws std::bad_alloc.
Result<uint64_t> ChecksumInPieces(const Executor& executor, std::span<const std::byte> bytes);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_PLATFORM_CHECKSUM_IN_PIECES_H_
