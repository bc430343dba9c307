// SPDX-License-Identifier: Apache-2.0
//
// The head of a sequence classifier.

#include "engine/models/classifier.h"

#include <cstdint>
#include <string_view>

#include "engine/base/number_text.h"
#include "engine/base/quoted.h"
#include "engine/base/status_macros.h"
#include "engine/platform/fp_env.h"

namespace encore::inline v0_1::internal {
namespace {

enum class Task : uint8_t { kUnnamed, kSequenceClassifier, kTokenClassifier, kAnother };

bool OfPictures(const ModelSpec& model) { return model.patches.patch_size != 0; }

// From class names such as "BertForSequenceClassification", "BertModel", "BertForMaskedLM", or of
// pictures "DeiTForImageClassificationWithTeacher".
Task TaskOf(const ModelSpec& model) {
  const bool pictures = OfPictures(model);
  Task task = Task::kUnnamed;
  for (const std::string& name : model.architectures) {
    if (pictures ? name.find("ForImageClassification") != std::string::npos
                 : name.ends_with("ForSequenceClassification")) {
      return Task::kSequenceClassifier;
    }
    if (name.ends_with("ForTokenClassification")) return Task::kTokenClassifier;
    if (name.find("For") != std::string::npos) task = Task::kAnother;
  }
  return task;
}

std::string PictureText(const HeadSpec& spec) {
  const std::string out(spec.out);
  switch (spec.of_picture) {
    case PictureRows::kFirst:
      break;
    case PictureRows::kPatches:
      return out + "(mean of the patches)";
    case PictureRows::kFirstAndPatches:
      return out + "(first row, mean of the patches)";
    case PictureRows::kFirstTwo:
      return "mean of " + std::string(spec.out_of_first) + "(first row) and " +
             std::string(spec.out_of_second) + "(second row)";
  }
  return out + "(first row)";
}

// "classifier(tanh(pooler.dense(first token)))".
std::string HeadText(const HeadSpec& spec, const std::string& dense, bool of_tokens) {
  std::string inner = of_tokens || spec.mean_of_logits ? "each token"
                      : spec.rows == OutputRows::kAll  ? "mean of the tokens"
                      : spec.rows == OutputRows::kLast ? "last token"
                                                       : "first token";
  if (spec.padding) inner += " that is not " + std::to_string(*spec.padding);
  if (!dense.empty()) {
    inner = std::string(spec.activation->text) + "(" + dense + "(" + inner + "))";
  }
  if (!spec.norm.empty()) inner = std::string(spec.norm) + "(" + inner + ")";
  inner = std::string(spec.out) + "(" + inner + ")";
  if (spec.mean_of_logits) inner = "mean of " + inner;
  return spec.temperature == 1 ? inner : inner + " / " + NumberText(spec.temperature);
}

// The mean of two linear layers' outputs, as one layer of the inputs of both.
Result<PackedLinear> ReadMeanOfTwo(const HeadSpec& spec, size_t labels, size_t d_model,
                                   ModelTensors* tensors) {
  ENCORE_ASSIGN_OR_RETURN(Tensor weight, Tensor::Create(DType::kF32, {labels, 2 * d_model}));
  ENCORE_ASSIGN_OR_RETURN(Tensor bias, Tensor::Create(DType::kF32, {labels}));
  const MutableView weights = weight.View<float>();
  const MutableView biases = bias.View<float>();
  const FpEnvScope default_modes;
  size_t column = 0;
  for (const std::string_view name : {spec.out_of_first, spec.out_of_second}) {
    ENCORE_ASSIGN_OR_RETURN(const Tensor own,
                            tensors->Read(std::string(name) + ".weight", Shape(labels, d_model)));
    ENCORE_ASSIGN_OR_RETURN(const Tensor added,
                            tensors->Read(std::string(name) + ".bias", Shape(labels)));
    const ConstView from = own.View<float>();
    for (size_t r = 0; r < labels; ++r) {
      for (size_t c = 0; c < d_model; ++c) weights(r, column + c) = from(r, c) / 2;
      const float half = added.View<float>()(r) / 2;
      biases(r) = column == 0 ? half : biases(r) + half;
    }
    column += d_model;
  }
  return PackedLinear::Create(weights, biases);
}

}  // namespace

Result<Classifier> Classifier::Create(const ModelSpec& model, ModelTensors* tensors,
                                      std::vector<Decision>* decisions) {
  Classifier head;
  const Task task = TaskOf(model);
  // Of a family without such a head the folder is a model without one.
  head.of_tokens_ = task == Task::kTokenClassifier && !model.token_head.out.empty();
  if (task == Task::kTokenClassifier && !head.of_tokens_) return head;
  HeadSpec spec = head.of_tokens_ ? model.token_head : model.head;
  if (spec.out.empty()) {
    if (task != Task::kSequenceClassifier) return head;
    return Status(ErrorCode::kUnsupported,
                  std::string(kConfigFile) + ": architectures names a " +
                      (OfPictures(model) ? "classifier of pictures" : "sequence classifier") +
                      "; encore does not support that of " + model.model_type +
                      (spec.none.empty() ? "" : ": " + std::string(spec.none)));
  }
  const bool of_two = !spec.out_of_second.empty() &&
                      tensors->Find(std::string(spec.out_of_second) + ".weight") != nullptr;
  if (of_two) {
    spec.out = spec.out_of_first;
    spec.of_picture = PictureRows::kFirstTwo;
  }
  const std::string dense =
      spec.dense_in_base ? tensors->Base(spec.dense) : std::string(spec.dense);
  const std::string out(spec.out);
  const SafetensorsEntry* last = tensors->Find(out + ".weight");
  const bool there =
      last != nullptr && (dense.empty() || tensors->Find(dense + ".weight") != nullptr);
  if (task == Task::kAnother || (task == Task::kUnnamed && !there)) return head;
  if (!model.labels.ok()) return model.labels.status();
  const size_t d_model = model.encoder.d_model;
  const size_t width = spec.of_picture == PictureRows::kFirstAndPatches ? 2 * d_model : d_model;
  std::vector<std::string> labels = *model.labels;
  if (labels.empty()) {  // then the tensor says how many there are
    const bool fits = last != nullptr && last->shape.rank() == 2 && last->shape[0] != 0 &&
                      last->shape[1] == width;
    if (!fits) {
      return InvalidArgument(tensors->files().name() + ": tensor " + Quoted(out + ".weight") +
                             ": found " +
                             (last == nullptr ? "none" : "shape " + last->shape.ToString()) +
                             "; wanted [labels, " + std::to_string(width) + "]");
    }
    for (size_t i = 0; i < last->shape[0]; ++i) labels.push_back("LABEL_" + std::to_string(i));
  }
  if (model.num_labels.value_or(labels.size()) != labels.size()) {
    return InvalidArgument(std::string(kConfigFile) + ": num_labels is " +
                           std::to_string(*model.num_labels) + "; wanted " +
                           std::to_string(labels.size()) + ", as there are labels");
  }
  head.spec_ = spec;
  if (!dense.empty()) {
    ENCORE_ASSIGN_OR_RETURN(head.dense_,
                            tensors->ReadLinear(dense, d_model, d_model, spec.dense_bias));
  }
  ENCORE_ASSIGN_OR_RETURN(head.out_,
                          of_two ? ReadMeanOfTwo(spec, labels.size(), d_model, tensors)
                                 : tensors->ReadLinear(out, labels.size(), width, spec.out_bias));
  if (!spec.norm.empty()) {
    ENCORE_ASSIGN_OR_RETURN(head.norm_, tensors->ReadNorm(std::string(spec.norm), d_model,
                                                          spec.norm_epsilon, spec.norm_bias));
  }
  const size_t count = labels.size();
  head.labels_ = std::move(labels);
  decisions->push_back(
      {"head",
       std::to_string(count) + (count == 1 ? " label: " : " labels: ") +
           (OfPictures(model) ? PictureText(spec) : HeadText(spec, dense, head.of_tokens_)) +
           std::string(spec.note),
       tensors->files().name()});
  return head;
}

Result<Classifier> Classifier::OfLogits(const ModelSpec& model, const LogitScore& score,
                                        ModelTensors* tensors, std::vector<Decision>* decisions) {
  if (model.head.rows != OutputRows::kLast || model.head.out.empty()) {
    return Status(ErrorCode::kUnsupported,
                  std::string(kConfigFile) + ": model_type is " + model.model_type +
                      "; encore does not support a causal language model's scores of it");
  }
  if (model.logit_softcapping) {
    return Status(ErrorCode::kUnsupported,
                  std::string(kConfigFile) +
                      ": final_logit_softcapping is not null; encore does not support it");
  }
  const size_t vocabulary = model.embeddings.vocab_size;
  const size_t d_model = model.encoder.d_model;
  for (const size_t id : {score.true_token, score.false_token.value_or(0)}) {
    if (id < vocabulary) continue;
    return InvalidArgument("a score is of token " + std::to_string(id) + "; wanted 0 .. " +
                           std::to_string(vocabulary - 1));
  }
  std::string name = "lm_head.weight";
  if (tensors->Find(name) == nullptr) {
    if (!model.tied) return tensors->NotTied(name);
    name = tensors->Base(model.embeddings.word) + ".weight";
  }
  EmbeddingTable table;
  ENCORE_RETURN_IF_ERROR(ViewTable(name, {vocabulary, d_model}, tensors, &table));
  ENCORE_ASSIGN_OR_RETURN(Tensor row, Tensor::Create(DType::kF32, {1, d_model}));
  auto* const weights = static_cast<float*>(row.data());
  const FpEnvScope default_modes;
  ReadTableRow(table, score.true_token, weights);
  if (score.false_token) {  // x . a - x . b = x . (a - b)
    std::vector<float> other(d_model);
    ReadTableRow(table, *score.false_token, other.data());
    for (size_t i = 0; i < d_model; ++i) weights[i] -= other[i];
  }
  Classifier head;
  head.spec_ = {.rows = OutputRows::kLast};
  ENCORE_ASSIGN_OR_RETURN(head.out_, PackedLinear::Create(row.View<float>()));
  head.labels_ = {"LABEL_0"};
  std::string text = "1 label: logit of token " + std::to_string(score.true_token);
  if (score.false_token) text += ", less that of " + std::to_string(*score.false_token);
  decisions->push_back({"head", text + ", after the last token", tensors->files().name()});
  return head;
}

size_t Classifier::PlaceOf(std::span<const int32_t> ids) const {
  size_t place = ids.size() - 1;
  while (place > 0 && ids[place] == spec_.padding) --place;
  return place;
}

OutputRows Classifier::RowsOf(const TokenBatch& batch) const {
  if (spec_.rows != OutputRows::kLast) return spec_.rows;
  for (size_t b = 0; b + 1 < batch.seq_starts.size(); ++b) {
    const size_t begin = batch.seq_starts[b];
    const size_t length = batch.seq_starts[b + 1] - begin;
    if (PlaceOf(batch.ids.subspan(begin, length)) + 1 != length) return OutputRows::kAll;
  }
  return OutputRows::kLast;
}

Status Classifier::Apply(ConstView pooled, MutableView logits, const Executor& executor) const {
  if (labels_.empty()) {
    return Status(ErrorCode::kUnsupported, "the folder's model has no head of a classifier");
  }
  if (pooled.rank() != 2) {
    return InvalidArgument("pooled has shape " + pooled.shape().ToString() +
                           "; wanted [sequences, d_model]");
  }
  if (!dense_) return ApplyLast(pooled, logits, executor);
  ENCORE_ASSIGN_OR_RETURN(
      Tensor memory, Tensor::Create(DType::kF32, Shape(pooled.dim(0), dense_->out_features())));
  const MutableView inner = memory.View<float>();
  ENCORE_RETURN_IF_ERROR(dense_->Apply(pooled, inner, executor));
  spec_.activation->apply(inner.data(), inner.dim(0) * inner.dim(1));
  if (!spec_.norm.empty()) ENCORE_RETURN_IF_ERROR(norm_.Apply(inner));
  return ApplyLast(inner, logits, executor);
}

Status Classifier::ApplyLast(ConstView inner, MutableView logits, const Executor& executor) const {
  ENCORE_RETURN_IF_ERROR(out_->Apply(inner, logits, executor));
  if (spec_.temperature == 1) return {};
  const FpEnvScope default_modes;
  const auto divisor = static_cast<float>(spec_.temperature);
  for (size_t r = 0; r < logits.dim(0); ++r) {
    for (size_t c = 0; c < logits.dim(1); ++c) logits(r, c) /= divisor;
  }
  return {};
}

}  // namespace encore::internal
