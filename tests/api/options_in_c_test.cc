// SPDX-License-Identifier: Apache-2.0
//
// Every option of C++ has a place in C, or a reason why it has none. A new one has to be added
// here.

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace encore {
namespace {

using Places = std::map<std::string, std::string>;  // by the field of C++

// "struct.field" of c_api.h, or "-" and the reason.
const std::vector<std::pair<std::string, Places>>& AllPlaces() {
  static const auto* const places = new std::vector<std::pair<std::string, Places>>{
      {"text_encoder.h OpenOptions",
       {{"ignore_unknown_keys", "encore_open_options.ignore_unknown_keys"},
        {"pooling", "encore_open_options.pooling"},
        {"normalize", "encore_open_options.normalize"},
        {"max_length", "encore_open_options.max_length"},
        {"executor", "encore_open_options.parallel_for"},
        {"precision", "encore_open_options.precision"},
        {"keep", "encore_open_options.keep"},
        {"amx_bf16", "encore_open_options.amx_bf16"},
        {"language_head", "encore_open_options.language_head"},
        {"task", "encore_open_options.task"},
        {"weights", "encore_open_options.copy_weights"},
        {"cache", "encore_open_options.cache"},
        {"compare_cache", "encore_open_options.compare_cache"},
        {"trust_cache", "encore_open_options.trust_cache"},
        {"kept_bytes", "encore_open_options.kept_bytes"}}},
      {"text_encoder.h EncodeOptions",
       {{"executor", "encore_encode_options.call"},
        {"prompt_name", "encore_encode_options.prompt_name"},
        {"prompt", "encore_encode_options.prompt"},
        {"max_length", "encore_encode_options.max_length"},
        {"on_long", "encore_encode_options.on_long"},
        {"on_invalid_utf8", "encore_encode_options.on_invalid_utf8"},
        {"plain_text", "encore_encode_options.plain_text"},
        {"normalize", "encore_encode_options.normalize"},
        {"dimensions", "encore_encode_options.dimensions"},
        {"batch_tokens", "encore_encode_options.batch_tokens"},
        {"stats", "encore_call_options.stats"},
        {"progress", "encore_call_options.progress"},
        {"scratch", "- the model's own memory serves calls in C"}}},
      {"text_encoder.h ScoreOptions",
       {{"executor", "encore_score_options.call"},
        {"prompt_name", "encore_score_options.prompt_name"},
        {"prompt", "encore_score_options.prompt"},
        {"max_length", "encore_score_options.max_length"},
        {"on_long", "encore_score_options.on_long"},
        {"on_invalid_utf8", "encore_score_options.on_invalid_utf8"},
        {"plain_text", "encore_score_options.plain_text"},
        {"activation", "encore_score_options.activation"},
        {"batch_tokens", "encore_score_options.batch_tokens"},
        {"stats", "encore_call_options.stats"},
        {"progress", "encore_call_options.progress"},
        {"scratch", "- the model's own memory serves calls in C"}}},
      {"text_encoder.h SparseOptions",
       {{"executor", "encore_encode_options.call"},
        {"prompt_name", "encore_encode_options.prompt_name"},
        {"prompt", "encore_encode_options.prompt"},
        {"max_length", "encore_encode_options.max_length"},
        {"on_long", "encore_encode_options.on_long"},
        {"on_invalid_utf8", "encore_encode_options.on_invalid_utf8"},
        {"plain_text", "encore_encode_options.plain_text"},
        {"task", "encore_encode_options.task"},
        {"max_active_dims", "encore_encode_options.max_active_dims"},
        {"batch_tokens", "encore_encode_options.batch_tokens"},
        {"stats", "encore_call_options.stats"},
        {"progress", "encore_call_options.progress"},
        {"scratch", "- the model's own memory serves calls in C"}}},
      {"text_encoder.h LabelOptions",
       {{"executor", "encore_label_options.call"},
        {"max_length", "encore_label_options.max_length"},
        {"on_long", "encore_label_options.on_long"},
        {"on_invalid_utf8", "encore_label_options.on_invalid_utf8"},
        {"plain_text", "encore_label_options.plain_text"},
        {"aggregation", "encore_label_options.aggregation"},
        {"ignore_labels", "encore_label_options.ignored"},
        {"batch_tokens", "encore_label_options.batch_tokens"},
        {"stats", "encore_call_options.stats"},
        {"progress", "encore_call_options.progress"},
        {"scratch", "- the model's own memory serves calls in C"}}},
      {"image_encoder.h ImageOptions",
       {{"executor", "encore_image_options.call"},
        {"normalize", "encore_image_options.normalize"},
        {"dimensions", "encore_image_options.dimensions"},
        {"batch_tokens", "encore_image_options.batch_tokens"},
        {"activation", "encore_image_options.activation"},
        {"stats", "encore_call_options.stats"},
        {"progress", "encore_call_options.progress"},
        {"scratch", "- the model's own memory serves calls in C"}}},
      {"tokenizer.h TokenizeOptions",
       {{"max_length", "encore_tokenize_options.max_length"},
        {"on_long", "encore_tokenize_options.on_long"},
        {"on_invalid_utf8", "encore_tokenize_options.on_invalid_utf8"},
        {"add_special_tokens", "encore_tokenize_options.without_special_tokens"},
        {"plain_text", "encore_tokenize_options.plain_text"},
        {"offsets", "- encore_tokenize gives ids alone"}}},
      {"thread_pool.h ThreadPoolOptions",
       {{"threads", "encore_open_options.threads"},
        {"idle_spin", "- a program whose threads spin has a loop of its own"},
        {"name", "encore_open_options.thread_name"},
        {"cores", "encore_open_options.cores"},
        {"keep_off_caller", "- a model has no threads but its own, which are best kept off"},
        {"on_start", "encore_open_options.on_start"}}},
      {"max_sim.h MaxSimOptions",
       {{"mean", "- encore_max_sim takes the folder's"},
        {"executor", "- encore_max_sim takes the model's"}}},
      {"call_stats.h CallStats",
       {{"tokenizing", "encore_call_stats.tokenizing"},
        {"embedding", "encore_call_stats.embedding"},
        {"layers", "encore_call_stats.layers"},
        {"pooling", "encore_call_stats.pooling"},
        {"waiting", "encore_call_stats.waiting"},
        {"texts", "encore_call_stats.texts"},
        {"tokens", "encore_call_stats.tokens"},
        {"helpers", "encore_call_stats.helpers"},
        {"scratch_bytes", "encore_call_stats.scratch_bytes"}}},
      {"call_stats.h CallProgress",
       {{"texts", "encore_call_progress.texts"},
        {"all_texts", "encore_call_progress.all_texts"},
        {"tokens", "encore_call_progress.tokens"},
        {"all_tokens", "encore_call_progress.all_tokens"}}}};
  return *places;
}

// Names of the fields of a struct in a header; empty if it is not there.
std::set<std::string> FieldsOf(const std::string& header, const std::string& name) {
  std::stringstream text;
  text << std::ifstream(ENCORE_SOURCE_DIR "/include/encore/" + header).rdbuf();
  std::string all = std::regex_replace(text.str(), std::regex("//[^\n]*"), "");
  const size_t begin = all.find("struct " + name + " {");
  if (begin == std::string::npos) return {};
  std::string body = all.substr(begin, all.find("\n}", begin) - begin);
  body = body.substr(body.find('{') + 1);
  // Arguments and values hold no names of fields.
  for (const char* inside : {"\\{[^{}]*\\}", "<[^<>]*>",
                             "\\(\\*(\\w+)\\)\\([^()]*(\\([^()]*\\))?"
                             "[^()]*(\\([^()]*\\))?[^()]*\\)"}) {
    for (int nested = 0; nested < 3; ++nested) {
      body = std::regex_replace(body, std::regex(inside),
                                inside[0] == '\\' && inside[1] == '(' ? " $1" : "");
    }
  }
  std::set<std::string> fields;
  const std::regex declared("(\\w+)\\s*(=[^,;]*)?[,;]");
  for (auto it = std::sregex_iterator(body.begin(), body.end(), declared);
       it != std::sregex_iterator(); ++it) {
    fields.insert((*it)[1]);
  }
  return fields;
}

TEST(OptionsInC, EachHasAPlaceOrAReason) {
  for (const auto& [type, places] : AllPlaces()) {
    SCOPED_TRACE(type);
    const size_t blank = type.find(' ');
    std::set<std::string> named;
    for (const auto& [field, place] : places) {
      named.insert(field);
      if (place.starts_with("- ")) continue;
      const size_t dot = place.find('.');
      EXPECT_TRUE(FieldsOf("c_api.h", place.substr(0, dot)).contains(place.substr(dot + 1)))
          << place;
    }
    EXPECT_EQ(FieldsOf(type.substr(0, blank), type.substr(blank + 1)), named);
  }
}

// What the limits of an executor are in C: Executor's methods.
TEST(OptionsInC, AnExecutorsLimitsAreCallOptions) {
  const std::set<std::string> call = FieldsOf("c_api.h", "encore_call_options");
  for (const char* field : {"stop", "seconds", "background"}) EXPECT_TRUE(call.contains(field));
  std::stringstream text;
  text << std::ifstream(ENCORE_SOURCE_DIR "/include/encore/executor.h").rdbuf();
  const std::string header = text.str();
  std::set<std::string> limits;
  const std::regex declared("\n  Executor (\\w+)\\(");
  for (auto it = std::sregex_iterator(header.begin(), header.end(), declared);
       it != std::sregex_iterator(); ++it) {
    limits.insert((*it)[1]);
  }
  // In C a model has its threads, and opening it says how many.
  EXPECT_TRUE(FieldsOf("c_api.h", "encore_open_options").contains("threads"));
  EXPECT_EQ(limits, (std::set<std::string>{"WithAtMost", "WithStop", "WithDeadline", "WithoutStop",
                                           "InBackground"}));
}

}  // namespace
}  // namespace encore
