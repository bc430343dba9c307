// SPDX-License-Identifier: Apache-2.0
//
// The metadata's keys, one by one.

#include "engine/nn/torch_metadata.h"

#include <charconv>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "engine/base/activations.h"
#include "engine/base/number_text.h"
#include "engine/base/quoted.h"
#include "engine/base/status_macros.h"
#include "engine/base/stored_precision.h"
#include "engine/platform/parse_double.h"

namespace encore::inline v0_1::internal {
namespace {

constexpr std::string_view kKnownKeys =
    "nhead, activation, norm_first, layer_norm_eps, d_model, dim_feedforward, num_layers, bias, "
    "batch_first, dropout, "
    "format, encore_precision";

Status Malformed(std::string_view key, const std::string& value, const std::string& wanted) {
  return InvalidArgument("metadata " + std::string(key) + ": found " + Quoted(value) + ", wanted " +
                         wanted);
}

std::optional<size_t> ParseCount(const std::string& text) {
  size_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

std::optional<bool> ParseBool(std::string_view text) {
  if (text == "True" || text == "true" || text == "1") return true;
  if (text == "False" || text == "false" || text == "0") return false;
  return std::nullopt;
}

// A finite decimal number of at least 0, whatever the process's locale.
std::optional<double> ParseNumber(const std::string& text) {
  const std::optional<double> value = ParseDouble(text);
  return value && std::isfinite(*value) && *value >= 0 ? value : std::nullopt;
}

// encore's names and transformers'.
Result<Activation> ParseActivation(const std::string& text) {
  if (const ActivationRow* row = FindTransformersActivation(text)) return *row->layer;
  Result<Activation> activation = ActivationFromName(text);
  if (activation.ok()) return activation;
  return Malformed("activation", text,
                   LayerActivationNames() + ", or transformers' name of one of them");
}

Status CheckCount(std::string_view key, const std::string& value, size_t of_tensors) {
  if (ParseCount(value) == of_tensors) return Status();
  return Malformed(key, value, std::to_string(of_tensors) + ", as the tensors have it");
}

// Keys that repeat the tensors' sizes, keys without effect, and unknown keys.
Status CheckOtherKey(const std::string& key, const std::string& value, const TorchFacts& facts) {
  if (key == "d_model") return CheckCount(key, value, facts.d_model);
  if (key == "dim_feedforward") return CheckCount(key, value, facts.d_ff);
  if (key == "num_layers") return CheckCount(key, value, facts.num_layers);
  if (key == "bias") {
    if (ParseBool(value) == facts.has_biases) return Status();
    return Malformed(
        key, value,
        facts.has_biases ? "True, as the file has biases" : "False, as the file has no biases");
  }
  if (key == "batch_first")
    return ParseBool(value) ? Status() : Malformed(key, value, "True or False");
  if (key == "dropout")
    return ParseNumber(value) ? Status() : Malformed(key, value, "a decimal number of at least 0");
  if (key == "format" || key == kPrecisionKey) return Status();
  return InvalidArgument("metadata " + Quoted(key) + ": found an unknown key, wanted only " +
                         std::string(kKnownKeys));
}

Status ReadKey(const std::string& key, const std::string& value, const TorchOverrides& overrides,
               const TorchFacts& facts, LayerConfig* layer) {
  if (key == "nhead") {
    if (overrides.num_heads) return Status();
    const std::optional<size_t> nhead = ParseCount(value);
    if (!nhead || *nhead == 0) return Malformed(key, value, "a whole number of at least 1");
    layer->num_heads = *nhead;
  } else if (key == "activation") {
    if (overrides.activation) return Status();
    ENCORE_ASSIGN_OR_RETURN(layer->activation, ParseActivation(value));
  } else if (key == "norm_first") {
    if (overrides.norm_placement) return Status();
    const std::optional<bool> norm_first = ParseBool(value);
    if (!norm_first) return Malformed(key, value, "True or False");
    layer->norm_placement = *norm_first ? NormPlacement::kPre : NormPlacement::kPost;
  } else if (key == "layer_norm_eps") {
    if (overrides.epsilon) return Status();
    const std::optional<double> eps = ParseNumber(value);
    if (!eps) return Malformed(key, value, "a decimal number of at least 0");
    layer->norm.epsilon = *eps;
  } else {
    return CheckOtherKey(key, value, facts);
  }
  return Status();
}

}  // namespace

Result<EncoderConfig> MakeTorchConfig(const SafetensorsMetadata& metadata,
                                      const TorchOverrides& overrides, const TorchFacts& facts) {
  LayerConfig layer;
  layer.d_ff = facts.d_ff;
  layer.activation = overrides.activation.value_or(layer.activation);
  layer.norm_placement = overrides.norm_placement.value_or(layer.norm_placement);
  layer.norm.epsilon = overrides.epsilon.value_or(layer.norm.epsilon);
  for (const auto& [key, value] : metadata) {
    ENCORE_RETURN_IF_ERROR(ReadKey(key, value, overrides, facts, &layer));
  }
  if (overrides.num_heads) {
    layer.num_heads = *overrides.num_heads;
  } else if (layer.num_heads == 0) {
    return InvalidArgument(
        "metadata nhead: found neither it nor an override, wanted the number of attention heads, "
        "which tensors do not contain: "
        "save the file with metadata={\"nhead\": \"...\"}, or give the number along with the file");
  }
  if (layer.num_heads == 0 || facts.d_model % layer.num_heads != 0) {
    return InvalidArgument("nhead: found " + std::to_string(layer.num_heads) +
                           ", wanted a divisor of d_model, " + std::to_string(facts.d_model));
  }
  if (!std::isfinite(layer.norm.epsilon) || layer.norm.epsilon < 0) {
    return InvalidArgument("layer_norm_eps: found " + NumberText(layer.norm.epsilon) +
                           ", wanted a finite number of at least 0");
  }
  // A model with another activation gives wrong vectors without an error.
  if (!overrides.activation && !metadata.contains("activation")) {
    return InvalidArgument(
        "metadata activation: found neither it nor an override, wanted the feed-forward network's "
        "activation, which tensors do not contain: "
        "save the file with metadata={\"activation\": \"...\"}, or give it along with the file");
  }
  const NormConfig none = {.type = NormType::kNone};
  return EncoderConfig::Uniform(facts.d_model, facts.num_layers, layer,
                                facts.final_norm ? layer.norm : none);
}

}  // namespace encore::internal
