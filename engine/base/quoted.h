// SPDX-License-Identifier: Apache-2.0
//
// Foreign text, such as a name from a file, for error texts.

#ifndef ENCORE_ENGINE_BASE_QUOTED_H_
#define ENCORE_ENGINE_BASE_QUOTED_H_

#include <string>
#include <string_view>

namespace encore::inline v0_1::internal {

// 'text' in single quotes, all but printable ASCII escaped, cut to a readable length.
std::string Quoted(std::string_view text);
// The same for a path: a long one keeps its end, the file's name.
std::string QuotedPath(std::string_view path);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_BASE_QUOTED_H_
