// SPDX-License-Identifier: Apache-2.0
//
// Text that is safe to show (tools/encore/text.h), heat maps in characters (terminal.h) and the
// largest column.

#include "tools/encore/text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <sstream>
#include <string>
#include <vector>

#include "tools/encore/terminal.h"

namespace encore::tool {
namespace {

constexpr const char* kReplaced = "\xEF\xBF\xBD";

TEST(TextTest, PrintableKeepsText) {
  for (const char* text :
       {"", "cat", "na\xC3\xAFve", "\xE7\x8C\xAB", "\xF0\x9F\x90\x88", "<&>\"'"}) {
    EXPECT_EQ(Printable(text), text);
  }
}

TEST(TextTest, PrintableReplacesWhatIsNot) {
  EXPECT_EQ(Printable("a\x1b[0m"), std::string("a") + kReplaced + "[0m");
  EXPECT_EQ(Printable("\xff"), kReplaced);
  EXPECT_EQ(Printable("\xC3"), kReplaced);                      // cut off
  EXPECT_EQ(Printable("\xC3("), std::string(kReplaced) + "(");  // no continuation
  EXPECT_EQ(Printable("\xC2\x9B"), kReplaced);                  // a C1 control
  EXPECT_EQ(Printable("\xE2\x80\xAE"), kReplaced);              // right-to-left override
  EXPECT_EQ(Printable("\xEF\xBF\xBF"), kReplaced);              // U+FFFF, not in XML
  // Overlong forms and surrogates are replaced byte by byte.
  EXPECT_EQ(Printable("\xC0\x80"), std::string(kReplaced) + kReplaced);
  EXPECT_EQ(Printable("\xED\xA0\x80"), std::string(kReplaced) + kReplaced + kReplaced);
  EXPECT_EQ(Printable("\xF4\x90\x80\x80"),
            std::string(kReplaced) + kReplaced + kReplaced + kReplaced);
}

TEST(TextTest, DisplayWidthCountsColumns) {
  EXPECT_EQ(DisplayWidth("cat"), 3u);
  EXPECT_EQ(DisplayWidth("na\xC3\xAFve"), 5u);
  EXPECT_EQ(DisplayWidth("nai\xCC\x88ve"), 5u);     // a combining mark
  EXPECT_EQ(DisplayWidth("\xE7\x8C\xAB"), 2u);      // a wide character
  EXPECT_EQ(DisplayWidth("\xF0\x9F\x90\x88"), 2u);  // an emoji
  EXPECT_EQ(PadLeft("\xE7\x8C\xAB", 4), "  \xE7\x8C\xAB");
  EXPECT_EQ(PadRight("cat", 2), "cat");
}

TEST(TextTest, ShortenedKeepsWholeCharacters) {
  EXPECT_EQ(Shortened("abcdef", 6), "abcdef");
  EXPECT_EQ(Shortened("abcdefg", 6), "abc...");
  EXPECT_EQ(Shortened("\xE7\x8C\xAB\xE7\x8C\xAB\xE7\x8C\xAB\xE7\x8C\xAB", 6), "\xE7\x8C\xAB...");
  EXPECT_EQ(Shortened("abcdefg", 3), "...");
}

TEST(TextTest, SplitWordsAtAnyWhiteSpace) {
  EXPECT_EQ(SplitWords(" The\tcat\n sat "), (std::vector<std::string>{"The", "cat", "sat"}));
  EXPECT_TRUE(SplitWords(" \r\n").empty());
}

TEST(TextTest, Numbers) {
  EXPECT_EQ(Number(0.52744, 4), "0.5274");
  EXPECT_EQ(Number(-0.00001, 4), "0.0000");
  EXPECT_EQ(Number(-0.0001, 4), "-0.0001");
  EXPECT_EQ(Number(-1234567, 1), "-1.2e+06");
  EXPECT_EQ(Number(-NAN, 2), "nan");
  EXPECT_EQ(Number(-INFINITY, 2), "-inf");
  EXPECT_EQ(Grouped(7), "7");
  EXPECT_EQ(Grouped(999.5), "1 000");
  EXPECT_EQ(Grouped(1234567), "1 234 567");
  EXPECT_EQ(Grouped(-123456), "-123 456");
  EXPECT_EQ(Counted(0, "token"), "0 tokens");
  EXPECT_EQ(Counted(1, "token"), "1 token");
  EXPECT_EQ(Counted(2000, "token"), "2 000 tokens");
}

TEST(TerminalTest, LargestColumnIsTheFirstOfEquals) {
  const float weights[] = {0.2f, 0.4f, 0.4f, NAN, 0.1f, NAN};
  const ConstView view(weights, {2, 3});
  EXPECT_EQ(LargestColumn(view, 0), 1u);
  EXPECT_EQ(LargestColumn(view, 1), 1u);
}

TEST(TerminalTest, HeatMapShadesGrowWithTheWeight) {
  const float weights[] = {0, 1, 0.55f, 0.45f};
  std::ostringstream out;
  PrintHeatMap(out, {"a", "bc"}, {"x", "y"}, ConstView(weights, {2, 2}), {.precision = 2});
  EXPECT_EQ(out.str(),
            "         x      y \n"
            "  a   0.00   1.00@\n"
            "  bc  0.55+  0.45=\n");
}

TEST(TerminalTest, LargeMatricesLoseTheirMiddle) {
  const std::vector<float> values(20 * 20, 0.5f);
  std::ostringstream out;
  PrintMatrix(out, std::vector<std::string>(20, "t"), ConstView(values.data(), {20, 20}),
              {.precision = 1});
  const std::string text = out.str();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 7);
  EXPECT_EQ(text.substr(0, text.find('\n')), "  t    0.5 0.5 0.5 ... 0.5 0.5 0.5");
}

}  // namespace
}  // namespace encore::tool
