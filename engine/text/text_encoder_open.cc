// SPDX-License-Identifier: Apache-2.0
//
// Opens a model's folder: reads its files in the order in which they count, and keeps what was
// decided.

#include <algorithm>
#include <array>
#include <new>
#include <utility>

#include "engine/base/out_of_memory.h"
#include "engine/base/quoted.h"
#include "engine/text/max_length.h"
#include "engine/text/module_list.h"
#include "engine/text/score_activation.h"
#include "engine/text/text_encoder_impl.h"
#include "engine/text/transformer_settings.h"
#include "engine/text/type_ids.h"

namespace encore {

using internal::Folder;
using internal::FolderReading;
using internal::ModuleEntry;

namespace {

// The tokenizer, or why texts cannot be used where ids can.
Result<Tokenizer> OpenTokenizer(const std::string& path,
                                const internal::TransformerSettings& settings,
                                const FolderReading& reading) {
  Result<Tokenizer> tokenizer = Tokenizer::Open(path, {.lowercase = settings.lower_case});
  if (tokenizer.ok()) {
    for (const Decision& decision : tokenizer->Describe()) reading.decisions.push_back(decision);
    return tokenizer;
  }
  reading.Tell("tokenizer", "none: ids only", tokenizer.status().message());
  return tokenizer;
}

bool MayLackTokenizer(const Status& status) {
  return status.ok() || status.code() == ErrorCode::kUnsupported ||
         status.code() == ErrorCode::kNotFound;
}

// Files that sentence-transformers does not look at without modules.json.
internal::TransformerSettings WithoutModules(const FolderReading& reading) {
  for (const std::string_view file : internal::TransformerSettingsFiles()) {
    const Result<std::optional<internal::MappedFile>> found = reading.folder.Read(file);
    if (found.ok() && found->has_value()) {
      reading.Tell("ignored", "all of it, as there is no modules.json", std::string(file));
    }
  }
  return {};
}

// The folder of the Transformer module.
Result<Folder> TransformerFolder(const Folder& folder, const std::string& path) {
  if (path.empty()) return folder;
  return Folder::Open(folder.PathOf(path));
}

Result<std::shared_ptr<const TextEncoder::Impl>> OpenImpl(const std::string& folder_path,
                                                          const OpenOptions& options) {
  const Result<Folder> folder = Folder::Open(folder_path);
  if (!folder.ok()) return folder.status();
  std::vector<Decision> decisions;
  const FolderReading reading{*folder, options.ignore_unknown_keys, decisions};

  const Result<std::optional<std::vector<ModuleEntry>>> modules = internal::ReadModuleList(reading);
  if (!modules.ok()) return modules.status();
  const bool has_modules = modules->has_value();
  const std::string path = has_modules ? (**modules)[0].path : std::string();
  const Result<Folder> inner = TransformerFolder(*folder, path);
  if (!inner.ok()) return inner.status();

  Result<internal::TextModel> model = internal::TextModel::Open(
      *inner, {.ignore_unknown_keys = options.ignore_unknown_keys, .executor = options.executor},
      &decisions);
  if (!model.ok()) return model.status();
  internal::TransformerSettings settings;
  if (has_modules) {
    Result<internal::TransformerSettings> read = internal::ReadTransformerSettings(path, reading);
    if (!read.ok()) return read.status();
    settings = *std::move(read);
  } else {
    settings = WithoutModules(reading);
  }
  Result<Tokenizer> tokenizer = OpenTokenizer(inner->path(), settings, reading);
  if (!MayLackTokenizer(tokenizer.status())) return tokenizer.status();

  const Result<size_t> max_length = internal::ResolveMaxLength(
      {.option = options.max_length,
       .settings = settings,
       .tokenizer_maximum =
           tokenizer.ok() ? tokenizer->model_max_length() : std::optional<size_t>(),
       .model_maximum = model->max_tokens()},
      reading);
  if (!max_length.ok()) return max_length.status();
  const Result<bool> use_type_ids =
      internal::ReadUsesTypeIds(path, model->type_vocab_size(), reading);
  if (!use_type_ids.ok()) return use_type_ids.status();

  Result<internal::SentenceConfig> config = internal::ReadSentenceConfig(has_modules, reading);
  if (!config.ok()) return config.status();

  std::optional<internal::AfterEncoder> after;
  if (!settings.classifies) {
    std::span<const ModuleEntry> rest;
    if (has_modules) rest = std::span<const ModuleEntry>(**modules).subspan(1);
    Result<internal::AfterEncoder> read =
        internal::AfterEncoder::Read(rest, model->d_model(), options.pooling, reading);
    if (!read.ok()) return read.status();
    after = *std::move(read);
    if (options.normalize) {
      reading.Tell("normalize", *options.normalize ? "to length 1" : "no", "option normalize");
    }
  } else if ((*modules)->size() > 1) {
    return Status(ErrorCode::kUnsupported,
                  "modules.json: found modules behind a transformer that classifies; encore has "
                  "none of them");
  }
  Result<ScoreActivation> activation = ScoreActivation::kIdentity;
  if (model->has_head()) {
    activation = internal::ReadScoreActivation(path, *config, model->labels().size(), reading);
    if (!activation.ok()) {
      if (activation.status().code() != ErrorCode::kUnsupported) return activation.status();
      reading.Tell("scores", "only with an activation of the caller's",
                   activation.status().message());
    }
  }
  if (config->truncate_dim && after) {
    reading.Tell("dimensions", std::to_string(std::min(*config->truncate_dim, after->width())),
                 std::string(internal::kSentenceConfigFile));
  }
  return std::shared_ptr<const TextEncoder::Impl>(new TextEncoder::Impl{
      .model = *std::move(model),
      .tokenizer = std::move(tokenizer),
      .after = std::move(after),
      .activation = std::move(activation),
      .config = *std::move(config),
      .max_length = *max_length,
      .use_type_ids = *use_type_ids,
      .normalize = options.normalize,
      .decisions = std::move(decisions),
  });
}

}  // namespace

Result<TextEncoder> TextEncoder::Open(const std::string& folder, const OpenOptions& options) try {
  Result<std::shared_ptr<const Impl>> impl = OpenImpl(folder, options);
  if (!impl.ok()) return impl.status();
  return TextEncoder(*std::move(impl));
} catch (const std::bad_alloc&) {
  return internal::OutOfMemory();
}

size_t TextEncoder::dimensions() const { return impl_->after ? impl_->dimensions() : 0; }
size_t TextEncoder::d_model() const { return impl_->model.d_model(); }
size_t TextEncoder::max_length() const { return impl_->max_length; }
bool TextEncoder::has_tokenizer() const { return impl_->tokenizer.ok(); }
const Tokenizer& TextEncoder::tokenizer() const { return *impl_->tokenizer; }
const Encoder& TextEncoder::encoder() const { return impl_->model.encoder(); }
const std::vector<std::string>& TextEncoder::labels() const { return impl_->model.labels(); }
const std::vector<std::pair<std::string, std::string>>& TextEncoder::prompts() const {
  return impl_->config.prompts;
}
const std::vector<Decision>& TextEncoder::Describe() const { return impl_->decisions; }

}  // namespace encore
