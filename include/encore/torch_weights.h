// SPDX-License-Identifier: Apache-2.0
//
// An encoder's weights and configuration out of a safetensors file with PyTorch's own names.
//
// Names, as in the state_dict() of torch.nn.TransformerEncoderLayer and
// torch.nn.TransformerEncoder:
//   self_attn.in_proj_weight   self_attn.out_proj.weight   linear1.weight   norm1.weight
//   self_attn.in_proj_bias     self_attn.out_proj.bias     linear1.bias     norm1.bias
// and linear2 and norm2 alike.
// A stack has them after "layers.0.", "layers.1." and so on, a single layer may do without. ff.0
// stands for linear1 and ff.2 for linear2 as well. Matrices may be int8 with scales of their rows,
// whose names have _scale at the end (linear1.weight_scale, self_attn.in_proj_weight_scale);
// self_attn.in_proj_input_scale, self_attn.out_proj.input_scale, linear1.input_scale and
// linear2.input_scale are those of inputs (EncoderLayerWeights). norm.weight and norm.bias are the
// final norm, if there is one. The layers' biases are all there or, as with bias=False, all absent.
//
// Configuration, as strings under the file's "__metadata__" with the names of PyTorch's arguments:
//   nhead           the number of heads; required, because no shape shows it
//   activation      relu, gelu, gelu_tanh, silu, quick_gelu, or transformers' name of one of them
//                   (gelu_pytorch_tanh, gelu_new, swish ...); required likewise
//   norm_first      True, true, 1, False, false or 0; False if absent
//   layer_norm_eps  a decimal number of at least 0, such as 1e-05; 1e-5 if absent
//   encore_precision  bf16 or int8: what the file was made for (`encore convert`); f32 if absent
// d_model, dim_feedforward, num_layers and bias are optional and must agree with the tensors.
// batch_first, dropout and format are optional and change nothing in evaluation mode.
// Any other key is an error: encore does not guess what it would change.

#ifndef ENCORE_TORCH_WEIGHTS_H_
#define ENCORE_TORCH_WEIGHTS_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "encore/encoder.h"
#include "encore/export.h"
#include "encore/safetensors.h"
#include "encore/status.h"

namespace encore::inline v0_1 {

// What the caller knows better than the file; each takes the place of the metadata key beside it,
// which then is not read.
struct TorchOverrides {
  std::optional<size_t> num_heads = {};              // nhead
  std::optional<Activation> activation = {};         // activation
  std::optional<NormPlacement> norm_placement = {};  // norm_first
  std::optional<double> epsilon = {};                // layer_norm_eps
};

// The weights, complete and of consistent shapes, where they lie in the file: F32, F64, F16, BF16,
// or I8 for matrices. Immutable; copies share the file.
class ENCORE_API TorchWeights {
 public:
  // To move is to copy: what was moved from stays as it is.
  TorchWeights(const TorchWeights&) = default;
  TorchWeights& operator=(const TorchWeights&) = default;

  // The errors of SafetensorsFile::Open and of FromFile.
  static Result<TorchWeights> Open(const std::string& path, const TorchOverrides& overrides = {});

  // kInvalidArgument names the file, the tensor or metadata key, what was found and what was
  // wanted: a tensor that is missing, misshapen, of another type, or has no place in an encoder; a
  // gap in the layers' numbers; metadata that is unknown, malformed or at odds with the tensors.
  // kOutOfMemory.
  static Result<TorchWeights> FromFile(const SafetensorsFile& file,
                                       const TorchOverrides& overrides = {});

  const EncoderConfig& config() const&;
  const EncoderConfig& config() const&& = delete;
  // Views that are valid as long as this object or a copy of it.
  const EncoderWeights& weights() const&;
  const EncoderWeights& weights() const&& = delete;
  // For EncoderOptions: what the file was made for, and with kInt8 those of its matrices that are
  // not int8.
  Precision precision() const;
  const std::vector<MatrixOfLayer>& keep() const&;
  const std::vector<MatrixOfLayer>& keep() const&& = delete;

 private:
  struct Impl;
  explicit TorchWeights(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<const Impl> impl_;
};

}  // namespace encore

#endif  // ENCORE_TORCH_WEIGHTS_H_
