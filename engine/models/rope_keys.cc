// SPDX-License-Identifier: Apache-2.0
//
// Rotary positions from config.json. Frequencies are computed in double with functions of our own,
// so that they have the same bits on every machine.

#include "engine/models/config_keys.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/double_math.h"
#include "engine/base/quoted.h"
#include "engine/base/status_macros.h"

namespace encore::inline v0_1::internal {
namespace {

double Power(double base, double exponent) { return PortableExp(exponent * PortableLog(base)); }

// theta^(-2 i / head size).
std::vector<double> Frequencies(double theta, size_t head_size) {
  std::vector<double> frequencies(head_size / 2);
  for (size_t i = 0; i < frequencies.size(); ++i) {
    frequencies[i] = Power(theta, -2 * static_cast<double>(i) / static_cast<double>(head_size));
  }
  return frequencies;
}

// A finite number above 0.
double Positive(JsonMembers* members, std::string_view key, double value) {
  if (!(value > 0) || !std::isfinite(value)) members->Refuse(key, "a number above 0");
  return members->ok() ? value : 1;
}

double ReadFactor(JsonMembers* members) {
  if (!members->Has("factor")) members->Refuse("factor", "a number above 0");
  return Positive(members, "factor", members->Number("factor", 1));
}

// Bowen Peng et al. 2023 (arXiv:2309.00071): fast pairs as they are, slow ones divided by the
// factor, a ramp between; the sines and cosines grow with the factor's logarithm.
void ReadYarn(JsonMembers* members, double theta, const RopeSource& source, RotaryConfig* rotary) {
  constexpr double kTwoPi = 6.283185307179586;
  const double original = Positive(members, "original_max_position_embeddings",
                                   members->Number("original_max_position_embeddings",
                                                   static_cast<double>(source.max_positions)));
  const double factor = ReadFactor(members);
  const double fast = Positive(members, "beta_fast", members->Number("beta_fast", 32));
  const double slow = Positive(members, "beta_slow", members->Number("beta_slow", 1));
  const double scale = members->Number("mscale", 0);
  const double scale_all = members->Number("mscale_all_dim", 0);
  const std::optional<double> attention = members->OptionalNumber("attention_factor");
  const bool truncate = members->Bool("truncate", true);
  if (theta == 1) members->Refuse("rope_theta", "another number than 1 with yarn");
  if (!members->ok()) return;

  const auto magnitude = [&](double weight) {
    return factor <= 1 ? 1 : 0.1 * weight * PortableLog(factor) + 1;
  };
  rotary->magnitude = attention.value_or(
      scale != 0 && scale_all != 0 ? magnitude(scale) / magnitude(scale_all) : magnitude(1));
  const double size = static_cast<double>(source.head_size);
  const auto pair_of = [&](double rotations) {
    return size * PortableLog(original / (rotations * kTwoPi)) / (2 * PortableLog(theta));
  };
  double low = pair_of(fast);
  double high = pair_of(slow);
  if (truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, size - 1);
  if (low == high) high += 0.001;
  std::vector<double> frequencies = Frequencies(theta, source.head_size);
  for (size_t i = 0; i < frequencies.size(); ++i) {
    const double slowness = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    frequencies[i] = frequencies[i] / factor * slowness + frequencies[i] * (1 - slowness);
  }
  rotary->inverse_frequencies = std::move(frequencies);
}

// The factor f makes theta f times as large, and divides each frequency by f^(2 / head size).
void ReadNtk(JsonMembers* members, double theta, const RopeSource& source, RotaryConfig* rotary) {
  const double factor = ReadFactor(members);
  if (members->Has("mixed_b")) members->Refuse("mixed_b", "null");
  if (!members->ok()) return;
  if (factor <= 1) return;  // as it is
  if (!std::isfinite(theta * factor)) members->Refuse("factor", "a finite product with rope_theta");
  if (!members->ok()) return;
  rotary->inverse_frequencies = Frequencies(theta * factor, source.head_size);
  const double divisor = Power(factor, 2 / static_cast<double>(source.head_size));
  for (double& frequency : rotary->inverse_frequencies) frequency /= divisor;
}

// Llama 3.1's: pairs that turn more than high_freq_factor times within the original length as they
// are, those below low_freq_factor times divided by the factor, a ramp between.
void ReadLlama3(JsonMembers* members, double theta, const RopeSource& source,
                RotaryConfig* rotary) {
  constexpr double kTwoPi = 6.283185307179586;
  const double original = Positive(members, "original_max_position_embeddings",
                                   members->Number("original_max_position_embeddings",
                                                   static_cast<double>(source.max_positions)));
  const double factor = ReadFactor(members);
  const auto required = [&](std::string_view key) {
    if (!members->Has(key)) members->Refuse(key, "a number above 0");
    return Positive(members, key, members->Number(key, 1));
  };
  const double low = required("low_freq_factor");
  const double high = required("high_freq_factor");
  if (members->ok() && !(high > low)) {
    members->Refuse("high_freq_factor", "a number above low_freq_factor");
  }
  if (!members->ok()) return;
  std::vector<double> frequencies = Frequencies(theta, source.head_size);
  for (double& frequency : frequencies) {
    const double turns = original * frequency / kTwoPi;
    const double fastness = std::clamp((turns - low) / (high - low), 0.0, 1.0);
    frequency = frequency / factor * (1 - fastness) + frequency * fastness;
  }
  rotary->inverse_frequencies = std::move(frequencies);
}

void ReadLinear(JsonMembers* members, double theta, const RopeSource& source,
                RotaryConfig* rotary) {
  const double factor = ReadFactor(members);
  rotary->inverse_frequencies = Frequencies(theta, source.head_size);
  for (double& frequency : rotary->inverse_frequencies) frequency /= factor;
}

// One object of scaling: rope_parameters, a member of it, or rope_scaling. Its theta counts before
// that of the older key.
Status ReadScaling(const JsonValue& object, const std::string& where, std::optional<double> theta,
                   const RopeSource& source, RotaryConfig* rotary) {
  JsonMembers members(object, where);
  const std::string type_key = members.Has("rope_type") ? "rope_type" : "type";
  const std::string type = members.String(type_key, "default");
  members.Ignore("type");
  const std::optional<double> own = members.OptionalNumber("rope_theta");
  rotary->theta = Positive(&members, "rope_theta", own.value_or(theta.value_or(source.theta)));
  if (members.Number("partial_rotary_factor", 1) != 1) {
    return Status(ErrorCode::kUnsupported,
                  where + ": partial_rotary_factor is not 1; encore computes whole heads only");
  }
  ENCORE_RETURN_IF_ERROR(members.status());
  if (type == "linear") {
    ReadLinear(&members, rotary->theta, source, rotary);
  } else if (type == "yarn") {
    ReadYarn(&members, rotary->theta, source, rotary);
  } else if (type == "llama3") {
    ReadLlama3(&members, rotary->theta, source, rotary);
  } else if (type == "ntk" && source.ntk) {
    ReadNtk(&members, rotary->theta, source, rotary);
  } else if (type != "default") {
    return Status(ErrorCode::kUnsupported, where + ": " + type_key + " is " + Quoted(type) +
                                               "; encore computes default, linear, llama3" +
                                               (source.ntk ? ", ntk" : "") + " and yarn only");
  }
  // Left behind by whoever wrote the file, for all types.
  for (const auto* key : {"factor", "original_max_position_embeddings"}) members.Ignore(key);
  const std::vector<std::string> unread = members.Unread();
  if (!unread.empty()) members.Refuse(unread.front(), "no such key with type " + Quoted(type));
  return members.status();
}

// Of all spellings.
Status CheckHeads(JsonMembers* config, const RopeSource& source) {
  if (config->Number("partial_rotary_factor", 1) != 1) {
    return Status(
        ErrorCode::kUnsupported,
        config->where() + ": partial_rotary_factor is not 1; encore computes whole heads only");
  }
  // Each layer has the frequencies of its pairs, and there may be many layers.
  constexpr size_t kMaxHead = 4096;
  if (config->ok() && (source.head_size % 2 != 0 || source.head_size > kMaxHead)) {
    return InvalidArgument(config->where() + ": heads have " + std::to_string(source.head_size) +
                           " elements; wanted an even number up to " + std::to_string(kMaxHead) +
                           ", as positions turn pairs of them");
  }
  return config->status();
}

// rope_parameters or, of older files, rope_scaling; null where there is neither.
const JsonValue* FindScaling(JsonMembers* config, std::string* where) {
  const bool now = config->Has("rope_parameters");
  const bool then = config->Has("rope_scaling");
  if (now && then) config->Refuse("rope_scaling", "null, as there is rope_parameters");
  const char* key = now ? "rope_parameters" : "rope_scaling";
  *where = config->where() + ": " + key;
  if (!now && !then) return nullptr;
  const JsonValue& object = config->RequiredObject(key);
  return config->ok() ? &object : nullptr;
}

}  // namespace

Status ReadRope(JsonMembers* config, const RopeSource& source, RotaryConfig* rotary) {
  std::optional<double> theta;
  if (!source.theta_key.empty()) theta = config->OptionalNumber(source.theta_key);
  if (theta) Positive(config, source.theta_key, *theta);
  std::string where;
  const JsonValue* object = FindScaling(config, &where);
  ENCORE_RETURN_IF_ERROR(CheckHeads(config, source));
  rotary->theta = theta.value_or(source.theta);
  if (object == nullptr) return {};
  if (source.layer_type.empty()) return ReadScaling(*object, where, theta, source, rotary);
  if (!config->Has("rope_parameters")) {
    if (!source.scaled) return {};
    JsonMembers members(*object, where);
    if (!members.Has("rope_type") && members.String("type", "default") != "default") {
      members.Refuse("type",
                     "rope_type beside it: for layers of several types, transformers 4 "
                     "reads type and transformers 5 does not");
    }
    ENCORE_RETURN_IF_ERROR(members.status());
    return ReadScaling(*object, where, theta, source, rotary);
  }
  for (const auto& [type, value] : object->members()) {
    if (type == "full_attention" || type == "sliding_attention") continue;
    return InvalidArgument(where + ": " + Quoted(type) + " is " + value.Described() +
                           "; wanted full_attention and sliding_attention only");
  }
  const JsonValue* own = object->Find(source.layer_type);
  if (own == nullptr || own->is_null()) return {};
  return ReadScaling(*own, where + ": " + std::string(source.layer_type), theta, source, rotary);
}

Status ReadTwoRopes(JsonMembers* config, RopeSource all, RopeSource sliding, ModelSpec* spec) {
  RotaryConfig rotary[2];
  for (RopeSource* source : {&all, &sliding}) {
    if (source->head_size == 0) source->head_size = spec->encoder.layers.front().head_size;
    source->max_positions = spec->embeddings.max_positions;
    source->layer_type = source == &all ? "full_attention" : "sliding_attention";
    ENCORE_RETURN_IF_ERROR(ReadRope(config, *source, &rotary[source == &all ? 0 : 1]));
  }
  for (LayerConfig& layer : spec->encoder.layers) layer.rotary = rotary[layer.window ? 1 : 0];
  return {};
}

}  // namespace encore::internal
