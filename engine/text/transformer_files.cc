// SPDX-License-Identifier: Apache-2.0
//
// The files that say which modules a folder has and how its transformer is called.

#include <algorithm>
#include <array>

#include "engine/base/status_macros.h"
#include "engine/models/family.h"
#include "engine/text/folder_files.h"
#include "engine/tokenizer/tokenizer_class.h"

namespace encore::inline v0_1::internal {
namespace {

// modules.json. Classes are named by the path of their Python module, which changed twice.
constexpr std::string_view kModulesFile = "modules.json";

struct ClassName {
  std::string_view name;
  std::string_view file;  // the class's own module, in the newer paths
  ModuleKind kind;
};
constexpr std::array<ClassName, 14> kClasses = {{
    {"Transformer", "transformer", ModuleKind::kTransformer},
    {"StaticEmbedding", "static_embedding", ModuleKind::kStaticEmbedding},
    {"Pooling", "pooling", ModuleKind::kPooling},
    {"Dense", "dense", ModuleKind::kDense},
    {"Normalize", "normalize", ModuleKind::kNormalize},
    {"LayerNorm", "layer_norm", ModuleKind::kLayerNorm},
    {"Dropout", "dropout", ModuleKind::kDropout},
    {"CLIPModel", "clip_model", ModuleKind::kClipModel},
    {"MLMTransformer", "mlm_transformer", ModuleKind::kMlmTransformer},
    {"SpladePooling", "splade_pooling", ModuleKind::kSpladePooling},
    {"SparseStaticEmbedding", "sparse_static_embedding", ModuleKind::kSparseStatic},
    {"Router", "router", ModuleKind::kRouter},
    {"MultiVectorMask", "multi_vector_mask", ModuleKind::kMultiVectorMask},
    {"LogitScore", "logit_score", ModuleKind::kLogitScore},
}};
constexpr std::string_view kPyLateDense = "pylate.models.Dense.Dense";
constexpr std::array<std::string_view, 7> kPackages = {
    "sentence_transformers.models.",
    "sentence_transformers.base.modules.",
    "sentence_transformers.sentence_transformer.modules.",
    "sentence_transformers.sparse_encoder.models.",
    "sentence_transformers.sparse_encoder.modules.",
    "sentence_transformers.multi_vector_encoder.modules.",
    "sentence_transformers.cross_encoder.modules.",
};

// Of the code beside pplx-embed, which encode() hands the arguments that `kwargs` names. Without
// any it makes int8.
constexpr std::string_view kQuantizer = "st_quantize.FlexibleQuantizer";

// The class of Jina v3's own code; encode() hands it the task, which its `kwargs` name. Folders of
// other models have a class of this name too.
constexpr std::string_view kJinaTransformer = "custom_st.Transformer";

// "PACKAGE.Class", "PACKAGE.file.Class".
std::optional<ModuleKind> KindOf(std::string_view type) {
  if (type == kPyLateDense) return ModuleKind::kDense;
  if (type == kQuantizer) return ModuleKind::kQuantize;
  if (type == kJinaTransformer) return ModuleKind::kTransformer;
  for (const std::string_view package : kPackages) {
    if (!type.starts_with(package)) continue;
    const std::string_view rest = type.substr(package.size());
    for (const ClassName& known : kClasses) {
      if (rest == known.name) return known.kind;
      const std::string nested = std::string(known.file) + "." + std::string(known.name);
      if (rest == nested) return known.kind;
      // sentence_transformers.models.X was a module of that name in old folders.
      if (rest == std::string(known.name) + "." + std::string(known.name)) return known.kind;
    }
  }
  return {};
}

// Whether a module's path stays within the folder: not absolute, no "..", no backslash or colon.
bool IsWithin(std::string_view path) {
  if (path.find_first_of("\\:") != std::string_view::npos) return false;
  if (path.find('\0') != std::string_view::npos) return false;
  if (!path.empty() && path.front() == '/') return false;
  for (size_t at = 0; at <= path.size();) {
    const size_t end = std::min(path.find('/', at), path.size());
    if (path.substr(at, end - at) == "..") return false;
    at = end + 1;
  }
  return true;
}

Result<ModuleEntry> ReadEntry(const JsonValue& value, size_t index, const FolderReading& reading) {
  JsonMembers members(value, std::string(kModulesFile) + ": [" + std::to_string(index) + "]");
  const std::string type = members.RequiredString("type");
  const std::string path = members.RequiredString("path");
  members.Ignore("idx");  // the list's order counts
  members.Ignore("name");
  if (type == kQuantizer || type == kJinaTransformer) {
    members.Ignore("kwargs");
  } else {
    WantEmpty(members, "kwargs");
  }
  if (members.ok() && !IsWithin(path)) members.Refuse("path", "a folder within the model's");
  ENCORE_RETURN_IF_ERROR(CheckUnreadKeys(members, reading));
  return MakeModule(type, path, members.where());
}

// The modules of modules.json; none if there is no such file.
Result<std::vector<ModuleEntry>> ReadModuleList(SparseRoutes* routes,
                                                const FolderReading& reading) {
  std::vector<ModuleEntry> modules;
  ENCORE_ASSIGN_OR_RETURN(const std::optional<JsonValue> file,
                          reading.folder.ReadJson(kModulesFile));
  if (!file.has_value()) return modules;
  const JsonValue& list = *file;
  if (!list.is_array()) {
    return Status(ErrorCode::kCorruptData,
                  std::string(kModulesFile) + ": found " + list.Described() + "; wanted an array");
  }
  if (list.items().empty()) {
    return InvalidArgument(std::string(kModulesFile) + ": found no module; wanted a Transformer");
  }
  for (const JsonValue& value : list.items()) {
    ENCORE_ASSIGN_OR_RETURN(ModuleEntry entry, ReadEntry(value, modules.size(), reading));
    modules.push_back(std::move(entry));
  }
  if (modules.size() == 1 && modules[0].kind == ModuleKind::kRouter) {
    return ReadRouter(modules[0].path, routes, reading);
  }
  return modules;
}

// sentence_bert_config.json and its namesakes, in the spellings of sentence-transformers 0.2 to 6,
// and in the order in which it looks for them. The first that exists counts.
constexpr std::array<std::string_view, 7> kSettingsFiles = {
    "sentence_bert_config.json",       "sentence_roberta_config.json",
    "sentence_distilbert_config.json", "sentence_camembert_config.json",
    "sentence_albert_config.json",     "sentence_xlm-roberta_config.json",
    "sentence_xlnet_config.json",
};

// Arguments that sentence-transformers hands to transformers when it loads the folder. Only those
// pass that do not change the result, such as the choice of transformers' code, of its way to
// compute, or of the weights' type in memory. Others are refused.
void ReadArguments(JsonMembers& members, std::string_view key) {
  constexpr std::array<std::string_view, 9> kHarmless = {
      "add_pooling_layer", "attn_implementation", "dtype",
      "low_cpu_mem_usage", "padding_side",        "torch_dtype",
      "trust_remote_code", "unpad_inputs",        "use_memory_efficient_attention",
  };
  if (!members.Has(key)) return;
  const JsonValue& arguments = *members.Find(key);
  if (!arguments.is_object()) return WantEmpty(members, key);
  for (const JsonValue::Member& argument : arguments.members()) {
    if (std::find(kHarmless.begin(), kHarmless.end(), argument.first) != kHarmless.end()) continue;
    members.Refuse(key, "no " + Quoted(argument.first) + " in it, which may change the result");
  }
}

// Texts or messages, by one method, and the usual output only.
void ReadModality(const JsonValue& modality, std::string_view name, std::string_view method,
                  std::string_view output, JsonMembers& members, const FolderReading& reading) {
  const std::string key = "modality_config";
  JsonMembers inner(modality, members.where() + ": " + key + ": " + std::string(name));
  if (inner.RequiredString("method") != method) inner.Refuse("method", Quoted(method));
  if (inner.RequiredString("method_output_name") != output) {
    inner.Refuse("method_output_name", Quoted(output));
  }
  if (name == "message") inner.Ignore("format");
  if (!CheckUnreadKeys(inner, reading).ok()) {
    members.Refuse(key, "the " + std::string(name) + " modality with method " + Quoted(method) +
                            " and output " + Quoted(output));
  }
}

// What the model is called with and which of its outputs is taken. Messages are of cross-encoders.
// Beside texts the model may take images and sounds.
void ReadModalities(JsonMembers& members, TransformerSettings* settings,
                    const ModelModalities& model, const FolderReading& reading) {
  const bool makes_features = model.pools_text;
  const bool classifies = settings->task == TransformerTask::kClassify;
  const bool generates = settings->task == TransformerTask::kGenerate;
  const std::string_view output = classifies       ? "scores"
                                  : generates      ? "causal_logits"
                                  : makes_features ? "sentence_embedding"
                                                   : "token_embeddings";
  if (members.String("module_output_name", output) != output) {
    members.Refuse("module_output_name", "'" + std::string(output) + "'");
  }
  if (!members.Has("modality_config")) return;
  const JsonValue& modalities = members.RequiredObject("modality_config");
  if (!members.ok()) return;
  const JsonValue* text = modalities.Find("text");
  const bool scores = classifies || generates;
  const JsonValue* message = scores ? modalities.Find("message") : nullptr;
  const bool others = modalities.members().size() != (message != nullptr ? 2 : 1);
  // sentence-transformers makes messages of texts where it can.
  const bool has_messages = !makes_features && !scores && modalities.Find("message") != nullptr;
  if (text == nullptr || (others && !model.others) || has_messages) {
    members.Refuse("modality_config",
                   model.others ? "an object with a member 'text', and none 'message'"
                   : scores     ? "an object with the members 'text' and, if any, 'message'"
                                : "an object with the one member 'text'");
    return;
  }
  const bool has_head = scores || settings->task == TransformerTask::kFillMask;
  const std::string_view method = makes_features ? "get_text_features" : "forward";
  const std::string_view wanted = has_head         ? "logits"
                                  : makes_features ? "pooler_output"
                                                   : "last_hidden_state";
  ReadModality(*text, "text", method, wanted, members, reading);
  if (message == nullptr) return;
  ReadModality(*message, "message", method, wanted, members, reading);
  const JsonValue* format = message->Find("format");
  const std::string name = format != nullptr && format->is_string() ? format->text() : "auto";
  settings->messages = name == "flat"         ? MessageFormat::kFlat
                       : name == "structured" ? MessageFormat::kStructured
                                              : MessageFormat::kAuto;
}

// {"text": {"padding": "max_length", "max_length": 64}}: all texts are padded so. Nothing else.
void ReadProcessing(JsonMembers& members, TransformerSettings* settings) {
  constexpr std::string_view kKey = "processing_kwargs";
  const JsonValue* value = members.Find(kKey);
  const JsonValue* text = value != nullptr && value->is_object() ? value->Find("text") : nullptr;
  if (text == nullptr || value->members().size() != 1 || !text->is_object()) {
    return WantEmpty(members, kKey);
  }
  JsonMembers inner(*text, members.where() + ": " + std::string(kKey) + ": text");
  const bool pads = inner.String("padding", "") == "max_length";
  const size_t length = inner.Size("max_length", 0);
  const bool cuts = inner.Bool("truncation", true);
  if (!inner.ok() || !pads || !cuts || !inner.Unread().empty()) {
    members.Refuse(kKey,
                   "no more in its text than \"padding\": \"max_length\", \"max_length\" and "
                   "\"truncation\": true");
    return;
  }
  settings->padding = length;
}

TransformerTask ReadTask(JsonMembers& members) {
  constexpr std::string_view kKey = "transformer_task";
  using enum TransformerTask;
  const std::string name = members.String(kKey, TaskName(kExtractFeatures));
  for (const TransformerTask task : {kExtractFeatures, kClassify, kGenerate, kFillMask}) {
    if (name == TaskName(task)) return task;
  }
  members.Refuse(kKey,
                 "'feature-extraction', 'sequence-classification', 'text-generation' or "
                 "'fill-mask'");
  return kExtractFeatures;
}

Result<TransformerSettings> ReadTransformerSettings(const std::string& path,
                                                    const ModelModalities& model,
                                                    const FolderReading& reading) {
  TransformerSettings settings;
  for (const std::string_view name : kSettingsFiles) {
    const std::string file = Within(path, name);
    ENCORE_ASSIGN_OR_RETURN(const std::optional<JsonValue> json, reading.folder.ReadJson(file));
    if (!json.has_value()) continue;
    if (json->is_object() && json->members().empty()) continue;  // as if it were not there
    settings.file = file;
    JsonMembers members(*json, file);
    settings.max_seq_length = members.OptionalSize("max_seq_length");
    settings.lower_case = members.Bool("do_lower_case", false);
    settings.task = ReadTask(members);
    ReadModalities(members, &settings, model, reading);
    ReadProcessing(members, &settings);
    for (const std::string_view key : {"model_args", "tokenizer_args", "config_args",
                                       "model_kwargs", "processor_kwargs", "config_kwargs"}) {
      ReadArguments(members, key);
    }
    settings.lengths = ReadTaskLengths(members);
    if (members.Has("tokenizer_name_or_path")) members.Refuse("tokenizer_name_or_path", "null");
    members.Ignore("unpad_inputs");  // how, not what: encore never pads
    ENCORE_RETURN_IF_ERROR(CheckUnreadKeys(members, reading));
    return settings;
  }
  return settings;
}

Status CheckIsJina(const Folder& folder) {
  ENCORE_ASSIGN_OR_RETURN(const std::optional<JsonValue> json, folder.ReadJson(kConfigFile));
  if (json && json->is_object() && json->Find("lora_adaptations") != nullptr) return {};
  return Status(ErrorCode::kUnsupported,
                std::string(kModulesFile) + ": type is " + Quoted(kJinaTransformer) +
                    ", code of the folder's own; wanted that of Jina v3, whose " + kConfigFile +
                    " has lora_adaptations");
}

// The folder of the first module, and where that is a transformer its settings.
Status OpenFirstModule(ModelFolder* found, ModelModalities* model, const FolderReading& reading) {
  const ModuleEntry& first = found->modules[0];
  found->path = first.path;
  if (!first.path.empty()) {
    ENCORE_ASSIGN_OR_RETURN(found->folder, Folder::Open(reading.folder.PathOf(first.path)));
  }
  if (IsTransformer(first.kind)) {
    ENCORE_ASSIGN_OR_RETURN(*model, FindModalities(found->folder));
    ENCORE_ASSIGN_OR_RETURN(found->settings, ReadTransformerSettings(first.path, *model, reading));
  }
  if (first.of_jina) ENCORE_RETURN_IF_ERROR(CheckIsJina(found->folder));
  if (first.kind == ModuleKind::kClipModel && !model->pools_text) {
    return Status(ErrorCode::kUnsupported, std::string(kModulesFile) +
                                               ": CLIPModel is a module of models of texts and "
                                               "images; wanted a config.json of such a model in " +
                                               QuotedPath(found->folder.path()));
  }
  if (first.kind == ModuleKind::kMlmTransformer) found->settings.task = TransformerTask::kFillMask;
  return {};
}

// Files that sentence-transformers does not look at without modules.json.
void NoteIgnored(const FolderReading& reading) {
  for (const std::string_view file : kSettingsFiles) {
    const Result<std::optional<MappedFile>> found = reading.folder.Read(file);
    if (found.ok() && found->has_value()) {
      reading.Note("ignored", "all of it, as there is no modules.json", std::string(file));
    }
  }
}

}  // namespace

Result<ModuleEntry> MakeModule(const std::string& type, const std::string& path,
                               const std::string& where) {
  if (!IsWithin(path)) {
    return InvalidArgument(where + ": found the folder " + QuotedPath(path) +
                           "; wanted one within the model's");
  }
  const std::optional<ModuleKind> kind = KindOf(type);
  if (kind) {
    return ModuleEntry{.kind = *kind,
                       .path = path,
                       .of_pylate = type == kPyLateDense,
                       .of_jina = type == kJinaTransformer};
  }
  return Status(
      ErrorCode::kUnsupported,
      where + ": type is " + Quoted(type) +
          "; wanted Transformer, CLIPModel, StaticEmbedding, Pooling, Dense, Normalize, "
          "LayerNorm, Dropout, SpladePooling, SparseStaticEmbedding, Router, MultiVectorMask or "
          "LogitScore of sentence_transformers, or st_quantize.FlexibleQuantizer");
}

std::string_view TaskName(TransformerTask task) {
  switch (task) {
    case TransformerTask::kExtractFeatures:
      return "feature-extraction";
    case TransformerTask::kClassify:
      return "sequence-classification";
    case TransformerTask::kFillMask:
      return "fill-mask";
    case TransformerTask::kGenerate:
      return "text-generation";
  }
  return "";
}

std::string Within(std::string_view path, std::string_view name) {
  if (path.empty()) return std::string(name);
  return std::string(path) + "/" + std::string(name);
}

Result<ModelFolder> FindFolder(FolderUse use, const FolderReading& reading) {
  ModelFolder found{.folder = reading.folder};
  ENCORE_ASSIGN_OR_RETURN(found.modules, ReadModuleList(&found.routes, reading));
  ModelModalities model;
  if (found.has_modules()) {
    ENCORE_RETURN_IF_ERROR(OpenFirstModule(&found, &model, reading));
  } else {
    ENCORE_ASSIGN_OR_RETURN(found.model2vec, ReadModel2Vec(reading));
    if (!found.model2vec) {
      NoteIgnored(reading);
      ENCORE_ASSIGN_OR_RETURN(model, FindModalities(reading.folder));
    }
  }
  found.makes_features = model.pools_text;
  ENCORE_ASSIGN_OR_RETURN(found.kind, DecideKind(found, use, reading));
  return found;
}

Result<bool> ReadUsesTypeIds(const ModelFolder& transformer, size_t type_vocab_size,
                             const FolderReading& reading) {
  if (type_vocab_size == 0) return false;
  const std::string file = Within(transformer.path, "tokenizer_config.json");
  ENCORE_ASSIGN_OR_RETURN(const std::optional<JsonValue> json, reading.folder.ReadJson(file));
  if (json.has_value()) {
    JsonMembers members(*json, file);
    if (members.Has("model_input_names")) {
      const JsonValue& names = members.RequiredArray("model_input_names");
      if (!members.ok()) return members.status();
      const bool listed =
          std::any_of(names.items().begin(), names.items().end(), [](const JsonValue& name) {
            return name.is_string() && name.text() == "token_type_ids";
          });
      if (!listed) reading.Note("type ids", "all 0, as model_input_names lacks them", file);
      return listed;
    }
    if (!members.ok()) return members.status();
  }
  ENCORE_ASSIGN_OR_RETURN(const TokenizerClass which, ChooseTokenizerClass(transformer.folder));
  if (!which.type_ids) {
    reading.Note(
        "type ids",
        "all 0, as the tokenizer's class is " + which.name +
            (which.old_type_ids ? " (transformers 4 gave a pair's second text others)" : ""),
        Within(transformer.path, which.source));
  }
  return which.type_ids;
}

Result<size_t> ChooseMaxLength(const LengthSources& sources, const FolderReading& reading) {
  const std::string what = "maximum length";
  const size_t most = sources.model_maximum;
  const size_t least = std::max<size_t>(sources.special_tokens, 1);
  const std::string why_least = least > 1 ? "the tokenizer's special tokens" : "";
  if (sources.option) {
    if (*sources.option < least || *sources.option > most) {
      return InvalidArgument("max_length is " + std::to_string(*sources.option) + "; wanted " +
                             std::to_string(least) + " to " + std::to_string(most) + ", " +
                             (least > 1 ? why_least + " and " : "") + "the model's positions");
    }
    reading.Note(what, std::to_string(*sources.option), "option max_length");
    return *sources.option;
  }
  size_t cap = sources.model_usual;
  size_t length = cap;
  std::string source = "config.json";
  if (sources.settings.max_seq_length) {
    cap = most;
    length = *sources.settings.max_seq_length;
    source = sources.settings.file;
  } else if (sources.tokenizer_maximum) {
    length = *sources.tokenizer_maximum;
    source = "tokenizer_config.json";
  }
  if (length < least) {
    return InvalidArgument(source + ": the maximum length is " + std::to_string(length) +
                           "; wanted at least " + std::to_string(least) +
                           (least > 1 ? ", " + why_least : ""));
  }
  const bool is_capped = length > cap;
  const bool by_model = is_capped || source == "config.json";
  const std::string others = by_model && sources.positions_skip_padding
                                 ? "; sentence-transformers takes more where texts have padding"
                                 : "";
  if (!is_capped) {
    reading.Note(what, std::to_string(length) + others, source);
    return length;
  }
  reading.Note(what, std::to_string(cap) + ", as the model has no more positions" + others,
               "config.json");
  reading.Note("ignored", "maximum length " + std::to_string(length), source);
  return cap;
}

}  // namespace encore::internal
