// SPDX-License-Identifier: Apache-2.0
//
// What a call of so many tokens needs, and making it ready before the first one.

#ifndef ENCORE_ENGINE_TEXT_PREPARE_H_
#define ENCORE_ENGINE_TEXT_PREPARE_H_

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "encore/executor.h"
#include "encore/status.h"
#include "engine/text/text_encoder_impl.h"

namespace encore::inline v0_1::internal {

// As TextEncoder's.
size_t WorkspaceBytes(const TextEncoder::Impl& impl, size_t tokens, int threads);
ModelMemory MemoryOf(const TextEncoder::Impl& impl);

// TextEncoder::Prepare. `compute` is given texts for the calls that a user makes, in that scratch.
Status PrepareModel(const TextEncoder::Impl& impl, size_t max_tokens, const Executor& executor,
                    Scratch* scratch,
                    const std::function<Status(const std::vector<std::string>& texts)>& compute);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_TEXT_PREPARE_H_
