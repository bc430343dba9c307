// SPDX-License-Identifier: Apache-2.0
//
// What encore sees of the machine.

#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include "encore/cpu.h"
#include "python/src/bindings.h"

namespace pyencore {

void BindMachine(nb::module_& module) {
  module.def("cores", [] { return encore::Cores().usable; });
  module.def("cores_reason", [] { return encore::Cores().reason; });
  module.def("compiled_targets", &encore::CompiledTargets);
  module.def("supported_targets", &encore::SupportedTargets);
  module.def("active_target", &encore::ActiveTarget);
  module.def(
      "set_target", [](std::string_view name) { Check(encore::SetTarget(name)); }, nb::arg("name"));
}

}  // namespace pyencore
