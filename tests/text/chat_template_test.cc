// SPDX-License-Identifier: Apache-2.0
//
// Chat templates beside what transformers renders (tests/data/chat_templates.json), and what is
// refused.

#include "engine/text/chat_template.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "nlohmann/json.hpp"

namespace encore {
namespace {

using internal::RenderChatTemplate;
using nlohmann::json;

TEST(ChatTemplate, IsRenderedAsTransformersDoes) {
  const json cases = json::parse(std::ifstream(ENCORE_TEST_DATA_DIR "/chat_templates.json"));
  ASSERT_GE(cases.size(), 80u);
  size_t rendered = 0;
  for (const json& one : cases) {
    const std::string source = one["source"];
    SCOPED_TRACE(source);
    const Result<internal::ChatParts> parts =
        RenderChatTemplate(source, one["prompt"].get<std::string>(), one["structured"]);
    if (!parts.ok()) {
      EXPECT_EQ(parts.status().code(), ErrorCode::kUnsupported);
      continue;
    }
    ++rendered;
    std::string joined;
    internal::JoinParts(*parts, "QQ", "DD", &joined);
    EXPECT_EQ(joined, one["rendered"].get<std::string>());
  }
  // Those of the first half with contents of the kind that they are written for.
  EXPECT_GE(rendered, 21u);
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
  std::string loops = all;
  for (int i = 0; i < 20; ++i) loops = "{% for m in messages %}" + loops + "{% endfor %}";
  std::string deep = all;
  for (int i = 0; i < 100; ++i) deep = "{% if true %}" + deep + "{% endif %}";
  std::string many = "{% if true %}" + all;
  for (int i = 0; i < 100; ++i) many += "{% elif true %}";
  many += "{% endif %}";
  std::string nested = "{{ " + std::string(5000, '(') + "1" + std::string(5000, ')') + " }}";
  std::string doubled = "{% set a = messages[0].content %}";
  for (int i = 0; i < 64; ++i) doubled += "{% set a = a ~ a %}";
  for (const std::string& source : {loops, deep, many, nested + all, doubled + "{{ a }}" + all,
                                    std::string(size_t{2} << 20, 'x') + all}) {
    EXPECT_EQ(RenderChatTemplate(source, "", false).status().code(), ErrorCode::kUnsupported);
  }
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
