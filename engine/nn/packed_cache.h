// SPDX-License-Identifier: Apache-2.0
//
// The panels of an encoder's matrices, in memory or in a mapped file (EncoderOptions::cache).
//
// The file, little-endian:
//   description  text: the format, encore's version, of each matrix its kernel and sizes; filled up
//                with line ends to a multiple of 64
//   identity     u64: a checksum of PackedCache::identity, 0 if that is empty
//   of panels    u64: the checksum of the checksums of each MiB of them
//   of the head  u64: the checksum of all before the panels but itself
//   vectors      f32: of each matrix its input scales, then its columns' scales and sums (int8)
//   panels       at the next multiple of 4096; each matrix's at a multiple of 64, zeros between
// All sizes follow from the encoder; none is read from a file. Every byte is compared or in a
// checksum.

#ifndef ENCORE_ENGINE_NN_PACKED_CACHE_H_
#define ENCORE_ENGINE_NN_PACKED_CACHE_H_

#include <cstddef>
#include <functional>
#include <optional>
#include <string>

#include "encore/encoder.h"
#include "encore/status.h"
#include "engine/base/aligned_buffer.h"
#include "engine/nn/prepared_encoder.h"
#include "engine/platform/mapped_file.h"

namespace encore::inline v0_1::internal {

struct PackedPanels {
  // kIo if a mapped file was changed since it was opened. Of a file that was touched the bytes
  // count.
  Status CheckUnchanged(const Executor& executor) const;

  AlignedBuffer<std::byte> own;
  std::optional<MappedFile> file;  // in place of `own`
  std::string path;                // of the file
  // Whether the file has those it was opened with.
  std::function<Result<bool>(const Executor&)> same_bytes;
  size_t bytes = 0;       // of the panels
  std::string cache_use;  // see Encoder::cache_use
};

// Gives all matrices their panels: from the cache, or packed and then written to the cache. The
// errors of PreparedEncoder::Pack; a cache's failure is no error.
Result<PackedPanels> PackOrMap(const EncoderOptions& options, PreparedEncoder* prepared);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_NN_PACKED_CACHE_H_
