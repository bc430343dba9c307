// SPDX-License-Identifier: Apache-2.0
//
// Decides a folder's kind, and checks the order of its modules against it.

#include "engine/text/folder_kind.h"

#include <algorithm>
#include <initializer_list>
#include <span>
#include <string_view>

#include "engine/base/status_macros.h"
#include "engine/text/folder_files.h"
#include "engine/text/m3_heads.h"

namespace encore::inline v0_1::internal {
namespace {

class ModuleSet {
 public:
  constexpr ModuleSet(std::initializer_list<ModuleKind> kinds) {
    for (const ModuleKind kind : kinds) bits_ |= Bit(kind);
  }
  constexpr bool empty() const { return bits_ == 0; }
  constexpr bool has(ModuleKind kind) const { return (bits_ & Bit(kind)) != 0; }

 private:
  static constexpr uint32_t Bit(ModuleKind kind) { return uint32_t{1} << static_cast<int>(kind); }
  uint32_t bits_ = 0;
};

// The modules of a kind, one of `first`, one of `second` unless that is empty, and any number of
// `behind`; and the transformer's task.
struct KindModules {
  FolderKind kind;
  ModuleSet first;
  ModuleSet second;
  ModuleSet behind;
  std::string_view text;
  TransformerTask task = TransformerTask::kExtractFeatures;
};

constexpr ModuleSet kTransformers = {ModuleKind::kTransformer, ModuleKind::kMlmTransformer,
                                     ModuleKind::kClipModel};
constexpr ModuleSet kBehindVectors = {ModuleKind::kDense, ModuleKind::kNormalize,
                                      ModuleKind::kLayerNorm, ModuleKind::kDropout,
                                      ModuleKind::kQuantize};
constexpr KindModules kKindModules[] = {
    {FolderKind::kDense,
     kTransformers,
     {ModuleKind::kPooling},
     kBehindVectors,
     "Transformer and Pooling, then Dense, Normalize, LayerNorm, Dropout and FlexibleQuantizer"},
    {FolderKind::kTransformer, kTransformers, {}, {}, "Transformer alone, where it classifies"},
    {FolderKind::kLogitScore,
     kTransformers,
     {ModuleKind::kLogitScore},
     {},
     "Transformer and LogitScore alone",
     TransformerTask::kGenerate},
    {FolderKind::kSparse,
     kTransformers,
     {ModuleKind::kSpladePooling},
     {},
     "Transformer and SpladePooling alone",
     TransformerTask::kFillMask},
    {FolderKind::kSparseStatic, {ModuleKind::kSparseStatic}, {}, {}, "SparseStaticEmbedding alone"},
    {FolderKind::kStatic,
     {ModuleKind::kStaticEmbedding},
     {},
     kBehindVectors,
     "StaticEmbedding, then Dense, Normalize, LayerNorm, Dropout and FlexibleQuantizer"},
    {FolderKind::kLate,
     {ModuleKind::kTransformer},
     {},
     {ModuleKind::kDense, ModuleKind::kMultiVectorMask, ModuleKind::kNormalize},
     "Transformer, then Dense, MultiVectorMask and Normalize, for late interaction"},
    {FolderKind::kFeatures,
     kTransformers,
     {},
     {ModuleKind::kDense, ModuleKind::kNormalize, ModuleKind::kLayerNorm, ModuleKind::kDropout},
     "Transformer, then Dense, Normalize, LayerNorm and Dropout, as the model makes a vector of "
     "each text"},
};

// Null for kinds without modules.json.
const KindModules* ModulesOf(FolderKind kind) {
  for (const KindModules& known : kKindModules) {
    if (known.kind == kind) return &known;
  }
  return nullptr;
}

Status CheckOrder(const KindModules& wanted, std::span<const ModuleEntry> modules) {
  for (size_t i = 0; i < modules.size(); ++i) {
    const bool is_second = i == 1 && !wanted.second.empty();
    const ModuleSet& fitting = i == 0 ? wanted.first : is_second ? wanted.second : wanted.behind;
    if (fitting.has(modules[i].kind)) continue;
    return Status(ErrorCode::kUnsupported, "modules.json: module " + std::to_string(i) +
                                               " is out of order; wanted " +
                                               std::string(wanted.text));
  }
  return {};
}

Result<bool> IsStanford(const FolderReading& reading) {
  ENCORE_ASSIGN_OR_RETURN(const std::optional<JsonValue> json,
                          reading.folder.ReadJson("config.json"));
  if (!json.has_value()) return false;
  if (!json->is_object()) {
    return Status(ErrorCode::kCorruptData,
                  "config.json: found " + json->Described() + "; wanted an object");
  }
  const std::vector<JsonValue>& names = (*json)["architectures"].items();
  return std::any_of(names.begin(), names.end(), [](const JsonValue& name) {
    return name.is_string() && name.text() == "HF_ColBERT";
  });
}

// As sentence-transformers decides: by model_type of config_sentence_transformers.json
// ("MultiVectorEncoder", PyLate's "ColBERT"); without that key by a module of PyLate's or a
// MultiVectorMask, or by Stanford's class in config.json.
Result<bool> IsLateInteraction(const ModelFolder& found, const FolderReading& reading) {
  ENCORE_ASSIGN_OR_RETURN(const std::optional<JsonValue> json,
                          reading.folder.ReadJson(kSentenceConfigFile));
  if (!found.has_modules()) return IsStanford(reading);
  if (json.has_value() && (*json)["model_type"].is_string()) {
    const std::string& type = (*json)["model_type"].text();
    return type == "MultiVectorEncoder" || type == "ColBERT";
  }
  return std::any_of(found.modules.begin(), found.modules.end(), [](const ModuleEntry& entry) {
    return entry.of_pylate || entry.kind == ModuleKind::kMultiVectorMask;
  });
}

// By the modules, and by the first two where there are more.
FolderKind KindOfModules(const ModelFolder& found, bool is_late) {
  const std::vector<ModuleEntry>& modules = found.modules;
  const bool is_classifier = found.settings.task == TransformerTask::kClassify;
  if (is_classifier && modules.size() > 1) return FolderKind::kTransformer;
  if (is_late) return FolderKind::kLate;
  if (modules[0].kind == ModuleKind::kStaticEmbedding) return FolderKind::kStatic;
  if (modules[0].kind == ModuleKind::kSparseStatic) return FolderKind::kSparseStatic;
  if (found.makes_features) return FolderKind::kFeatures;
  if (modules.size() == 1) return FolderKind::kTransformer;
  if (modules[1].kind == ModuleKind::kSpladePooling) return FolderKind::kSparse;
  if (modules[1].kind == ModuleKind::kLogitScore) return FolderKind::kLogitScore;
  return FolderKind::kDense;
}

Result<FolderKind> KindOf(const ModelFolder& found, FolderUse use, const FolderReading& reading) {
  if (found.model2vec) return FolderKind::kModel2Vec;
  bool is_late = false;
  if (use != FolderUse::kTokenizer) {
    ENCORE_ASSIGN_OR_RETURN(is_late, IsLateInteraction(found, reading));
  }
  if (is_late && found.makes_features) {
    return Status(
        ErrorCode::kUnsupported,
        "config.json: the model makes a vector of each text; wanted one whose tokens have "
        "vectors in a folder of late interaction");
  }
  if (found.has_modules()) return KindOfModules(found, is_late);
  if (is_late) return FolderKind::kStanford;
  return found.makes_features ? FolderKind::kFeatures : FolderKind::kCheckpoint;
}

Result<bool> IsM3(FolderKind kind, const ModelFolder& found) {
  switch (kind) {
    case FolderKind::kCheckpoint:
    case FolderKind::kDense:
    case FolderKind::kTransformer:
      return found.folder.Has(kTokenVectorFile);
    default:
      return false;
  }
}

Status CheckUse(FolderKind kind, FolderUse use) {
  if (IsLate(kind) && use == FolderUse::kTextEncoder) {
    return Status(ErrorCode::kUnsupported,
                  "the folder's model has a vector for each token (late interaction); wanted one "
                  "of TextEncoder's: MultiVectorEncoder opens it");
  }
  if (!IsLate(kind) && use == FolderUse::kMultiVectorEncoder) {
    return Status(ErrorCode::kUnsupported,
                  "the folder's model is not one of late interaction; wanted one of "
                  "MultiVectorEncoder's: TextEncoder opens others");
  }
  return {};
}

// A classifier's modules were checked.
Status CheckTask(const KindModules& wanted, const TransformerSettings& settings) {
  if (settings.task == wanted.task || settings.task == TransformerTask::kClassify) return {};
  return Status(ErrorCode::kUnsupported,
                (settings.file.empty() ? "modules.json" : settings.file) +
                    ": transformer_task is " + Quoted(TaskName(settings.task)) + "; wanted " +
                    Quoted(TaskName(wanted.task)) + " with " + std::string(wanted.text));
}

Status CheckLengths(FolderKind kind, const TransformerSettings& settings) {
  const TaskLengths& lengths = settings.lengths;
  if (IsLate(kind) || lengths.empty()) return {};
  const auto is = [](const char* key, size_t length) {
    return std::string(key) + " is " + std::to_string(length);
  };
  const std::string found = lengths.query && *lengths.query ? is("query_length", **lengths.query)
                            : lengths.document && *lengths.document
                                ? is("document_length", **lengths.document)
                                : "query_expansion is an object";
  return InvalidArgument(settings.file + ": " + found +
                         "; wanted null but in models of late interaction");
}

}  // namespace

Result<FolderKind> DecideKind(const ModelFolder& found, FolderUse use,
                              const FolderReading& reading) {
  ENCORE_ASSIGN_OR_RETURN(const FolderKind by_modules, KindOf(found, use, reading));
  FolderKind kind = by_modules;
  if (use == FolderUse::kMultiVectorEncoder) {
    ENCORE_ASSIGN_OR_RETURN(const bool is_m3, IsM3(by_modules, found));
    if (is_m3) kind = FolderKind::kM3;
  }
  ENCORE_RETURN_IF_ERROR(CheckUse(kind, use));
  const KindModules* const wanted = found.has_modules() ? ModulesOf(by_modules) : nullptr;
  std::span<const ModuleEntry> modules(found.modules);
  if (use == FolderUse::kTokenizer) modules = modules.first(wanted != nullptr ? 1 : 0);
  if (wanted != nullptr) ENCORE_RETURN_IF_ERROR(CheckOrder(*wanted, modules));
  if (use == FolderUse::kTokenizer) return kind;
  ENCORE_RETURN_IF_ERROR(CheckLengths(kind, found.settings));
  if (wanted != nullptr) ENCORE_RETURN_IF_ERROR(CheckTask(*wanted, found.settings));
  return kind;
}

}  // namespace encore::internal
