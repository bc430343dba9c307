// SPDX-License-Identifier: Apache-2.0
//
// Heat maps of attention weights as SVG pictures. Not here: heat maps in characters (terminal.h), a
// model's attention (model_attention_report.h).

#ifndef ENCORE_TOOLS_ENCORE_SVG_H_
#define ENCORE_TOOLS_ENCORE_SVG_H_

#include <string>
#include <vector>

#include "encore/ops.h"

namespace encore::tool {

struct HeatMapPicture {
  std::string title;
  std::string subtitle;
  std::vector<std::string> rows;     // queries, one label a row; printable text (text.h)
  std::vector<std::string> columns;  // keys
  ConstView weights;                 // [H, rows, columns]: one panel a head
};

// A whole SVG 1.1 document: a light page, labelled cells with their numbers where they fit, the
// scale of colours. Any label is escaped.
std::string HeatMapSvg(const HeatMapPicture& picture);

}  // namespace encore::tool

#endif  // ENCORE_TOOLS_ENCORE_SVG_H_
