// SPDX-License-Identifier: Apache-2.0
//
// The files of what follows the transformer: pooling, dense layers, norms, prompts and scores.

#include <algorithm>
#include <array>
#include <utility>

#include "encore/safetensors.h"
#include "engine/base/status_macros.h"
#include "engine/text/folder_files.h"

namespace encore::inline v0_1::internal {
namespace {

// A Pooling module's config.json has two spellings: a boolean for each mode, or pooling_mode with a
// name or a list of names.
struct ModeName {
  PoolingMode mode;
  std::string_view boolean;
};
constexpr std::array<ModeName, 6> kModes = {{
    {PoolingMode::kCls, "pooling_mode_cls_token"},
    {PoolingMode::kMax, "pooling_mode_max_tokens"},
    {PoolingMode::kMean, "pooling_mode_mean_tokens"},
    {PoolingMode::kMeanSqrtLength, "pooling_mode_mean_sqrt_len_tokens"},
    {PoolingMode::kWeightedMean, "pooling_mode_weightedmean_tokens"},
    {PoolingMode::kLastToken, "pooling_mode_lasttoken"},
}};

std::optional<PoolingMode> ModeOf(const JsonValue& value) {
  if (!value.is_string()) return {};
  for (const ModeName& known : kModes) {
    if (value.text() == PoolingModeName(known.mode)) return known.mode;
  }
  return {};
}

// pooling_mode: a name, or a list of names.
std::vector<PoolingMode> ReadNames(JsonMembers& members) {
  constexpr std::string_view kKey = "pooling_mode";
  const JsonValue& value = *members.Find(kKey);
  std::vector<PoolingMode> modes;
  const auto add = [&](const JsonValue& name) {
    const std::optional<PoolingMode> mode = ModeOf(name);
    if (mode) {
      modes.push_back(*mode);
    } else {
      members.Refuse(kKey,
                     "cls, max, mean, mean_sqrt_len_tokens, weightedmean, lasttoken, or a list of "
                     "these");
    }
  };
  if (value.is_array() && !value.items().empty()) {
    for (const JsonValue& name : value.items()) add(name);
  } else {
    add(value);
  }
  return modes;
}

std::vector<PoolingMode> ReadBooleans(JsonMembers& members) {
  std::vector<PoolingMode> modes;
  for (const ModeName& known : kModes) {
    if (members.Bool(known.boolean, false)) modes.push_back(known.mode);
  }
  if (modes.empty()) modes.push_back(PoolingMode::kMean);
  return modes;
}

// "mean", "cls + max".
std::string PoolingText(const std::vector<PoolingMode>& modes) {
  std::string text;
  for (const PoolingMode mode : modes) {
    text += (text.empty() ? "" : " + ") + std::string(PoolingModeName(mode));
  }
  return text;
}

Result<PoolingSettings> ReadPoolingConfig(const std::string& path, size_t d_model,
                                          const FolderReading& reading) {
  const std::string file = Within(path, "config.json");
  ENCORE_ASSIGN_OR_RETURN(const JsonValue json, ReadModuleFile("Pooling", file, reading));
  JsonMembers members(json, file);
  // Where both spellings are there, the new one counts.
  std::vector<PoolingMode> modes = ReadBooleans(members);
  if (members.Has("pooling_mode")) modes = ReadNames(members);
  for (const std::string_view key : {"word_embedding_dimension", "embedding_dimension"}) {
    const std::optional<size_t> width = members.OptionalSize(key);
    if (width && *width != d_model) {
      members.Refuse(key, std::to_string(d_model) + ", the width of the model's hidden states");
    }
  }
  const bool include_prompt = members.Bool("include_prompt", true);
  ENCORE_RETURN_IF_ERROR(CheckUnreadKeys(members, reading));
  reading.Note("pooling",
               PoolingText(modes) + (include_prompt ? "" : ", without the prompt's tokens"), file);
  return PoolingSettings{std::move(modes), include_prompt};
}

// Whether config.json is of a causal language model: the first class name says so, and is_causal
// is not false, which makes it an encoder.
Result<bool> IsCausalLanguageModel(const FolderReading& reading) {
  ENCORE_ASSIGN_OR_RETURN(const std::optional<JsonValue> json,
                          reading.folder.ReadJson("config.json"));
  if (!json.has_value()) return false;
  JsonMembers members(*json, "config.json");
  if (!members.Has("architectures") || !members.Bool("is_causal", true)) return false;
  const std::vector<JsonValue>& names = members.RequiredArray("architectures").items();
  if (!members.ok()) return members.status();
  return !names.empty() && names.front().is_string() &&
         names.front().text().ends_with("ForCausalLM");
}

struct DenseConfig {
  size_t in_features = 0;
  size_t out_features = 0;
  bool bias = true;
  bool use_residual = false;
  const ActivationRow* activation = nullptr;
};

Result<DenseConfig> ReadConfig(const std::string& file, size_t width, VectorsOf what,
                               const FolderReading& reading) {
  ENCORE_ASSIGN_OR_RETURN(const JsonValue json, ReadModuleFile("Dense", file, reading));
  JsonMembers members(json, file);
  DenseConfig config;
  config.in_features = members.RequiredSize("in_features");
  config.out_features = members.RequiredSize("out_features");
  config.bias = members.Bool("bias", true);
  constexpr std::string_view kActivation = "activation_function";
  config.activation =
      FindTorchActivation(members.String(kActivation, "torch.nn.modules.activation.Tanh"));
  if (config.activation == nullptr) {
    members.Refuse(kActivation, "one of " + TorchActivationNames());
  }
  if (config.in_features != width) {
    members.Refuse("in_features", std::to_string(width) + ", the width of its input");
  }
  if (config.out_features == 0) members.Refuse("out_features", "at least 1");
  config.use_residual = members.Bool("use_residual", false);
  WantVectors(members, what, what);
  ENCORE_RETURN_IF_ERROR(NoteUnreadKeys(members, reading));
  return config;
}

// The tensor in f32, if it has this shape.
Result<Tensor> ReadTensor(const SafetensorsFile& file, std::string_view name, const Shape& shape) {
  ENCORE_ASSIGN_OR_RETURN(Tensor tensor, file.ReadAsF32(name));
  if (!(tensor.shape() == shape)) {
    return InvalidArgument(file.name() + ": " + std::string(name) + " is " +
                           tensor.shape().ToString() + "; wanted " + shape.ToString());
  }
  return tensor;
}

// One of a module's weights has another name than these.
Status CheckNames(const SafetensorsFile& file, const std::vector<std::string_view>& wanted) {
  for (const SafetensorsEntry& entry : file.tensors()) {
    if (std::find(wanted.begin(), wanted.end(), entry.name) != wanted.end()) continue;
    std::string names;
    for (const std::string_view name : wanted) {
      names += (names.empty() ? "" : " and ") + std::string(name);
    }
    return InvalidArgument(file.name() + ": unknown tensor " + Quoted(entry.name) + "; wanted " +
                           names);
  }
  return {};
}

Result<SafetensorsFile> OpenWeights(const std::string& path, const FolderReading& reading) {
  const std::string file = Within(path, "model.safetensors");
  ENCORE_ASSIGN_OR_RETURN(const bool is_there, reading.folder.Has(file));
  if (!is_there) {
    const std::string pickle = Within(path, "pytorch_model.bin");
    ENCORE_ASSIGN_OR_RETURN(const bool is_pickle, reading.folder.Has(pickle));
    if (is_pickle) {
      return Status(ErrorCode::kUnsupported,
                    QuotedPath(reading.folder.PathOf(pickle)) +
                        " is a pickle; wanted model.safetensors beside it. To make it: python -c "
                        "\"import torch, safetensors.torch as s; "
                        "s.save_file(torch.load('pytorch_model.bin'), 'model.safetensors')\"");
    }
  }
  return SafetensorsFile::Open(reading.folder.PathOf(file));
}

void ReadPrompts(JsonMembers& members, SentenceConfig* config) {
  if (!members.Has("prompts")) return;
  const JsonValue& prompts = members.RequiredObject("prompts");
  if (!members.ok()) return;
  for (const JsonValue::Member& prompt : prompts.members()) {
    if (prompt.second.is_string()) {
      config->prompts.emplace_back(prompt.first, prompt.second.text());
    } else if (prompt.second.is_null()) {
      config->prompts.emplace_back(prompt.first, "");
    } else {
      members.Refuse("prompts", "an object of strings");
    }
  }
}

struct Named {
  std::string function;  // the Python class's path
  std::string source;
};

// Nothing if no file names one.
Result<std::optional<Named>> FindScoreFunction(const std::string& path,
                                               const SentenceConfig& config,
                                               const FolderReading& reading) {
  std::optional<Named> named;
  if (config.activation_fn) {
    named = {*config.activation_fn, std::string(kSentenceConfigFile)};
    return named;
  }
  const std::string file = Within(path, "config.json");
  ENCORE_ASSIGN_OR_RETURN(const std::optional<JsonValue> json, reading.folder.ReadJson(file));
  if (!json.has_value()) return named;
  JsonMembers members(*json, file);
  // Where the newer key is there, the older one does not count, not even if the newer is null.
  if (members.Has("sentence_transformers")) {
    JsonMembers inner(members.RequiredObject("sentence_transformers"),
                      file + ": sentence_transformers");
    ENCORE_RETURN_IF_ERROR(members.status());
    const bool is_there = inner.Find("activation_fn") != nullptr;
    const std::optional<std::string> function = inner.OptionalString("activation_fn");
    ENCORE_RETURN_IF_ERROR(inner.status());
    if (function) named = {*function, inner.where()};
    if (is_there) return named;
  }
  const std::optional<std::string> old =
      members.OptionalString("sbert_ce_default_activation_function");
  ENCORE_RETURN_IF_ERROR(members.status());
  if (old) named = {*old, file};
  return named;
}

}  // namespace

Result<JsonValue> ReadModuleFile(std::string_view module, const std::string& file,
                                 const FolderReading& reading) {
  ENCORE_ASSIGN_OR_RETURN(std::optional<JsonValue> json, reading.folder.ReadJson(file));
  if (json.has_value()) return *std::move(json);
  return Status(ErrorCode::kNotFound, "modules.json names a " + std::string(module) +
                                          " module, but there is no " +
                                          QuotedPath(reading.folder.PathOf(file)));
}

Result<PoolingSettings> ReadPooling(const ModuleEntry* module, size_t d_model,
                                    const std::vector<PoolingMode>& given,
                                    const FolderReading& reading) {
  if (!given.empty()) {
    reading.Note("pooling", PoolingText(given), "option pooling");
    return PoolingSettings{given};
  }
  if (module != nullptr) return ReadPoolingConfig(module->path, d_model, reading);
  ENCORE_ASSIGN_OR_RETURN(const bool causal, IsCausalLanguageModel(reading));
  const PoolingMode mode = causal ? PoolingMode::kLastToken : PoolingMode::kMean;
  reading.Note("pooling", std::string(PoolingModeName(mode)) + ", without normalization",
               std::string("default without modules.json") +
                   (causal ? ", architectures ends in ForCausalLM" : ""));
  return PoolingSettings{{mode}};
}

Result<Dense> ReadDense(const std::string& path, size_t width, VectorsOf what,
                        const FolderReading& reading) {
  const std::string config_file = Within(path, "config.json");
  ENCORE_ASSIGN_OR_RETURN(const DenseConfig config, ReadConfig(config_file, width, what, reading));
  ENCORE_ASSIGN_OR_RETURN(const SafetensorsFile file, OpenWeights(path, reading));
  const bool projects = config.use_residual && config.in_features != config.out_features;
  std::vector<std::string_view> names = {"linear.weight"};
  if (config.bias) names.push_back("linear.bias");
  if (projects) names.push_back("residual.weight");
  ENCORE_RETURN_IF_ERROR(CheckNames(file, names));
  ENCORE_ASSIGN_OR_RETURN(
      const Tensor weight,
      ReadTensor(file, "linear.weight", {config.out_features, config.in_features}));
  Tensor bias;
  if (config.bias) {
    ENCORE_ASSIGN_OR_RETURN(bias, ReadTensor(file, "linear.bias", {config.out_features}));
  }
  ENCORE_ASSIGN_OR_RETURN(PackedLinear linear,
                          PackedLinear::Create(weight.View<float>(), bias.View<float>()));
  std::optional<PackedLinear> residual;
  if (projects) {
    ENCORE_ASSIGN_OR_RETURN(
        const Tensor matrix,
        ReadTensor(file, "residual.weight", {config.out_features, config.in_features}));
    ENCORE_ASSIGN_OR_RETURN(residual, PackedLinear::Create(matrix.View<float>()));
  }
  reading.Note("dense",
               std::to_string(config.in_features) + " to " + std::to_string(config.out_features) +
                   (config.bias ? ", " : ", no bias, ") + std::string(config.activation->text) +
                   (config.use_residual ? ", with a residual" : ""),
               config_file);
  return Dense{std::move(linear), config.activation, config.use_residual, std::move(residual)};
}

// A Normalize module has no settings but these, and mostly no folder at all.
Result<bool> ReadNormalize(const std::string& path, VectorsOf what, const FolderReading& reading) {
  const std::string file = Within(path, "config.json");
  const bool counts = what == VectorsOf::kTexts;
  // Without a folder of its own the file would be the model's.
  if (path.empty()) return counts;
  ENCORE_ASSIGN_OR_RETURN(const std::optional<JsonValue> json, reading.folder.ReadJson(file));
  if (!json.has_value()) return counts;
  JsonMembers members(*json, file);
  if (!counts &&
      members.String("module_input_name", "sentence_embedding") == "sentence_embedding") {
    reading.Note("ignored", "a normalization of texts' vectors, of which there are none", file);
    return false;
  }
  WantVectors(members, what, VectorsOf::kTexts);
  ENCORE_RETURN_IF_ERROR(CheckUnreadKeys(members, reading));
  return true;
}

Result<LoadedNorm> ReadLayerNorm(const std::string& path, size_t width,
                                 const FolderReading& reading) {
  const std::string config_file = Within(path, "config.json");
  ENCORE_ASSIGN_OR_RETURN(const JsonValue json, ReadModuleFile("LayerNorm", config_file, reading));
  JsonMembers members(json, config_file);
  if (members.RequiredSize("dimension") != width && members.ok()) {
    members.Refuse("dimension", std::to_string(width) + ", the width of its input");
  }
  ENCORE_RETURN_IF_ERROR(CheckUnreadKeys(members, reading));
  ENCORE_ASSIGN_OR_RETURN(const SafetensorsFile file, OpenWeights(path, reading));
  ENCORE_RETURN_IF_ERROR(CheckNames(file, {"norm.weight", "norm.bias"}));
  LoadedNorm norm{.epsilon = 1e-5};  // torch's default, which sentence-transformers takes
  ENCORE_ASSIGN_OR_RETURN(norm.weight, ReadTensor(file, "norm.weight", {width}));
  ENCORE_ASSIGN_OR_RETURN(norm.bias, ReadTensor(file, "norm.bias", {width}));
  reading.Note("layer norm", "of " + std::to_string(width) + " elements", config_file);
  return norm;
}

Status CheckDropout(const std::string& path, const FolderReading& reading) {
  const std::string file = Within(path, "config.json");
  ENCORE_ASSIGN_OR_RETURN(const std::optional<JsonValue> json, reading.folder.ReadJson(file));
  if (!json.has_value()) return {};
  JsonMembers members(*json, file);
  const double share = members.Number("dropout", 0.2);
  if (members.ok() && !(share >= 0 && share <= 1)) members.Refuse("dropout", "0 .. 1");
  return CheckUnreadKeys(members, reading);
}

const std::string* SentenceConfig::FindPrompt(std::string_view name) const {
  for (const auto& prompt : prompts) {
    if (prompt.first == name) return &prompt.second;
  }
  return nullptr;
}

Result<SentenceConfig> ReadSentenceConfig(const ModelFolder& found, const FolderReading& reading) {
  const bool is_late = IsLate(found.kind);
  SentenceConfig config;
  const std::string file(kSentenceConfigFile);
  ENCORE_ASSIGN_OR_RETURN(const std::optional<JsonValue> json, reading.folder.ReadJson(file));
  if (!json.has_value()) return config;
  if (!found.has_modules()) {
    reading.Note("ignored", "prompts and all else, as there is no modules.json", file);
    return config;
  }
  JsonMembers members(*json, file);
  ReadPrompts(members, &config);
  config.default_prompt_name = members.OptionalString("default_prompt_name");
  config.truncate_dim = members.OptionalSize("truncate_dim");
  config.activation_fn = members.OptionalString("activation_fn");
  const std::optional<std::string> similarity = members.OptionalString("similarity_fn_name");
  const std::string type = members.String("model_type", "SentenceTransformer");
  if (is_late) {
    for (const std::string_view key : kPyLateKeys)
      members.Ignore(key);  // late_settings.cc has them
  } else if (type != "SentenceTransformer" && type != "CrossEncoder" && type != "SparseEncoder") {
    members.Refuse("model_type", "'SentenceTransformer', 'CrossEncoder' or 'SparseEncoder'");
  }
  config.max_active_dims = members.Size("max_active_dims", 0);
  if (config.default_prompt_name && config.FindPrompt(*config.default_prompt_name) == nullptr) {
    // sentence-transformers' encoders have these two names always. Of another name only calls
    // without a prompt are refused.
    if (type != "CrossEncoder" &&
        (*config.default_prompt_name == "query" || *config.default_prompt_name == "document")) {
      config.prompts.emplace_back(*config.default_prompt_name, "");
    }
  }
  if (config.truncate_dim == size_t{0}) members.Refuse("truncate_dim", "at least 1");
  for (const std::string_view key : {"__version__", "requirements", "keep_in_fp32_modules"}) {
    members.Ignore(key);
  }
  ENCORE_RETURN_IF_ERROR(NoteUnreadKeys(members, reading));

  for (const auto& [name, text] : config.prompts) {
    const bool by_default = config.default_prompt_name == name;
    reading.Note("prompt " + Quoted(name), Quoted(text) + (by_default ? ", the default" : ""),
                 file);
  }
  if (similarity && !is_late) {
    reading.Note("similarity", *similarity + ", for the caller to apply", file);
  }
  return config;
}

Result<const ActivationRow*> ReadScoreActivation(const std::string& path,
                                                 const SentenceConfig& config, size_t labels,
                                                 const FolderReading& reading) {
  ENCORE_ASSIGN_OR_RETURN(const std::optional<Named> named,
                          FindScoreFunction(path, config, reading));
  if (named.has_value()) {
    const ActivationRow* activation = FindTorchActivation(named->function);
    if (activation == nullptr) {
      return Status(ErrorCode::kUnsupported, named->source + ": the activation of scores is " +
                                                 Quoted(named->function) + "; wanted one of " +
                                                 TorchActivationNames());
    }
    reading.Note("scores", std::string(activation->text), named->source);
    return activation;
  }
  const ActivationRow* activation =
      FindTorchActivation(labels == 1 ? "torch.nn.Sigmoid" : "torch.nn.Identity");
  reading.Note("scores", std::string(activation->text),
               labels == 1 ? "default for one label" : "default for several labels");
  return activation;
}

}  // namespace encore::internal
