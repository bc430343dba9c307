// SPDX-License-Identifier: Apache-2.0
//
// Opens a model's folder by its kind, or its tokenizer alone.

#include <limits>
#include <utility>

#include "engine/base/guarded.h"
#include "engine/base/status_macros.h"
#include "engine/models/family.h"
#include "engine/text/open_folder.h"

namespace encore::inline v0_1 {
namespace internal {
namespace {

Result<NewImpl> OpenKind(const Opening& opening) {
  switch (opening.found.kind) {
    case FolderKind::kCheckpoint:
      return OpenCheckpoint(opening);
    case FolderKind::kDense:
      return OpenDense(opening);
    case FolderKind::kTransformer:
      return OpenTransformer(opening);
    case FolderKind::kLogitScore:
      return OpenLogitScore(opening);
    case FolderKind::kSparse:
      return OpenSparse(opening);
    case FolderKind::kFeatures:
      return OpenFeatures(opening);
    case FolderKind::kLate:
    case FolderKind::kStanford:
    case FolderKind::kM3:
      return OpenLate(opening);
    case FolderKind::kStatic:
      return OpenStatic(opening);
    case FolderKind::kModel2Vec:
      return OpenModel2Vec(opening);
    case FolderKind::kSparseStatic:
      return OpenSparseStatic(opening);
  }
  return InvalidArgument("found a folder of no kind");
}

// A model's tokens of a text, unless a caller or a file wants more, and at most; the largest
// numbers where its family or its config.json is not known.
struct ModelLengths {
  size_t usual = std::numeric_limits<size_t>::max();
  size_t maximum = std::numeric_limits<size_t>::max();
};

Result<ModelLengths> ReadLengths(const Folder& folder, bool ignore_unknown_keys) {
  std::vector<Decision> decisions;
  const Result<ModelSpec> plan = ReadModelConfig(folder, ignore_unknown_keys, &decisions);
  if (plan.ok()) {
    return ModelLengths{plan->embeddings.usual_tokens(), plan->embeddings.max_tokens()};
  }
  if (MayBeMissing(plan.status())) return ModelLengths();
  return plan.status();
}

}  // namespace

Result<std::shared_ptr<const TextEncoder::Impl>> OpenFolder(const std::string& path,
                                                            const OpenOptions& options,
                                                            FolderUse use) {
  ENCORE_ASSIGN_OR_RETURN(const Folder folder, Folder::Open(path));
  std::vector<Decision> decisions;
  const FolderReading reading{folder, options.ignore_unknown_keys, decisions};
  ENCORE_ASSIGN_OR_RETURN(const ModelFolder found, FindFolder(use, reading));
  ENCORE_ASSIGN_OR_RETURN(NewImpl impl, OpenKind({found, options, reading}));
  impl->decisions = std::move(decisions);
  return std::shared_ptr<const TextEncoder::Impl>(std::move(impl));
}

Result<FolderTokenizer> OpenFolderTokenizer(const std::string& path, bool ignore_unknown_keys) {
  return Guarded("the tokenizer", [&]() -> Result<FolderTokenizer> {
    ENCORE_ASSIGN_OR_RETURN(const Folder folder, Folder::Open(path));
    std::vector<Decision> decisions;
    const FolderReading reading{folder, ignore_unknown_keys, decisions};
    ENCORE_ASSIGN_OR_RETURN(const ModelFolder found, FindFolder(FolderUse::kTokenizer, reading));
    if (found.kind == FolderKind::kStatic || found.kind == FolderKind::kModel2Vec) {
      return OpenStaticTokenizer(found, reading);
    }
    ENCORE_ASSIGN_OR_RETURN(const Tokenizer tokenizer, OpenTokenizer(found, {}));
    if (found.kind == FolderKind::kSparseStatic) {
      return FolderTokenizer{tokenizer, tokenizer.model_max_length().value_or(0),
                             /*type_ids=*/false, /*add_special_tokens=*/false};
    }
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

}  // namespace internal

Result<TextEncoder> TextEncoder::Open(const std::string& folder, const OpenOptions& options) {
  return internal::Guarded("the model", [&]() -> Result<TextEncoder> {
    ENCORE_ASSIGN_OR_RETURN(
        std::shared_ptr<const Impl> impl,
        internal::OpenFolder(folder, options, internal::FolderUse::kTextEncoder));
    return TextEncoder(std::move(impl));
  });
}

size_t TextEncoder::dimensions() const { return impl_->after ? impl_->dimensions() : 0; }
size_t TextEncoder::max_dimensions() const { return impl_->after ? impl_->after->width() : 0; }
size_t TextEncoder::d_model() const { return impl_->model.hidden_width(); }
size_t TextEncoder::max_length() const { return impl_->max_length; }
bool TextEncoder::has_tokenizer() const { return impl_->tokenizer.ok(); }
const Tokenizer& TextEncoder::tokenizer() const& { return *impl_->tokenizer; }
bool TextEncoder::has_encoder() const { return !impl_->model.is_static(); }
const Encoder& TextEncoder::encoder() const& { return impl_->model.encoder(); }
const std::vector<std::string>& TextEncoder::labels() const& { return impl_->model.labels(); }
const std::vector<std::pair<std::string, std::string>>& TextEncoder::prompts() const& {
  return impl_->config.prompts;
}
const std::vector<Decision>& TextEncoder::Describe() const& { return impl_->decisions; }

}  // namespace encore
