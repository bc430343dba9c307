// SPDX-License-Identifier: Apache-2.0
//
// config.json as a spec of the model.

#include <algorithm>
#include <charconv>
#include <optional>
#include <system_error>

#include "engine/base/number_text.h"
#include "engine/base/quoted.h"
#include "engine/base/status_macros.h"
#include "engine/models/config_keys.h"
#include "engine/models/family.h"
#include "engine/platform/fp_env.h"

namespace encore::inline v0_1::internal {
namespace {

Status ReadArchitectures(JsonMembers* config, std::vector<std::string>* out) {
  if (!config->Has("architectures")) return {};
  for (const JsonValue& item : config->RequiredArray("architectures").items()) {
    if (!item.is_string()) {
      return InvalidArgument(config->where() + ": architectures has " + item.Described() +
                             "; wanted strings");
    }
    out->push_back(item.text());
  }
  return config->status();
}

// {"0": "name", "1": "name"}: each number below the object's size once.
Result<std::vector<std::string>> ReadLabels(const JsonValue& config) {
  const JsonValue* object = config.Find("id2label");
  std::vector<std::string> labels;
  if (object == nullptr || object->is_null()) return labels;
  const std::string where = std::string(kConfigFile) + ": id2label ";
  if (!object->is_object()) {
    return InvalidArgument(where + "is " + object->Described() + "; wanted an object");
  }
  const size_t count = object->members().size();
  labels.resize(count);
  std::vector<bool> seen(count);
  const auto wrong_key = [&](const std::string& key) {
    return InvalidArgument(where + "has the key " + Quoted(key) + "; wanted each of 0 .. " +
                           std::to_string(count - 1) + " once");
  };
  const auto wrong_value = [&](const std::string& key, const JsonValue& value) {
    return InvalidArgument(where + "has " + value.Described() + " for " + key +
                           "; wanted a string");
  };
  for (const auto& [key, value] : object->members()) {
    size_t id = 0;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
    if (error != std::errc() || end != key.data() + key.size() || id >= count || seen[id]) {
      return wrong_key(key);
    }
    if (!value.is_string() && !value.is_number()) return wrong_value(key, value);
    seen[id] = true;
    labels[id] = value.is_string() ? value.text() : value.Described();
  }
  return labels;
}

// Of labels whose number is known, or 0.
Result<ProblemType> ReadProblemType(JsonMembers* config, size_t labels) {
  constexpr std::pair<std::string_view, ProblemType> kTypes[] = {
      {"regression", ProblemType::kRegression},
      {"single_label_classification", ProblemType::kSingleLabel},
      {"multi_label_classification", ProblemType::kMultiLabel}};
  const JsonValue* given = config->Find("problem_type");
  if (given == nullptr || given->is_null()) return ProblemType::kUnnamed;
  const std::string found = config->where() + ": problem_type is " + given->Described();
  for (const auto& [name, type] : kTypes) {
    if (!given->is_string() || given->text() != name) continue;
    if (type != ProblemType::kSingleLabel || labels != 1) return type;
    return InvalidArgument(found + "; wanted 'regression' or null, as there is one label");
  }
  return InvalidArgument(found +
                         "; wanted 'regression', 'single_label_classification', "
                         "'multi_label_classification' or null");
}

Status CheckNoAdapter(const Folder& folder) {
  ENCORE_ASSIGN_OR_RETURN(const std::optional<MappedFile> adapter,
                          folder.Read("adapter_config.json"));
  if (!adapter) return {};
  return Status(ErrorCode::kUnsupported,
                QuotedPath(folder.PathOf("adapter_config.json")) +
                    " is there: the folder is, or needs, an adapter (PEFT); wanted a whole model, "
                    "as merge_and_unload() and save_pretrained() write it");
}

// Of all layers, which may differ: "rotary, theta 160000 and theta 10000".
std::string LayerPositionsText(const std::vector<LayerConfig>& layers) {
  const LayerConfig& first = layers.front();
  if (first.alibi) return "ALiBi";
  if (first.buckets) return "biases of " + std::to_string(first.buckets->num_buckets) + " buckets";
  if (first.relative) {
    const RelativeConfig& r = *first.relative;
    return "relative embeddings of " +
           (r.buckets != 0 ? std::to_string(r.buckets) + " buckets" : std::string("distances")) +
           " up to " + std::to_string(r.max_distance);
  }
  if (!first.rotary) return {};
  std::vector<std::string> kinds;
  for (const LayerConfig& layer : layers) {
    const bool scaled = !layer.rotary->inverse_frequencies.empty();
    std::string kind = scaled ? "scaled" : "theta " + NumberText(layer.rotary->theta);
    if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) kinds.push_back(kind);
  }
  std::string text = "rotary";
  for (const std::string& kind : kinds) text += (text == "rotary" ? ", " : " and ") + kind;
  return text;
}

std::string PositionsText(const ModelSpec& spec) {
  std::string in_layers = LayerPositionsText(spec.encoder.layers);
  if (spec.patches.patch_size != 0) {
    const std::string side = std::to_string(spec.patches.side());
    const std::string pixels = std::to_string(spec.patches.patch_size);
    return (in_layers.empty() ? "of " + side + " x " + side : in_layers + ", of") + " patches of " +
           pixels + " x " + pixels + " pixels";
  }
  const size_t pad = spec.embeddings.pad_token_id;
  std::string text = "0, 1, 2 ...";
  if (spec.embeddings.position_rule == PositionRule::kNone) return in_layers;
  if (spec.embeddings.position_rule == PositionRule::kFromPadding) {
    text = "from " + std::to_string(pad + 1) + ", tokens of pad_token_id at " + std::to_string(pad);
  }
  return in_layers.empty() ? text : text + "; " + in_layers;
}

void NoteChoices(const ModelSpec& spec, std::vector<Decision>* decisions) {
  decisions->push_back({"family", spec.model_type, kConfigFile});
  decisions->push_back({"positions", PositionsText(spec), kConfigFile});
  decisions->push_back({"activation",
                        std::string(ActivationRowOf(spec.encoder.layers.front().activation).text),
                        kConfigFile});
  if (const std::optional<ConvolutionConfig>& c = spec.encoder.layers.front().convolution) {
    decisions->push_back({"convolution",
                          std::to_string(c->kernel) + " tokens, " +
                              std::string(ActivationRowOf(c->activation).text) +
                              ", after the first layer",
                          kConfigFile});
  }
}

// The family's keys from the object that has them, and those at the top that belong to it.
Status ReadPart(const Family& family, JsonMembers* top, bool ignore_unknown_keys, Side side,
                ModelSpec* spec, std::vector<Decision>* decisions) {
  const JsonValue* part = nullptr;
  std::string name;
  for (const std::string_view key : family.parts) {
    if (!top->Has(key) || part != nullptr) continue;
    part = &top->RequiredObject(key);
    name = key;
  }
  ENCORE_RETURN_IF_ERROR(top->status());
  const JsonValue none = JsonValue::Object({});  // all that it may say has a default
  JsonMembers members(part == nullptr ? none : *part,
                      std::string(kConfigFile) + (part == nullptr ? "" : ": " + name));
  {
    const FpEnvScope default_modes;
    ENCORE_RETURN_IF_ERROR(ReadFamily(family, &members, spec));
  }
  if (family.configure_top != nullptr) ENCORE_RETURN_IF_ERROR(family.configure_top(top, spec));
  return part == nullptr ? Status()
                         : CheckOtherKeys(*part, &members, ignore_unknown_keys, decisions, side);
}

}  // namespace

