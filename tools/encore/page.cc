// SPDX-License-Identifier: Apache-2.0
//
// Markup and the style sheet. Colours are named for what they are used for; each has a light and a
// dark value with a contrast of 4.5 at least on its ground.

#include "tools/encore/page.h"

#include "tools/encore/text.h"

namespace encore::tool {
namespace {

// A page that tried to load or run anything would be stopped by its own rule.
constexpr const char* kPolicy =
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
    "'unsafe-inline'; img-src data:\">\n";

constexpr const char* kStyle = R"(
:root { color-scheme: light dark; --ground: #ffffff; --ink: #1f2328; --muted: #59636e;
  --grid: #d8dee4; --band: #e9edf1; --warn: #9a3412;
  --c1: #1f66b0; --c2: #b4500a; --c3: #23783a; --c4: #7747a5; --c5: #b42c3a; --c6: #00707f;
  --c7: #78551f; --c8: #57606a; }
@media (prefers-color-scheme: dark) { :root { --ground: #0f1419; --ink: #e6edf3; --muted: #9aa6b2;
  --grid: #2f3a45; --band: #222c36; --warn: #f0a46b;
  --c1: #6fb3f2; --c2: #f3a261; --c3: #6fcb86; --c4: #c6a0ec; --c5: #f48d92; --c6: #5fcbd8;
  --c7: #d3ad72; --c8: #aab4bf; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 24px 20px 60px; max-width: 1160px; background: var(--ground);
  color: var(--ink); font: 15px/1.5 system-ui, "Helvetica Neue", Arial, "DejaVu Sans", sans-serif; }
h1 { font-size: 24px; margin: 0 0 8px; } h2 { font-size: 18px; margin: 36px 0 8px; }
p { margin: 6px 0; } ul { margin: 6px 0; padding-left: 22px; }
.muted { color: var(--muted); } .warn { color: var(--warn); }
figure { margin: 12px 0 0; overflow-x: auto; }
figcaption { color: var(--muted); font-size: 13px; margin-top: 4px; }
.legend { margin: 6px 0; font-size: 13px; }
.legend span { margin-right: 18px; white-space: nowrap; }
.legend svg { vertical-align: -1px; margin-right: 5px; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: 13px; margin: 10px 0; }
th, td { padding: 3px 8px; border-bottom: 1px solid var(--grid); text-align: left;
  white-space: nowrap; }
th { color: var(--muted); font-weight: 600; }
.number { text-align: right; font-variant-numeric: tabular-nums; }
svg { display: block; max-width: none; } .legend svg { display: inline; }
svg text { font-size: 12px; fill: var(--ink); paint-order: stroke; stroke: var(--ground);
  stroke-width: 3px; stroke-linejoin: round; }
svg text.muted { fill: var(--muted); } svg text.strong { font-weight: 600; }
svg text.c1 { fill: var(--c1); } svg text.c2 { fill: var(--c2); } svg text.c3 { fill: var(--c3); }
svg text.c4 { fill: var(--c4); } svg text.c5 { fill: var(--c5); } svg text.c6 { fill: var(--c6); }
svg text.c7 { fill: var(--c7); } svg text.c8 { fill: var(--c8); }
.c1 { --own: var(--c1); } .c2 { --own: var(--c2); } .c3 { --own: var(--c3); }
.c4 { --own: var(--c4); } .c5 { --own: var(--c5); } .c6 { --own: var(--c6); }
.c7 { --own: var(--c7); } .c8 { --own: var(--c8); } .grid { --own: var(--grid); }
.band { --own: var(--band); } .ink { --own: var(--ink); } .muted { --own: var(--muted); }
.line { fill: none; stroke: var(--own); stroke-width: 1.75px; } .line.grid { stroke-width: 1px; }
.line.dashed { stroke-dasharray: 5 4; } .area, .dot { fill: var(--own); }
.dot { stroke: var(--ground); stroke-width: 1px; }
.ring { fill: var(--ground); stroke: var(--own); stroke-width: 2px; }
@media print { body { max-width: none; } figure, tr { break-inside: avoid; } }
)";

std::string ClassOf(const std::string& style) {
  return style.empty() ? "" : " class=\"" + style + "\"";
}

}  // namespace

std::string Paragraph(const std::string& text, const std::string& style) {
  return "<p" + ClassOf(style) + ">" + EscapeXml(text) + "</p>\n";
}

std::string List(const std::vector<std::string>& items, const std::string& style) {
  if (items.empty()) return "";
  std::string out = "<ul" + ClassOf(style) + ">\n";
  for (const std::string& item : items) out += "<li>" + EscapeXml(item) + "</li>\n";
  return out + "</ul>\n";
}

std::string Heading(const std::string& text) { return "<h2>" + EscapeXml(text) + "</h2>\n"; }

std::string Figure(const std::string& svg, const std::string& caption) {
  return "<figure>\n" + svg + "<figcaption>" + EscapeXml(caption) + "</figcaption>\n</figure>\n";
}

std::string LegendLine(const std::vector<Legend>& entries) {
  std::string out = "<p class=\"legend\">";
  for (const Legend& entry : entries) {
    out += "<span><svg width=\"11\" height=\"11\" aria-hidden=\"true\"><rect class=\"area " +
           entry.style + "\" width=\"11\" height=\"11\" rx=\"2\"></rect></svg>" +
           EscapeXml(entry.text) + "</span>\n";
  }
  return out + "</p>\n";
}

std::string HtmlTable(const std::vector<std::vector<std::string>>& lines, size_t first_number,
                      size_t last_number) {
  std::string out = "<div class=\"scroll\"><table>\n";
  for (size_t row = 0; row < lines.size(); ++row) {
    const std::string tag = row == 0 ? "th" : "td";
    out += row == 0 ? "<thead><tr>" : "<tr>";
    for (size_t i = 0; i < lines[row].size(); ++i) {
      const bool number = first_number <= i && i < last_number;
      out.append("<").append(tag).append(ClassOf(number ? "number" : "")).append(">");
      out.append(EscapeXml(lines[row][i])).append("</").append(tag).append(">");
    }
    out += row == 0 ? "</tr></thead>\n<tbody>\n" : "</tr>\n";
  }
  return out + "</tbody></table></div>\n";
}

std::string Page(const std::string& title, const std::string& body) {
  const std::string head =
      std::string("<meta charset=\"utf-8\">\n") + kPolicy +
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>" +
      EscapeXml(title) + "</title>\n<link rel=\"icon\" href=\"data:,\">\n<style>" + kStyle +
      "</style>\n";
  return "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n" + head + "</head>\n<body>\n<h1>" +
         EscapeXml(title) + "</h1>\n" + body + "</body>\n</html>\n";
}

std::string ColourOf(size_t series) { return "c" + std::to_string(series % kColours + 1); }

}  // namespace encore::tool
