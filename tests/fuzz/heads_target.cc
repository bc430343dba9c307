// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as the files around a model with another head than a vector of each text: routers,
// weights by token, chat templates, late interaction, BGE-M3's heads, Model2Vec, adapters,
// pictures. An error with a sentence, or a model that keeps its promises on two texts or pictures.
//
// The input's first part names a folder of kFolders; each further part is a file's name, a line's
// end and its content, in place of the folder's own. Weights and tokenizers are the folder's:
// other targets change those.

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "encore/image_encoder.h"
#include "encore/multi_vector_encoder.h"
#include "encore/text_encoder.h"
#include "tests/fuzz/memory_folder.h"
#include "tests/fuzz/target.h"

namespace encore::fuzz {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFolders[] = {
    "heads/router", "heads/splade_bert",     "heads/reranker_qwen3", "heads/reranker_llama",
    "heads/m3",     "heads/model2vec_alone", "heads/static_f16",     "heads/ner_bert",
    "late/own",     "late/pylate",           "late/stanford",        "models/jina_v3_folders",
    "vision/clip",  "vision/siglip_vision",  "vision/vit",           "vision/dinov2_registers",
    "vision/deit",  "vision/clip_sentence",
};
// Files that a folder may get beside its own.
constexpr std::string_view kMore[] = {
    "chat_template.jinja", "router_config.json",    "query_0_SparseStaticEmbedding/idf.json",
    "artifact.metadata",   "processor_config.json",
};

std::string FileContent(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// A copy of one of kFolders, gone at the end of the process.
class CopiedModel {
 public:
  explicit CopiedModel(std::string_view name) {
    const fs::path source = fs::path(ENCORE_TEST_DATA_DIR) / name;
    path_ = NewMemoryFolder();
    fs::copy(source, path_, fs::copy_options::recursive);
    for (const auto& entry : fs::recursive_directory_iterator(source)) {
      const std::string file = fs::relative(entry.path(), source).string();
      const bool is_kept = file.ends_with(".safetensors") || file.ends_with("expected.json") ||
                           file.ends_with("tokenizer.json");
      if (entry.is_regular_file() && !is_kept) own_[file] = FileContent(entry.path());
    }
    for (const std::string_view file : kMore) own_.try_emplace(std::string(file));
  }
  ~CopiedModel() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  CopiedModel(const CopiedModel&) = delete;
  CopiedModel& operator=(const CopiedModel&) = delete;

  std::string path() const { return path_.string(); }

  // These contents by name, and of all other files the folder's own.
  void Change(const std::map<std::string, std::string>& files) {
    for (const std::string& name : changed_) Write(name, own_.at(name));
    changed_.clear();
    for (const auto& [name, content] : files) {
      if (own_.find(name) == own_.end()) continue;
      Write(name, content);
      changed_.push_back(name);
    }
  }

 private:
  // Empty: there is no such file.
  void Write(const std::string& name, const std::string& content) const {
    const fs::path file = path_ / name;
    fs::remove(file);
    if (content.empty() || !fs::exists(file.parent_path())) return;
    std::ofstream(file, std::ios::binary) << content;
  }

  fs::path path_;
  std::map<std::string, std::string> own_;
  std::vector<std::string> changed_;
};

// Whatever it is, with a sentence where it is an error.
template <typename T>
bool IsUsable(const Result<T>& result) {
  if (!result.ok()) CheckError(result.status());
  return result.ok();
}

void UseTexts(const TextEncoder& model) {
  for (const Decision& decision : model.Describe()) {
    ENCORE_FUZZ_CHECK(!decision.what.empty() && !decision.source.empty());
  }
  const std::vector<std::string> texts = {"the water of the river", ""};
  if (const auto vectors = model.Encode(texts); IsUsable(vectors)) {
    ENCORE_FUZZ_CHECK(vectors->vectors.shape() == Shape({texts.size(), model.dimensions()}));
  }
  for (const char* const task : {"query", "document"}) {
    const auto sparse = model.EncodeSparse(texts, {.task = task});
    if (!IsUsable(sparse)) continue;
    ENCORE_FUZZ_CHECK(sparse->columns == model.sparse_dimensions());
    ENCORE_FUZZ_CHECK(sparse->row_starts.size() == texts.size() + 1);
    ENCORE_FUZZ_CHECK(sparse->row_starts.back() == sparse->values.size());
    for (const int32_t index : sparse->indices) {
      ENCORE_FUZZ_CHECK(index >= 0 && static_cast<size_t>(index) < sparse->columns);
    }
  }
  if (const auto scores = model.Score("a query", texts); IsUsable(scores)) {
    ENCORE_FUZZ_CHECK(scores->values.size() == texts.size());
  }
  if (const auto entities = model.FindEntities(texts); IsUsable(entities)) {
    ENCORE_FUZZ_CHECK(entities->of_texts.size() == texts.size());
  }
}

void UseTokens(const MultiVectorEncoder& model) {
  const std::vector<std::string> texts = {"the water of the river", ""};
  for (const TextTask task : {TextTask::kNone, TextTask::kQuery, TextTask::kDocument}) {
    const auto vectors = model.Encode(texts, {}, task);
    if (!IsUsable(vectors)) continue;
    ENCORE_FUZZ_CHECK(vectors->row_starts.size() == texts.size() + 1);
    ENCORE_FUZZ_CHECK(vectors->vectors.shape() ==
                      Shape({vectors->row_starts.back(), model.dimensions()}));
  }
}

void UsePictures(const ImageEncoder& model) {
  // A processor may want large pictures, which take long and show nothing more.
  if (model.tokens() > 512 || model.height() > 1024 || model.width() > 1024) return;
  const std::vector<uint8_t> pixels(size_t{7} * 5 * 3, 99);
  const ImageView view{.pixels = pixels.data(), .width = 5, .height = 7, .stride = 15};
  const std::vector<ImageView> views = {
      view, {.pixels = pixels.data(), .width = 9, .height = 3, .stride = 11, .channels = 1}};
  if (const auto vectors = model.Encode(views); IsUsable(vectors)) {
    ENCORE_FUZZ_CHECK(vectors->shape() == Shape({views.size(), model.dimensions()}));
  }
  if (const auto patches = model.EncodePatches(view); IsUsable(patches)) {
    ENCORE_FUZZ_CHECK(patches->first_patch + patches->rows * patches->columns == model.tokens());
  }
}

}  // namespace

void RunHeads(std::string_view input) {
  static std::map<std::string_view, std::unique_ptr<CopiedModel>> models;
  constexpr size_t kMostFiles = 4;
  const std::vector<std::string_view> parts = Parts(input, 1 + kMostFiles);
  std::string_view name = kFolders[input.size() % std::size(kFolders)];
  for (const std::string_view known : kFolders) {
    if (parts[0] == known) name = known;
  }
  std::unique_ptr<CopiedModel>& model = models[name];
  if (model == nullptr) model = std::make_unique<CopiedModel>(name);
  std::map<std::string, std::string> files;
  for (size_t i = 1; i < parts.size(); ++i) {
    const size_t end = parts[i].find('\n');
    if (end == std::string_view::npos) continue;
    files[std::string(parts[i].substr(0, end))] = parts[i].substr(end + 1);
  }
  model->Change(files);
  OpenOptions options{.ignore_unknown_keys = input.size() % 2 == 1};
  if (name == "models/jina_v3_folders") options.task = "retrieval.query";
  if (const auto texts = TextEncoder::Open(model->path(), options); IsUsable(texts)) {
    UseTexts(*texts);
  }
  options.task.clear();
  if (const auto tokens = MultiVectorEncoder::Open(model->path(), options); IsUsable(tokens)) {
    UseTokens(*tokens);
  }
  if (const auto pictures = ImageEncoder::Open(model->path(), options); IsUsable(pictures)) {
    UsePictures(*pictures);
  }
}

}  // namespace encore::fuzz
