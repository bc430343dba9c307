// SPDX-License-Identifier: Apache-2.0
//
// What pages have in common: a document that needs no other file, no script and no network, in the
// reader's choice of light or dark. Not here: pictures (picture.h) and what pages say.

#ifndef ENCORE_TOOLS_ENCORE_PAGE_H_
#define ENCORE_TOOLS_ENCORE_PAGE_H_

#include <cstddef>
#include <string>
#include <vector>

namespace encore::tool {

// Texts may be foreign; all of these escape them.
std::string Paragraph(const std::string& text, const std::string& style = "");
std::string List(const std::vector<std::string>& items, const std::string& style = "");
std::string Heading(const std::string& text);

// A picture (markup of Canvas::Svg) with the words below it.
std::string Figure(const std::string& svg, const std::string& caption);

struct Legend {
  std::string style;  // a class with a colour: "c1"
  std::string text;
};
// Marks in their colours with what they stand for.
std::string LegendLine(const std::vector<Legend>& entries);

// lines[0] is the head. Columns from `first_number` to before `last_number` are numbers.
std::string HtmlTable(const std::vector<std::vector<std::string>>& lines, size_t first_number,
                      size_t last_number);

// The whole document; `body` is markup.
std::string Page(const std::string& title, const std::string& body);

// "c1" for the first series, and so on.
std::string ColourOf(size_t series);

}  // namespace encore::tool

#endif  // ENCORE_TOOLS_ENCORE_PAGE_H_
