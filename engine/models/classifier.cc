// SPDX-License-Identifier: Apache-2.0
//
// The head of a sequence classifier.

#include "engine/models/classifier.h"

#include <cstdint>
#include <string_view>

#include "engine/base/quoted.h"

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

Result<PackedLinear> ReadLinear(const std::string& name, size_t outputs, size_t inputs,
                                bool has_bias, ModelTensors* tensors) {
  const Result<Tensor> weight = tensors->Read(name + ".weight", Shape(outputs, inputs));
  if (!weight.ok()) return weight.status();
  Result<Tensor> bias = has_bias ? tensors->Read(name + ".bias", Shape(outputs)) : Tensor();
  if (!bias.ok()) return bias.status();
  return PackedLinear::Create(weight->View<float>(), std::as_const(*bias).View<float>());
}

Status ReadVector(const std::string& name, size_t size, ModelTensors* tensors, Tensor* out) {
  Result<Tensor> tensor = tensors->Read(name, Shape(size));
  if (!tensor.ok()) return tensor.status();
  *out = *std::move(tensor);
  return {};
}

std::string_view ActivationText(HeadPlan::Activation activation) {
  switch (activation) {
    case HeadPlan::Activation::kTanh:
      return "tanh";
    case HeadPlan::Activation::kGelu:
      return "gelu (erf)";
    case HeadPlan::Activation::kRelu:
      return "relu";
  }
  return "";
}

// "classifier(tanh(pooler.dense(first token)))".
std::string HeadText(const HeadPlan& plan, const std::string& dense) {
  const bool first = plan.input == HeadPlan::Input::kFirstToken;
  const std::string input = first ? "first token" : "mean of the tokens";
  std::string inner =
      std::string(ActivationText(plan.activation)) + "(" + dense + "(" + input + "))";
  if (!plan.norm.empty()) inner = std::string(plan.norm) + "(" + inner + ")";
  return std::string(plan.out) + "(" + inner + ")";
}

}  // namespace

Result<std::optional<Classifier>> Classifier::Create(const ModelConfig& config,
                                                     ModelTensors* tensors,
                                                     std::vector<Decision>* decisions) {
  const HeadPlan& plan = config.plan.head;
  if (plan.out.empty()) {
    if (TaskOf(config.architectures) != Task::kSequenceClassifier) {
      return std::optional<Classifier>();
    }
    return Status(ErrorCode::kUnsupported,
                  std::string(kConfigFile) +
                      ": architectures names a sequence classifier; encore has none of " +
                      config.model_type);
  }
  const std::string dense =
      plan.dense_in_base ? tensors->Base(plan.dense) : std::string(plan.dense);
  const std::string out(plan.out);
  const SafetensorsEntry* last = tensors->Find(out + ".weight");
  const bool there = last != nullptr && tensors->Find(dense + ".weight") != nullptr;
  const Task task = TaskOf(config.architectures);
  if (task == Task::kAnother || (task == Task::kUnnamed && !there)) {
    return std::optional<Classifier>();
  }
  if (!config.labels.ok()) return config.labels.status();
  const size_t d_model = config.plan.encoder.d_model;
  std::vector<std::string> labels = *config.labels;
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
  if (config.num_labels.value_or(labels.size()) != labels.size()) {
    return InvalidArgument(std::string(kConfigFile) + ": num_labels is " +
                           std::to_string(*config.num_labels) + "; wanted " +
                           std::to_string(labels.size()) + ", as there are labels");
  }
  Result<PackedLinear> first = ReadLinear(dense, d_model, d_model, plan.dense_bias, tensors);
  if (!first.ok()) return first.status();
  Result<PackedLinear> second = ReadLinear(out, labels.size(), d_model, true, tensors);
  if (!second.ok()) return second.status();
  const size_t count = labels.size();
  Classifier head(plan, *std::move(first), *std::move(second), std::move(labels));
  const std::string norm(plan.norm);
  if (!norm.empty()) {
    Status s = ReadVector(norm + ".weight", d_model, tensors, &head.norm_weight_);
    if (!s.ok()) return s;
  }
  if (!norm.empty() && plan.norm_bias) {
    Status s = ReadVector(norm + ".bias", d_model, tensors, &head.norm_bias_);
    if (!s.ok()) return s;
  }
  decisions->push_back({"head",
                        std::to_string(count) + (count == 1 ? " label: " : " labels: ") +
                            HeadText(plan, dense) + std::string(plan.note),
                        tensors->files().name()});
  return std::optional<Classifier>(std::move(head));
}

Status Classifier::Apply(ConstView pooled, MutableView logits, const Executor& executor) const {
  if (pooled.rank() != 2) {
    return InvalidArgument("pooled has shape " + pooled.shape().ToString() +
                           "; wanted [sequences, d_model]");
  }
  Result<Tensor> memory = Tensor::Create(DType::kF32, Shape(pooled.dim(0), dense_.out_features()));
  if (!memory.ok()) return memory.status();
  const MutableView inner = memory->View<float>();
  if (Status s = dense_.Apply(pooled, inner, executor); !s.ok()) return s;
  Status activated;
  switch (plan_.activation) {
    case HeadPlan::Activation::kTanh:
      activated = Tanh(inner, inner);
      break;
    case HeadPlan::Activation::kGelu:
      activated = Gelu(inner, inner);
      break;
    case HeadPlan::Activation::kRelu:
      activated = Relu(inner, inner);
      break;
  }
  if (activated.ok() && !plan_.norm.empty()) {
    activated = LayerNorm(inner, norm_weight_.View<float>(), norm_bias_.View<float>(),
                          plan_.norm_epsilon, inner);
  }
  if (!activated.ok()) return activated;
  return out_.Apply(inner, logits, executor);
}

}  // namespace encore::internal
