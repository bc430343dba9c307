// SPDX-License-Identifier: Apache-2.0
//
// Opens a model's folder: reads its files in the order in which they count, and keeps what was
// decided.

#include <algorithm>
#include <utility>

#include "engine/base/guarded.h"
#include "engine/base/quoted.h"
#include "engine/base/status_macros.h"
#include "engine/text/folder_tokenizer.h"
#include "engine/text/text_encoder_impl.h"

namespace encore::inline v0_1 {

using internal::Folder;
using internal::FolderReading;
using internal::ModuleEntry;

namespace {

// The tokenizer, or why texts cannot be used where ids can.
Result<Tokenizer> OpenTokenizer(const internal::TransformerFolder& found,
                                const FolderReading& reading) {
  Result<Tokenizer> tokenizer = internal::OpenTokenizer(found);
  if (tokenizer.ok()) {
    for (const Decision& decision : tokenizer->Describe()) reading.decisions.push_back(decision);
  } else {
    reading.Tell("tokenizer", "none: ids only", tokenizer.status().message());
  }
  return tokenizer;
}

bool MayLackTokenizer(const Status& status) {
  return status.ok() || status.code() == ErrorCode::kUnsupported ||
         status.code() == ErrorCode::kNotFound;
}

Result<std::shared_ptr<const TextEncoder::Impl>> OpenImpl(const std::string& folder_path,
                                                          const OpenOptions& options) {
  ENCORE_ASSIGN_OR_RETURN(const Folder folder, Folder::Open(folder_path));
  std::vector<Decision> decisions;
  const FolderReading reading{folder, options.ignore_unknown_keys, decisions};

  ENCORE_ASSIGN_OR_RETURN(internal::TransformerFolder found, internal::FindTransformer(reading));
  const std::string& path = found.path;
  const bool has_modules = found.modules.has_value();

  Result<internal::TextModel> model =
      internal::TextModel::Open(found.folder,
                                {.ignore_unknown_keys = options.ignore_unknown_keys,
                                 .executor = options.executor,
                                 .precision = options.precision,
                                 .keep = options.keep,
                                 .amx_bf16 = options.amx_bf16,
                                 .weights = options.weights},
                                &decisions);
  if (!model.ok()) return model.status();
  Result<Tokenizer> tokenizer = OpenTokenizer(found, reading);
  if (!MayLackTokenizer(tokenizer.status())) return tokenizer.status();
  const Result<size_t> max_length = internal::ChooseMaxLength(
      {.option = options.max_length,
       .settings = found.settings,
       .tokenizer_maximum =
           tokenizer.ok() ? tokenizer->model_max_length() : std::optional<size_t>(),
       .model_usual = model->usual_tokens(),
       .model_maximum = model->max_tokens(),
       .special_tokens = tokenizer.ok() ? tokenizer->special_tokens_of_text() : 0,
       .positions_skip_padding = model->positions_skip_padding()},
      reading);
  if (!max_length.ok()) return max_length.status();
  const Result<bool> use_type_ids =
      internal::ReadUsesTypeIds(found, model->type_vocab_size(), reading);
  if (!use_type_ids.ok()) return use_type_ids.status();

  Result<internal::SentenceConfig> config = internal::ReadSentenceConfig(has_modules, reading);
  if (!config.ok()) return config.status();

  std::optional<internal::AfterEncoder> after;
  const bool classifies = found.settings.classifies;
  std::span<const ModuleEntry> rest;
  if (has_modules) rest = std::span<const ModuleEntry>(*found.modules).subspan(1);
  if (classifies && !rest.empty()) {
    return Status(ErrorCode::kUnsupported,
                  "modules.json: found modules behind a transformer that classifies; encore has "
                  "none of them");
  }
  // Where modules.json lists a transformer alone, nothing makes vectors of texts.
  const bool pools = !has_modules || !rest.empty() || !options.pooling.empty();
  if (pools) {
    ENCORE_ASSIGN_OR_RETURN(
        internal::AfterEncoder read,
        internal::AfterEncoder::Read(rest, model->d_model(), options.pooling, reading));
    after = std::move(read);
    if (options.normalize) {
      reading.Tell("normalize", *options.normalize ? "to length 1" : "no", "option normalize");
    }
  }
  Result<const internal::TorchActivation*> activation =
      internal::FindTorchActivation("torch.nn.Identity");
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

Result<TextEncoder> TextEncoder::Open(const std::string& folder, const OpenOptions& options) {
  return internal::Guarded("the model", [&]() -> Result<TextEncoder> {
    ENCORE_ASSIGN_OR_RETURN(std::shared_ptr<const Impl> impl, OpenImpl(folder, options));
    return TextEncoder(std::move(impl));
  });
}

size_t TextEncoder::dimensions() const { return impl_->after ? impl_->dimensions() : 0; }
size_t TextEncoder::d_model() const { return impl_->model.d_model(); }
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
