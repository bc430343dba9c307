// SPDX-License-Identifier: Apache-2.0
//
// The OpenAPI document, openapi.json, which CMake puts into a source file.

#ifndef ENCORE_TOOLS_SERVE_OPENAPI_H_
#define ENCORE_TOOLS_SERVE_OPENAPI_H_

namespace encore::serve {

extern const char* const kOpenApi;

}  // namespace encore::serve

#endif  // ENCORE_TOOLS_SERVE_OPENAPI_H_
