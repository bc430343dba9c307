// SPDX-License-Identifier: Apache-2.0
//
// The head of a sequence classifier.

#include "engine/models/classifier.h"

#include <cstdint>
#include <string_view>

#include "engine/base/quoted.h"
#include "engine/base/status_macros.h"

namespace encore::inline v0_1::internal {
namespace {

enum class Task : uint8_t { kUnnamed, kSequenceClassifier, kAnother };

// From class names such as "BertForSequenceClassification", "BertModel", "BertForMaskedLM".
Task TaskOf(const std::vector<std::string>& architectures) {
  Task task = Task::kUnnamed;
  for (const std::string& name : architectures) {
    if (name.ends_with("ForSequenceClassification")) return Task::kSequenceClassifier;
    if (name.find("For") != std::string::npos) task = Task::kAnother;
  }
  return task;
}

// "classifier(tanh(pooler.dense(first token)))".
std::string HeadText(const HeadPlan& plan, const std::string& dense) {
  const bool mean = plan.rows == OutputRows::kAll;
  std::string inner = mean ? "mean of the tokens" : "first token";
  if (!dense.empty()) inner = std::string(plan.activation.text) + "(" + dense + "(" + inner + "))";
  if (!plan.norm.empty()) inner = std::string(plan.norm) + "(" + inner + ")";
  return std::string(plan.out) + "(" + inner + ")";
}

}  // namespace

Result<Classifier> Classifier::Create(const ModelPlan& model, ModelTensors* tensors,
                                      std::vector<Decision>* decisions) {
  Classifier head;
  const HeadPlan& plan = model.head;
  const Task task = TaskOf(model.architectures);
  if (plan.out.empty()) {
    if (task != Task::kSequenceClassifier) return head;
    return Status(ErrorCode::kUnsupported,
                  std::string(kConfigFile) +
                      ": architectures names a sequence classifier; encore has none of " +
                      model.model_type);
  }
  const std::string dense =
      plan.dense_in_base ? tensors->Base(plan.dense) : std::string(plan.dense);
  const std::string out(plan.out);
  const SafetensorsEntry* last = tensors->Find(out + ".weight");
  const bool there =
      last != nullptr && (dense.empty() || tensors->Find(dense + ".weight") != nullptr);
  if (task == Task::kAnother || (task == Task::kUnnamed && !there)) return head;
  if (!model.labels.ok()) return model.labels.status();
  const size_t d_model = model.encoder.d_model;
  std::vector<std::string> labels = *model.labels;
  if (labels.empty()) {  // then the tensor says how many there are
    const bool fits = last != nullptr && last->shape.rank() == 2 && last->shape[0] != 0 &&
                      last->shape[1] == d_model;
    if (!fits) {
      return InvalidArgument(tensors->files().name() + ": tensor " + Quoted(out + ".weight") +
                             ": found " +
                             (last == nullptr ? "none" : "shape " + last->shape.ToString()) +
                             "; wanted [labels, " + std::to_string(d_model) + "]");
    }
    for (size_t i = 0; i < last->shape[0]; ++i) labels.push_back("LABEL_" + std::to_string(i));
  }
  if (model.num_labels.value_or(labels.size()) != labels.size()) {
    return InvalidArgument(std::string(kConfigFile) + ": num_labels is " +
                           std::to_string(*model.num_labels) + "; wanted " +
                           std::to_string(labels.size()) + ", as there are labels");
  }
  head.plan_ = plan;
  if (!dense.empty()) {
    ENCORE_ASSIGN_OR_RETURN(head.dense_,
                            tensors->ReadLinear(dense, d_model, d_model, plan.dense_bias));
  }
  ENCORE_ASSIGN_OR_RETURN(head.out_, tensors->ReadLinear(out, labels.size(), d_model, true));
  if (!plan.norm.empty()) {
    ENCORE_ASSIGN_OR_RETURN(head.norm_, tensors->ReadNorm(std::string(plan.norm), d_model,
                                                          plan.norm_epsilon, plan.norm_bias));
  }
  const size_t count = labels.size();
  head.labels_ = std::move(labels);
  decisions->push_back({"head",
                        std::to_string(count) + (count == 1 ? " label: " : " labels: ") +
                            HeadText(plan, dense) + std::string(plan.note),
                        tensors->files().name()});
  return head;
}

Status Classifier::Apply(ConstView pooled, MutableView logits, const Executor& executor) const {
  if (labels_.empty()) {
    return Status(ErrorCode::kUnsupported, "the folder's model has no head of a classifier");
  }
  if (pooled.rank() != 2) {
    return InvalidArgument("pooled has shape " + pooled.shape().ToString() +
                           "; wanted [sequences, d_model]");
  }
  if (!dense_) return out_->Apply(pooled, logits, executor);
  ENCORE_ASSIGN_OR_RETURN(
      Tensor memory, Tensor::Create(DType::kF32, Shape(pooled.dim(0), dense_->out_features())));
  const MutableView inner = memory.View<float>();
  ENCORE_RETURN_IF_ERROR(dense_->Apply(pooled, inner, executor));
  ENCORE_RETURN_IF_ERROR(plan_.activation.apply(inner, inner));
  if (!plan_.norm.empty()) ENCORE_RETURN_IF_ERROR(norm_.Apply(inner));
  return out_->Apply(inner, logits, executor);
}

}  // namespace encore::internal
