// SPDX-License-Identifier: Apache-2.0
//
// The sentences, and the cosines.

#include "tools/encore/conversion_loss.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "encore/thread_pool.h"
#include "tools/encore/failure.h"

namespace encore::tool {
namespace {

constexpr const char* kProbes[] = {
    "How do I reset my password?",
    "The harbour lies between two hills, and the last ferry leaves at nine.",
    "A vector for each text, from a model's folder.",
    "Invoice 4711 of 12 March 2024 over 1,299.00 EUR has not been paid.",
    "def mean(values): return sum(values) / len(values)",
    "Patients with type 2 diabetes were given 500 mg twice a day.",
    "What is the capital of Australia?",
    "Bread",
    "She said she would come, but it rained all day, so we stayed at home and played cards.",
    "Wie wechsle ich das Rad an meinem Fahrrad?",
    "Der Zug nach Hamburg hat heute zwanzig Minuten Verspätung.",
    "Où se trouve la bibliothèque la plus proche ?",
    "Le contrat prend fin le 31 décembre sans autre formalité.",
    "¿Cuánto tarda el envío a las islas?",
    "La receta lleva aceite, ajo y dos tomates maduros.",
    "Как оплатить счёт через интернет?",
    "Вчера в горах выпал первый снег.",
    "如何更改我的电子邮件地址？",
    "这家餐厅的面条很好吃，但是要等很久。",
    "東京から京都まで新幹線で何時間かかりますか。",
    "明日の会議は午後三時からです。",
    "कल सुबह की बैठक किस कमरे में है?",
    "كيف أستعيد كلمة المرور؟",
    "افتتحت المدينة مكتبة جديدة بجانب النهر.",
};

double Cosine(std::span<const float> a, std::span<const float> b) {
  double ab = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    ab += double{a[i]} * b[i];
    aa += double{a[i]} * a[i];
    bb += double{b[i]} * b[i];
  }
  return aa == bb && ab == aa ? 1 : ab / std::sqrt(aa * bb);
}

// A text's vector, or its hidden states.
Tensor VectorOf(const TextEncoder& model, const std::string& text, const Executor& executor) {
  const EncodeOptions options = {.executor = executor, .on_invalid_utf8 = OnInvalidUtf8::kReplace};
  if (model.dimensions() > 0) {
    return std::move(Take(model.Encode(Texts{text}, options)).vectors);
  }
  return std::move(Take(model.EncodeTokens(text, options)).vectors);
}

std::span<const float> Numbers(const Tensor& tensor) {
  return {static_cast<const float*>(tensor.data()), tensor.size_bytes() / sizeof(float)};
}

}  // namespace

std::vector<std::string> BuiltInSentences() { return {std::begin(kProbes), std::end(kProbes)}; }

CosineLoss MeasureLoss(const std::string& folder, const OpenOptions& options,
                       const std::string& other_folder, const OpenOptions& other_options,
                       const std::vector<std::string>& texts) {
  const ThreadPool pool = Take(ThreadPool::Create({}));
  const TextEncoder one = Take(TextEncoder::Open(folder, options));
  const TextEncoder other = Take(TextEncoder::Open(other_folder, other_options));
  if (!one.has_tokenizer()) throw Failure(folder + " has no tokenizer");
  CosineLoss loss{.texts = texts.size()};
  double sum = 0;
  for (const std::string& text : texts) {
    const Tensor a = VectorOf(one, text, pool.executor());
    const Tensor b = VectorOf(other, text, pool.executor());
    const double cosine = Cosine(Numbers(a), Numbers(b));
    sum += cosine;
    loss.least = std::min(loss.least, cosine);
  }
  if (!texts.empty()) loss.mean = sum / static_cast<double>(texts.size());
  return loss;
}

}  // namespace encore::tool
