// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a file of torch.save: an error with a sentence, or tensors of the sizes that it
// says. The input is a pickle, a divider and the bytes of storages "0" and "1", so that a zip need
// not be guessed; without a divider it is the whole file.

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/io/torch_file.h"
#include "engine/io/torch_pickle.h"
#include "tests/fuzz/target.h"
#include "tests/support/torch_zip.h"

namespace encore::fuzz {

void RunTorchFile(std::string_view input) {
  const std::vector<std::string_view> parts = Parts(input, 3);
  const std::string file = parts[1].data() == nullptr
                               ? std::string(input)
                               : StoredZip({{"data.pkl", std::string(parts[0])},
                                            {"data/0", std::string(parts[1])},
                                            {"data/1", std::string(parts[2])}});
  const std::vector<char> exact(file.begin(), file.end());  // a sanitizer sees one byte too many
  const auto tensors = internal::ReadTorchFile(std::as_bytes(std::span(exact)));
  if (!tensors.ok()) return CheckError(tensors.status());
  ENCORE_FUZZ_CHECK(tensors->size() <= internal::kMaxPickledTensors);
  for (const auto& [name, tensor] : *tensors) {
    ENCORE_FUZZ_CHECK(tensor.dtype() == DType::kF32);
    ENCORE_FUZZ_CHECK(tensor.shape().rank() <= internal::kMaxPickledRank);
    // Elements lie in the file, in 2 bytes at least.
    ENCORE_FUZZ_CHECK(tensor.size_bytes() <= 2 * exact.size());
  }
}

}  // namespace encore::fuzz
