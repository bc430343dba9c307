// SPDX-License-Identifier: Apache-2.0
//
// pyencore._core, the compiled half of the Python package: thin classes over encore's public
// headers. Arguments that people give are read in Python (python/pyencore/); here they have one
// type each.

#include "python/src/bindings.h"

#include <nanobind/nanobind.h>

#include "encore/version.h"

NB_MODULE(_core, module) {
  // A thread that is in a call when the interpreter ends keeps its model.
  pyencore::nb::set_leak_warnings(false);
  module.attr("version") = encore::Version();
  pyencore::BindMachine(module);
  pyencore::BindTokenizer(module);
  pyencore::BindWatch(module);
  pyencore::BindTextEncoder(module);
  pyencore::BindMultiVectorEncoder(module);
  pyencore::BindImageEncoder(module);
  pyencore::BindEncoder(module);
  pyencore::BindOps(module);
}
