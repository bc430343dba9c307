// SPDX-License-Identifier: Apache-2.0
//
// Compares a computed example with what its case expects, and runs and checks a case that is an
// encoder block. Reading cases is in attend_case.cc.

#include "encore/encoder.h"
#include "engine/nn/layer_sizes.h"
#include "tools/encore/attend_case.h"
#include "tools/encore/definitions.h"
#include "tools/encore/failure.h"
#include "tools/encore/seeded_block.h"
#include "tools/encore/text.h"

namespace encore::tool {
namespace {

using CaseJson = nlohmann::json;

// The tensor a case calls by this name; null if the example has none.
const Tensor* Find(const AttentionExample& example, const std::string& name) {
  const Tensor* found = name == "X"         ? &example.x
                        : name == "Q"       ? &example.q
                        : name == "K"       ? &example.k
                        : name == "V"       ? &example.v
                        : name == "scores"  ? &example.scores
                        : name == "weights" ? &example.weights
                        : name == "output"  ? &example.output
                                            : nullptr;
  return found == nullptr || found->data() == nullptr ? nullptr : found;
}

std::string ErrorText(const Deviation& found, double allowed) {
  return "largest error " + Formatted("%.1e", found.largest) + ", allowed " +
         Formatted("%.1e", allowed);
}

// found has the expected rows, perhaps behind axes of extent 1 (the head).
CaseCheck CompareValues(const std::string& name, const CaseJson& expected, const Tensor& found) {
  const size_t rank = found.shape().rank();
  const size_t rows = found.shape()[rank - 2];
  const size_t columns = found.shape()[rank - 1];
  const auto* values = static_cast<const float*>(found.data());
  Deviation deviation;
  bool comparable = expected.is_array() && expected.size() == rows;
  for (size_t r = 0; comparable && r < rows; ++r) {
    comparable = expected[r].is_array() && expected[r].size() == columns;
    for (size_t c = 0; comparable && c < columns; ++c) {
      comparable = expected[r][c].is_number();
      if (!comparable) break;
      deviation.Compare(values[r * columns + c], expected[r][c].get<double>(), kCaseTolerance);
    }
  }
  if (!comparable) {
    return {name, "expected is no matrix of shape " + Shape(rows, columns).ToString(), false};
  }
  return {name, ErrorText(deviation, kCaseTolerance), deviation.ok()};
}

// Shapes agree if they do without leading axes of extent 1: a batch of one, a single head.
std::vector<size_t> WithoutLeadingOnes(std::vector<size_t> extents) {
  while (extents.size() > 2 && extents.front() == 1) extents.erase(extents.begin());
  return extents;
}

CaseCheck CompareShape(const std::string& name, const std::vector<size_t>& wanted,
                       const Tensor& found) {
  std::vector<size_t> extents;
  for (size_t i = 0; i < found.shape().rank(); ++i) extents.push_back(found.shape()[i]);
  std::string text;
  for (size_t extent : wanted) text += (text.empty() ? "[" : ", ") + std::to_string(extent);
  return {"shape of " + name, "found " + found.shape().ToString() + ", wanted " + text + "]",
          WithoutLeadingOnes(extents) == WithoutLeadingOnes(wanted)};
}

// A weight carries the roundings of its exponential and of its division, and that of the f32 sum of
// S terms it is divided by, which all of a row share: (S + 4) 2^-24 covers them.
CaseCheck CheckRowSums(const Tensor& weights) {
  const size_t columns = weights.shape()[weights.shape().rank() - 1];
  const size_t rows = weights.size_bytes() / sizeof(float) / columns;
  const auto* values = static_cast<const float*>(weights.data());
  const double allowed = static_cast<double>(columns + 4) / (1 << 24);
  Deviation deviation;
  for (size_t r = 0; r < rows; ++r) {
    double sum = 0;
    for (size_t c = 0; c < columns; ++c) sum += static_cast<double>(values[r * columns + c]);
    deviation.Compare(sum, 1, allowed);
  }
  return {"rows of weights sum to 1", ErrorText(deviation, allowed), deviation.ok()};
}

// The reference in double precision takes its time: about 10^8 multiplications a second.
constexpr double kMostMultiplications = 1e9;

EncoderConfig ConfigFromCase(const CaseJson& spec) {
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

Shape InputShape(const CaseJson& spec, const EncoderConfig& config) {
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

CaseCheck CompareNames(const CaseJson& spec, const SeededBlock& block) {
  std::vector<std::string> found;
  for (const NamedWeight& weight : block.weights) {
    found.push_back(NameAndShape(weight, block.config.d_model));
  }
  const CaseJson wanted = found;
  return {"names and shapes of weights", std::to_string(found.size()) + " of them",
          spec["torch_names"] == wanted};
}

}  // namespace

std::vector<CaseCheck> CheckCase(const CaseJson& spec, const AttentionExample& example) {
  std::vector<CaseCheck> checks;
  for (const char* name : {"Q", "K", "V", "scores", "weights", "output"}) {
    const bool is_input = !example.has_x() && *name >= 'A' && *name <= 'Z';
    if (!spec.contains(name) || is_input) continue;
    checks.push_back(CompareValues(name, spec[name], *Find(example, name)));
  }
  if (spec.contains("shapes")) {
    if (!spec["shapes"].is_object()) throw Failure(CaseLabel(spec) + ": shapes is not an object");
    for (const auto& [name, unused] : spec["shapes"].items()) {
      const Tensor* found = Find(example, name);
      if (found == nullptr) {
        throw Failure(CaseLabel(spec) + ": shapes names an unknown tensor");
      }
      CaseJson named = spec["shapes"];
      named["name"] = spec["name"];
      checks.push_back(CompareShape(name, ExtentsFromCase(named, name), *found));
    }
  }
  checks.push_back(CheckRowSums(example.weights));
  return checks;
}

BlockCaseResult RunBlockCase(const CaseJson& spec, uint32_t seed) {
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
