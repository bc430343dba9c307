// SPDX-License-Identifier: Apache-2.0
//
// Wording and layout of what `encore attend` shows.

#include "tools/encore/attend_report.h"

#include <cstdlib>
#include <utility>

#include "tools/encore/text.h"

namespace encore::tool {
namespace {

using Json = nlohmann::ordered_json;

void PrintStep(std::ostream& out, const std::string& heading, const Shape& shape) {
  out << "\n" << heading << "  " << shape.ToString() << "\n";
}

std::string HeadSuffix(const AttentionExample& example, size_t head) {
  if (example.heads == 1) return "";
  return ", head " + std::to_string(head + 1) + " of " + std::to_string(example.heads);
}

void PrintHead(std::ostream& out, const AttentionExample& example, size_t head,
               const MatrixStyle& style) {
  const ConstView scores = example.scores.View<float>()[head];
  const ConstView weights = example.weights.View<float>()[head];
  const std::string suffix = HeadSuffix(example, head);
  PrintStep(out,
            "Scores = Q K^T / sqrt(" + std::to_string(example.head_size()) +
                "): how well each key answers each query" + suffix,
            scores.shape());
  PrintMatrix(out, example.tokens, scores, style);
  PrintStep(out, "Weights = softmax of each row of scores; a row sums to 1" + suffix,
            weights.shape());
  PrintHeatMap(out, example.tokens, example.keys, weights, style);
  out << "\nWho attends most to whom" << suffix << "\n";
  PrintWhoAttendsMost(out, example.tokens, example.keys, weights, style);
}

// How a person gets the same numbers from NumPy.
void PrintNumpy(std::ostream& out, const AttentionExample& example) {
  const std::string heads = std::to_string(example.heads);
  out << "\nThe same in NumPy\n  import numpy as np\n";
  if (example.seed) {
    out << "  r = np.random.RandomState(" << *example.seed << ")\n";
    const auto draw = [](const Tensor& t) {
      return "r.rand(" + std::to_string(t.shape()[0]) + ", " + std::to_string(t.shape()[1]) + ")";
    };
    if (example.has_x()) {
      out << "  X, W_q, W_k, W_v = " << draw(example.x) << ", " << draw(example.w_q) << ", "
          << draw(example.w_k) << ", " << draw(example.w_v) << "\n";
    } else {
      out << "  Q, K, V = " << draw(example.q) << ", " << draw(example.k) << ", " << draw(example.v)
          << "\n";
    }
  }
  if (example.has_x()) out << "  Q, K, V = X @ W_q, X @ W_k, X @ W_v\n";
  const bool several = example.heads > 1;
  if (several) {
    out << "  Q, K, V = [m.reshape(" << example.tokens.size() << ", " << heads
        << ", -1).transpose(1, 0, 2) for m in (Q, K, V)]  # [head, token, head size]\n";
  }
  out << "  scores = Q @ K." << (several ? "transpose(0, 2, 1)" : "T") << " / np.sqrt("
      << example.head_size() << ")\n"
      << "  weights = np.exp(scores - scores.max(-1, keepdims=True))\n"
      << "  weights /= weights.sum(-1, keepdims=True)\n"
      << "  context = "
      << (several ? "(weights @ V).transpose(1, 0, 2).reshape(" +
                        std::to_string(example.tokens.size()) + ", -1)"
                  : "weights @ V")
      << "\n";
}

// The double whose shortest decimal form is that of the float: 0.1f gives 0.1.
double ShortestDouble(float value) { return std::strtod(ShortestText(value).c_str(), nullptr); }

}  // namespace

std::string Sizes(const AttentionExample& example) {
  std::string text = Counted(example.tokens.size(), "token") + ", width " +
                     std::to_string(example.q.shape()[1]) + ", " + Counted(example.heads, "head");
  if (example.seed) text += ", seed " + std::to_string(*example.seed);
  return text;
}

Json ViewToJson(ConstView view) {
  Json list = Json::array();
  for (size_t i = 0; i < view.dim(0); ++i) {
    if (view.rank() == 1) {
      list.push_back(ShortestDouble(view(i)));
    } else {
      list.push_back(ViewToJson(view[i]));
    }
  }
  return list;
}

void PrintExample(std::ostream& out, const AttentionExample& example, const MatrixStyle& style) {
  out << "Self-attention, step by step: " << example.title << "\n(" << Sizes(example) << ")\n";
  out << "\nTokens\n ";
  for (const std::string& token : example.tokens) out << " " << token;
  out << "\n";
  const bool has_x = example.has_x();
  const bool random = example.seed.has_value();
  const auto step = [&](const std::string& heading, const std::vector<std::string>& labels,
                        const Tensor& matrix) {
    PrintStep(out, heading, matrix.shape());
    PrintMatrix(out, labels, matrix.View<float>(), style);
  };
  if (has_x) {
    step(std::string("X: an embedding for each token") + (random ? " (random)" : ""),
         example.tokens, example.x);
  }
  step(has_x ? std::string("Q = X W_q: what each token asks for") +
                   (random ? " (W_q, W_k, W_v are random too)" : "")
             : "Q: the queries",
       example.tokens, example.q);
  step(has_x ? "K = X W_k: what each token offers" : "K: the keys", example.keys, example.k);
  step(has_x ? "V = X W_v: what each token passes on" : "V: the values", example.keys, example.v);
  for (size_t head = 0; head < example.heads; ++head) PrintHead(out, example, head, style);
  step(example.heads == 1 ? "Context = Weights V: each token's mixture of the values"
                          : "Context = Weights V of each head, side by side",
       example.tokens, example.output);
  PrintNumpy(out, example);
}

void PrintChecks(std::ostream& out, const std::vector<CaseCheck>& checks) {
  out << "\nChecks against the case\n";
  std::vector<std::string> names;
  for (const CaseCheck& check : checks) names.push_back(check.what);
  const size_t widest = WidestOf(names);
  for (const CaseCheck& check : checks) {
    out << "  " << PadRight(check.what, widest) << "  " << (check.ok ? "ok     " : "WRONG  ")
        << check.detail << "\n";
  }
}

Json ExampleToJson(const AttentionExample& example) {
  Json json;
  json["title"] = example.title;
  json["tokens"] = example.tokens;
  json["heads"] = example.heads;
  if (example.seed) json["seed"] = *example.seed;
  for (const auto& [name, tensor] : {std::pair("X", &example.x),
                                     {"W_q", &example.w_q},
                                     {"W_k", &example.w_k},
                                     {"W_v", &example.w_v},
                                     {"Q", &example.q},
                                     {"K", &example.k},
                                     {"V", &example.v},
                                     {"scores", &example.scores},
                                     {"weights", &example.weights},
                                     {"output", &example.output}}) {
    if (tensor->data() == nullptr) continue;
    const ConstView view = tensor->View<float>();
    json[name] = ViewToJson(view.rank() == 3 && view.dim(0) == 1 ? view[0] : view);
  }
  Json& most = json["attends_most"] = Json::array();
  for (size_t head = 0; head < example.heads; ++head) {
    for (size_t t = 0; t < example.tokens.size(); ++t) {
      const ConstView weights = example.weights.View<float>()[head];
      const size_t key = LargestColumn(weights, t);
      most.push_back({{"head", head},
                      {"token", example.tokens[t]},
                      {"to", example.keys[key]},
                      {"weight", ShortestDouble(weights(t, key))}});
    }
  }
  return json;
}

Json ChecksToJson(const std::vector<CaseCheck>& checks) {
  Json list = Json::array();
  for (const CaseCheck& check : checks) {
    list.push_back({{"what", check.what}, {"ok", check.ok}, {"detail", check.detail}});
  }
  return list;
}

}  // namespace encore::tool
