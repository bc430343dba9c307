// SPDX-License-Identifier: Apache-2.0
//
// Runs a case that is an encoder block.

#include "tools/encore/attend_case.h"

#include "encore/encoder.h"
#include "engine/nn/layer_sizes.h"
#include "tests/reference/torch_stack.h"
#include "tools/encore/failure.h"
#include "tools/encore/seeded_block.h"

namespace encore::tool {
namespace {

using Json = nlohmann::json;

// The reference in double precision takes its time: about 10^8 multiplications a second.
constexpr double kMostMultiplications = 1e9;

EncoderConfig ConfigFromCase(const Json& spec) {
  TorchStack config;
  config.d_model = SizeFromCase(spec, "d_model");
  config.num_heads = SizeFromCase(spec, "nhead");
  config.d_ff = SizeFromCase(spec, "dim_feedforward");
  if (spec.contains("activation")) {
    if (!spec["activation"].is_string()) throw Failure(CaseLabel(spec) + ": activation is no name");
    config.activation =
        Take(ActivationFromName(spec["activation"].get<std::string>()), CaseLabel(spec));
  }
  return config;
}

Shape InputShape(const Json& spec, const EncoderConfig& config) {
  const std::vector<size_t> extents = ExtentsFromCase(spec, "input_shape");
  if (extents.size() != 3 || extents[2] != config.d_model || extents[0] == 0 || extents[1] == 0) {
    throw Failure(CaseLabel(spec) + ": input_shape is no [B, S, " + std::to_string(config.d_model) +
                  "] with at least one token");
  }
  const double flops = internal::LayerFlops(config.d_model, config.layers[0], extents[1]);
  if (!(static_cast<double>(extents[0]) * flops / 2 <= kMostMultiplications)) {
    throw Failure(CaseLabel(spec) + " is too large to be checked against the reference");
  }
  return Shape(extents[0], extents[1], extents[2]);
}

// "self_attn.in_proj_weight [3*64,64]", as the case's torch_names have it; without blanks inside
// the brackets, a leading factor 3 as it stands there.
std::string NameAndShape(const NamedWeight& weight, size_t d_model) {
  const Shape& shape = weight.tensor.shape();
  std::string text = weight.name + " [";
  for (size_t i = 0; i < shape.rank(); ++i) {
    const bool stacked = i == 0 && weight.name.find("in_proj") != std::string::npos;
    text +=
        (i > 0 ? "," : "") + (stacked ? "3*" + std::to_string(d_model) : std::to_string(shape[i]));
  }
  return text + "]";
}

CaseCheck CompareNames(const Json& spec, const SeededBlock& block) {
  std::vector<std::string> found;
  for (const NamedWeight& weight : block.weights) {
    found.push_back(NameAndShape(weight, block.config.d_model));
  }
  const Json wanted = found;
  return {"names and shapes of weights", std::to_string(found.size()) + " of them",
          spec["torch_names"] == wanted};
}

}  // namespace

BlockCaseResult RunBlockCase(const Json& spec, uint32_t seed) {
  const EncoderConfig config = ConfigFromCase(spec);
  const Shape shape = InputShape(spec, config);
  NumpyRandom random(seed);
  const SeededBlock block = DrawBlock(config, random);
  const Tensor x = DrawInput(shape, random);
  const Encoder encoder = Take(Encoder::Create(config, block.views), CaseLabel(spec));
  const BlockRun run = RunBlock(encoder, x, Executor::OpenMP());
  const BlockCheck check = CheckBlock(block, x, run);

  BlockCaseResult result;
  result.title = CaseLabel(spec) + ": an encoder block with drawn weights, seed " +
                 std::to_string(seed) + ", x " + shape.ToString();
  if (spec.contains("output_shape")) {
    const std::vector<size_t> wanted = ExtentsFromCase(spec, "output_shape");
    const Shape& found = run.y.shape();
    const bool same = wanted == std::vector<size_t>{found[0], found[1], found[2]};
    result.checks.push_back({"shape of y", "found " + found.ToString(), same});
  }
  if (spec.contains("torch_names")) result.checks.push_back(CompareNames(spec, block));
  result.checks.push_back(
      {"y against the double-precision reference", Describe(check.y), check.y.ok()});
  result.checks.push_back(
      {"attention weights against the reference", Describe(check.attention), check.attention.ok()});
  return result;
}

}  // namespace encore::tool
