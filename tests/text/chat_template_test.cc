// SPDX-License-Identifier: Apache-2.0
//
// Chat templates beside what transformers renders (tests/data/chat_templates.json), and refusals.

#include "engine/text/chat_template.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "nlohmann/json.hpp"

namespace encore {
namespace {

using internal::RenderChatTemplate;
using nlohmann::json;

std::string ManyOf(const std::string& text, size_t times) {
  std::string all;
  for (size_t i = 0; i < times; ++i) all += text;
  return all;
}

// In that many loops, each in the one before.
std::string Looped(const std::string& text, size_t times) {
  return ManyOf("{% for m in messages %}", times) + text + ManyOf("{% endfor %}", times);
}

TEST(ChatTemplate, IsRenderedAsTransformersDoes) {
  const json cases = json::parse(std::ifstream(ENCORE_TEST_DATA_DIR "/chat_templates.json"));
  ASSERT_GE(cases.size(), 180u);
  size_t opened = 0;
  for (const json& one : cases) {
    const std::string source = one["source"];
    SCOPED_TRACE(one.dump());
    const Result<internal::ChatParts> parts =
        RenderChatTemplate(source, one["prompt"].get<std::string>(), one["structured"]);
    EXPECT_EQ(parts.ok(), one["opened"].get<bool>())
        << (parts.ok() ? "rendered" : parts.status().message());
    if (!parts.ok()) {
      EXPECT_EQ(parts.status().code(), ErrorCode::kUnsupported);
      continue;
    }
    ++opened;
    std::string joined;
    internal::JoinParts(*parts, "QQ", "DD", &joined);
    EXPECT_EQ(joined, one.value("rendered", "an error"));
  }
  EXPECT_GE(opened, 37u);
}

TEST(ChatTemplate, TellsWhichContentsItWants) {
  EXPECT_TRUE(internal::WantsStructuredContent(""));
  EXPECT_TRUE(internal::WantsStructuredContent("{{ m.content[0].text }}"));
  EXPECT_TRUE(internal::WantsStructuredContent("{% if part['type'] %}"));
  EXPECT_FALSE(internal::WantsStructuredContent("{{ message.content }}"));
}

TEST(ChatTemplate, IsBoundedInWorkAndDepth) {
  const std::string all = "{% for m in messages %}{{ m.content }}{% endfor %}";
  ASSERT_TRUE(RenderChatTemplate(all, "", false).ok());
  const std::string loops = Looped(all, 20);
  const std::string deep = ManyOf("{% if true %}", 100) + all + ManyOf("{% endif %}", 100);
  const std::string many = "{% if true %}" + all + ManyOf("{% elif true %}", 100) + "{% endif %}";
  std::string nested = "{{ " + std::string(5000, '(') + "1" + std::string(5000, ')') + " }}";
  const std::string text = "{% set a = messages[0].content %}";
  const std::string doubled = text + ManyOf("{% set a = a ~ a %}", 64) + "{{ a }}" + all;
  // A text of 512 parts; and few blocks with 9000 words each.
  const std::string parts = text + ManyOf("{% set a = a ~ a %}", 9) + all;
  const std::string words =
      text + all +
      Looped("{% if a is string" + ManyOf(" and a is string", 3000) + " %}{% endif %}", 6);
  for (const std::string& source : {loops, deep, many, nested + all, doubled, parts, words,
                                    std::string(size_t{2} << 20, 'x') + all}) {
    EXPECT_EQ(RenderChatTemplate(source, "", false).status().code(), ErrorCode::kUnsupported);
  }
  // A long prompt, though it is not in the result.
  const std::string texts = "{{ messages[-2].content }}{{ messages[-1].content }}";
  const std::string prompt(size_t{2} << 20, 'x');
  EXPECT_EQ(RenderChatTemplate(texts, prompt, false).status().code(), ErrorCode::kUnsupported);
  EXPECT_TRUE(RenderChatTemplate(texts, prompt.substr(0, 1000), false).ok());
  EXPECT_TRUE(RenderChatTemplate("{{ " + ManyOf("'a' ~ ", 500) + "'a' }}" + all, "", false).ok());
  for (size_t i = 0; i < all.size(); ++i) {  // whatever is cut off
    (void)RenderChatTemplate(all.substr(0, i), "", false).ok();
    (void)RenderChatTemplate(all.substr(i), "", false).ok();
  }
  for (const char* source : {"{{", "{%", "{#", "{{-", "{%-", "{%- -%}", "{% %}", "{{ }}", "{{ 'a",
                             "{{ a[ }}", "{{ -1 }}", "{% for %}", "{% if %}", "{% else %}"}) {
    EXPECT_FALSE(RenderChatTemplate(source, "", false).ok()) << source;
  }
}

}  // namespace
}  // namespace encore
