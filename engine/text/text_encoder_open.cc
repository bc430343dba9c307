// SPDX-License-Identifier: Apache-2.0
//
// Opens a model's folder: reads its files in the order in which they count, and keeps what was
// decided. Or its tokenizer alone.

#include <algorithm>
#include <limits>
#include <utility>

#include "engine/base/guarded.h"
#include "engine/base/status_macros.h"
#include "engine/models/family.h"
#include "engine/text/text_encoder_impl.h"

namespace encore::inline v0_1 {

using internal::Folder;
using internal::FolderReading;
using internal::ModuleEntry;

namespace {

Result<Tokenizer> OpenTokenizer(const internal::TransformerFolder& found) {
  return Tokenizer::Open(found.folder.path(), {.lowercase = found.settings.lower_case});
}

// What encore or the folder has not: without a tokenizer ids are of use, without a model the
// tokenizer is.
bool MayBeMissing(const Status& status) {
  return status.code() == ErrorCode::kUnsupported || status.code() == ErrorCode::kNotFound;
}

Result<std::shared_ptr<const TextEncoder::Impl>> OpenImpl(const std::string& folder_path,
                                                          const OpenOptions& options) {
  ENCORE_ASSIGN_OR_RETURN(const Folder folder, Folder::Open(folder_path));
  std::vector<Decision> decisions;
  const FolderReading reading{folder, options.ignore_unknown_keys, decisions};

  ENCORE_ASSIGN_OR_RETURN(internal::TransformerFolder found, internal::FindTransformer(reading));
  const bool has_modules = found.modules.has_value();

  ENCORE_ASSIGN_OR_RETURN(internal::TextModel model,
                          internal::TextModel::Open(found.folder, options, &decisions));
  Result<Tokenizer> tokenizer = OpenTokenizer(found);
  if (tokenizer.ok()) {
    for (const Decision& decision : tokenizer->Describe()) decisions.push_back(decision);
  } else {
    if (!MayBeMissing(tokenizer.status())) return tokenizer.status();
    reading.Tell("tokenizer", "none: ids only", tokenizer.status().message());
  }
  ENCORE_ASSIGN_OR_RETURN(
      const size_t max_length,
      internal::ChooseMaxLength(
          {.option = options.max_length,
           .settings = found.settings,
           .tokenizer_maximum =
               tokenizer.ok() ? tokenizer->model_max_length() : std::optional<size_t>(),
           .model_usual = model.usual_tokens(),
           .model_maximum = model.max_tokens(),
           .special_tokens = tokenizer.ok() ? tokenizer->special_tokens_of_text() : 0,
           .positions_skip_padding = model.positions_skip_padding()},
          reading));
  ENCORE_ASSIGN_OR_RETURN(const bool use_type_ids,
                          internal::ReadUsesTypeIds(found, model.type_vocab_size(), reading));
  ENCORE_ASSIGN_OR_RETURN(internal::SentenceConfig config,
                          internal::ReadSentenceConfig(has_modules, reading));

  std::optional<internal::AfterEncoder> after;
  std::span<const ModuleEntry> rest;
  if (has_modules) rest = std::span<const ModuleEntry>(*found.modules).subspan(1);
  if (found.settings.classifies && !rest.empty()) {
    return Status(ErrorCode::kUnsupported,
                  "modules.json: found modules behind a transformer that classifies; encore has "
                  "none of them");
  }
  // Where modules.json lists a transformer alone, nothing makes vectors of texts.
  const bool pools = !has_modules || !rest.empty() || !options.pooling.empty();
  if (pools) {
    ENCORE_ASSIGN_OR_RETURN(
        after, internal::AfterEncoder::Read(rest, model.hidden_width(), options.pooling, reading));
    if (options.normalize) {
      reading.Tell("normalize", *options.normalize ? "to length 1" : "no", "option normalize");
    }
  }
  Result<const internal::TorchActivation*> activation =
      internal::FindTorchActivation("torch.nn.Identity");
  if (model.has_head()) {
    activation = internal::ReadScoreActivation(found.path, config, model.labels().size(), reading);
    if (!activation.ok()) {
      if (activation.status().code() != ErrorCode::kUnsupported) return activation.status();
      reading.Tell("scores", "only with an activation of the caller's",
                   activation.status().message());
    }
  }
  if (config.truncate_dim && after) {
    reading.Tell("dimensions", std::to_string(std::min(*config.truncate_dim, after->width())),
                 std::string(internal::kSentenceConfigFile));
  }
  return std::shared_ptr<const TextEncoder::Impl>(new TextEncoder::Impl{
      .model = std::move(model),
      .tokenizer = std::move(tokenizer),
      .after = std::move(after),
      .activation = std::move(activation),
      .config = std::move(config),
      .max_length = max_length,
      .use_type_ids = use_type_ids,
      .normalize = options.normalize,
      .decisions = std::move(decisions),
  });
}

// A model's tokens of a text, unless a caller or a file wants more, and at most; the largest
// numbers where its family or its config.json is not known.
struct ModelLengths {
  size_t usual = std::numeric_limits<size_t>::max();
  size_t maximum = std::numeric_limits<size_t>::max();
};

Result<ModelLengths> ReadLengths(const Folder& folder, bool ignore_unknown_keys) {
  std::vector<Decision> decisions;
  const Result<internal::ModelPlan> plan =
      internal::ReadModelConfig(folder, ignore_unknown_keys, &decisions);
  if (plan.ok()) {
    return ModelLengths{plan->embeddings.usual_tokens(), plan->embeddings.max_tokens()};
  }
  if (MayBeMissing(plan.status())) return ModelLengths();
  return plan.status();
}

}  // namespace

Result<internal::FolderTokenizer> internal::OpenFolderTokenizer(const std::string& path,
                                                                bool ignore_unknown_keys) {
  return Guarded("the tokenizer", [&]() -> Result<FolderTokenizer> {
    ENCORE_ASSIGN_OR_RETURN(const Folder folder, Folder::Open(path));
    std::vector<Decision> decisions;
    const FolderReading reading{folder, ignore_unknown_keys, decisions};
    ENCORE_ASSIGN_OR_RETURN(const TransformerFolder found, FindTransformer(reading));
    ENCORE_ASSIGN_OR_RETURN(const Tokenizer tokenizer, OpenTokenizer(found));
    ENCORE_ASSIGN_OR_RETURN(const ModelLengths lengths,
                            ReadLengths(found.folder, ignore_unknown_keys));
    ENCORE_ASSIGN_OR_RETURN(const size_t length,
                            ChooseMaxLength({.option = {},
                                             .settings = found.settings,
                                             .tokenizer_maximum = tokenizer.model_max_length(),
                                             .model_usual = lengths.usual,
                                             .model_maximum = lengths.maximum},
                                            reading));
    const bool is_known = length < std::numeric_limits<size_t>::max();
    ENCORE_ASSIGN_OR_RETURN(const bool type_ids, ReadUsesTypeIds(found, 1, reading));
    return FolderTokenizer{tokenizer, is_known ? length : 0, type_ids};
  });
}

Result<TextEncoder> TextEncoder::Open(const std::string& folder, const OpenOptions& options) {
  return internal::Guarded("the model", [&]() -> Result<TextEncoder> {
    ENCORE_ASSIGN_OR_RETURN(std::shared_ptr<const Impl> impl, OpenImpl(folder, options));
    return TextEncoder(std::move(impl));
  });
}

size_t TextEncoder::dimensions() const { return impl_->after ? impl_->dimensions() : 0; }
size_t TextEncoder::d_model() const { return impl_->model.hidden_width(); }
size_t TextEncoder::max_length() const { return impl_->max_length; }
bool TextEncoder::has_tokenizer() const { return impl_->tokenizer.ok(); }
const Tokenizer& TextEncoder::tokenizer() const& { return *impl_->tokenizer; }
const Encoder& TextEncoder::encoder() const& { return impl_->model.encoder(); }
const std::vector<std::string>& TextEncoder::labels() const& { return impl_->model.labels(); }
const std::vector<std::pair<std::string, std::string>>& TextEncoder::prompts() const& {
  return impl_->config.prompts;
}
const std::vector<Decision>& TextEncoder::Describe() const& { return impl_->decisions; }

}  // namespace encore