Result<ModelModalities> FindModalities(const Folder& folder) {
  ENCORE_ASSIGN_OR_RETURN(const std::optional<JsonValue> json, folder.ReadJson(kConfigFile));
  if (!json || !json->is_object()) return ModelModalities();
  const JsonValue* type = json->Find("model_type");
  const Family* family =
      type != nullptr && type->is_string() ? FindFamily(type->text(), *json) : nullptr;
  if (family == nullptr) return ModelModalities();
  return ModelModalities{family->pools_text, !family->parts.empty()};
}

Result<ModelSpec> ReadModelConfig(const Folder& folder, bool ignore_unknown_keys,
                                  std::vector<Decision>* decisions, Side side) {
  ENCORE_RETURN_IF_ERROR(CheckNoAdapter(folder));
  ENCORE_ASSIGN_OR_RETURN(const std::optional<JsonValue> json, folder.ReadJson(kConfigFile));
  if (!json) {
    return Status(ErrorCode::kNotFound, "there is no file " +
                                            QuotedPath(folder.PathOf(kConfigFile)) +
                                            "; wanted a Hugging Face model's folder");
  }
  JsonMembers members(*json, kConfigFile);
  ModelSpec spec;
  spec.model_type = members.RequiredString("model_type");
  ENCORE_RETURN_IF_ERROR(members.status());
  const Family* family = FindFamily(spec.model_type, *json, side);
  if (family == nullptr) {
    const Side other = side == Side::kTexts ? Side::kPictures : Side::kTexts;
    const bool of_other = FindFamily(spec.model_type, *json, other) != nullptr;
    return Status(ErrorCode::kUnsupported,
                  std::string(kConfigFile) + ": model_type is " + Quoted(spec.model_type) +
                      (!of_other              ? ""
                       : side == Side::kTexts ? ", whose models read pictures (ImageEncoder "
                                                "opens them)"
                                              : ", whose models read texts (TextEncoder opens "
                                                "them)") +
                      "; wanted one of " + AllModelTypes(side));
  }
  if (family->parts.empty()) {
    const FpEnvScope default_modes;  // some keys are computed with
    ENCORE_RETURN_IF_ERROR(ReadFamily(*family, &members, &spec));
  } else {
    ENCORE_RETURN_IF_ERROR(
        ReadPart(*family, &members, ignore_unknown_keys, side, &spec, decisions));
  }
  ENCORE_RETURN_IF_ERROR(ReadArchitectures(&members, &spec.architectures));
  spec.labels = ReadLabels(*json);
  spec.num_labels = members.OptionalSize("num_labels");
  spec.problem_type = ReadProblemType(
      &members, spec.num_labels.value_or(spec.labels.ok() ? spec.labels->size() : 0));
  spec.tied = members.Bool("tie_word_embeddings", family->tied);
  ENCORE_RETURN_IF_ERROR(members.status());
  NoteChoices(spec, decisions);
  ENCORE_RETURN_IF_ERROR(CheckOtherKeys(*json, &members, ignore_unknown_keys, decisions, side));
  return spec;
}

}  // namespace encore::internal
