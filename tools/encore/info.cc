// SPDX-License-Identifier: Apache-2.0
//
// `encore info`: what encore sees of the machine.

#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "encore/cpu.h"
#include "encore/version.h"
#include "nlohmann/json.hpp"
#include "tools/encore/commands.h"
#include "tools/encore/failure.h"
#include "tools/encore/text.h"

namespace encore::tool {
namespace {

constexpr const char* kFooter =
    R"(Examples:
  encore info
  encore info --json)";

std::string Bytes(size_t bytes) {
  if (bytes == 0) return "unknown";
  if (bytes < (1u << 20)) return std::to_string(bytes >> 10) + " KiB";
  const double mebibytes = static_cast<double>(bytes) / (1 << 20);
  return Number(mebibytes, bytes % (1u << 20) == 0 ? 0 : 1) + " MiB";
}

std::string Joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text.empty() ? "none" : text;
}

int PrintText() {
  const CacheSizes caches = Caches();
  const CoreCount cores = Cores();
  std::cout << "encore " << ENCORE_VERSION_STRING << "\n"
            << "SIMD targets, best first\n"
            << "  compiled   " << Joined(CompiledTargets()) << "\n"
            << "  supported  " << Joined(SupportedTargets()) << "  (by this machine)\n"
            << "  active     " << ActiveTarget() << "\n"
            << "Caches\n"
            << "  L1 data    " << Bytes(caches.l1d) << " a core\n"
            << "  L2         " << Bytes(caches.l2) << " a core\n"
            << "  L3         " << Bytes(caches.l3) << " as a core sees it\n"
            << "Cores\n"
            << "  usable     " << cores.reason << "\n";
  return kExitOk;
}

int PrintJson() {
  const CacheSizes caches = Caches();
  const CoreCount cores = Cores();
  nlohmann::ordered_json json;
  json["version"] = ENCORE_VERSION_STRING;
  json["targets"] = {{"compiled", CompiledTargets()},
                     {"supported", SupportedTargets()},
                     {"active", ActiveTarget()}};
  json["caches"] = {{"l1d", caches.l1d}, {"l2", caches.l2}, {"l3", caches.l3}};
  json["cores"] = {{"usable", cores.usable},
                   {"online", cores.online},
                   {"affinity", cores.affinity},
                   {"cgroup_quota", cores.cgroup_quota},
                   {"reason", cores.reason}};
  std::cout << json.dump(1) << "\n";
  return kExitOk;
}

}  // namespace

void AddInfo(CLI::App& app, Action& action) {
  auto json = std::make_shared<bool>(false);
  CLI::App* sub = app.add_subcommand("info", "SIMD targets, caches and cores that encore sees");
  sub->add_flag("--json", *json, "The same as JSON; sizes in bytes, 0 = unknown or not limited");
  sub->footer(kFooter);
  sub->callback([json, &action] { action = [json] { return *json ? PrintJson() : PrintText(); }; });
}

}  // namespace encore::tool
