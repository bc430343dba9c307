// SPDX-License-Identifier: Apache-2.0
//
// `encore info`: what encore sees of the machine, and what it makes of it (plan.h); of a model's
// folder, what encore makes of that (model_info.h); of a file of weights, memory (weights_info.h).

#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/measure/threads.h"
#include "encore/cpu.h"
#include "encore/version.h"
#include "nlohmann/json.hpp"
#include "tools/encore/commands.h"
#include "tools/encore/failure.h"
#include "tools/encore/model_info.h"
#include "tools/encore/model_options.h"
#include "tools/encore/plan.h"
#include "tools/encore/precision_options.h"
#include "tools/encore/text.h"
#include "tools/encore/weights_info.h"

namespace encore::tool {
namespace {

constexpr const char* kFooter =
    R"(Examples:
  encore info
  encore info --json
  encore info all-MiniLM-L6-v2 --precision int8
  encore info --weights w.safetensors
  encore info --plan --d-model 384 --heads 12 --d-ff 1536 --lengths 16,128,300 --threads 2
  encore info --plan --target AVX2)";

struct Options {
  std::string folder;
  std::string weights;
  bool ignore_unknown_keys = false;
  bool json = false;
  bool plan = false;
  int threads = 0;
  std::string target;
  ModelOptions model;
  PrecisionOptions precision;
  CLI::Option* precision_option = nullptr;
  std::vector<CLI::Option*> plan_options;
};

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

int PrintText(const std::optional<Plan>& plan) {
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
  if (plan) PrintPlan(std::cout, *plan);
  return kExitOk;
}

int PrintJson(const std::optional<Plan>& plan) {
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
  if (plan) json["plan"] = PlanJson(*plan);
  std::cout << json.dump(1) << "\n";
  return kExitOk;
}

int Run(const Options& options) {
  for (const CLI::Option* option : options.plan_options) {
    const bool for_weights = option->get_name() == "--threads" || option->get_name() == "--target";
    if (option->count() > 0 && !options.plan && (options.weights.empty() || !for_weights)) {
      throw Failure(option->get_name() + " is for --plan, which was not asked for");
    }
  }
  if (!options.target.empty()) Check(SetTarget(options.target), "--target");
  if (!options.weights.empty()) {
    if (options.plan || !options.folder.empty()) {
      throw Failure("--weights is for a file alone, found --plan or a folder beside it");
    }
    PrintWeightsInfo(std::cout, {.path = options.weights,
                                 .threads = options.threads > 0 ? options.threads : UsableCores(),
                                 .json = options.json});
    return kExitOk;
  }
  if (!options.folder.empty()) {
    if (options.plan) throw Failure("--plan is for the machine, not for a folder");
    PrintModelInfo(std::cout, {.folder = options.folder,
                               .ignore_unknown_keys = options.ignore_unknown_keys,
                               .json = options.json,
                               .precision = options.precision.precision(),
                               .keep = options.precision.kept()});
    return kExitOk;
  }
  if (options.ignore_unknown_keys) {
    throw Failure("--ignore-unknown-keys is for a folder, which was not given");
  }
  if (options.precision_option->count() > 0) {
    throw Failure("--precision is for a folder, which was not given");
  }
  std::optional<Plan> plan;
  if (options.plan) {
    plan =
        MakePlan(options.model.Workload(), options.threads > 0 ? options.threads : UsableCores());
  }
  return options.json ? PrintJson(plan) : PrintText(plan);
}

}  // namespace

void AddInfo(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* sub = app.add_subcommand(
      "info", "SIMD targets, caches and cores that encore sees, or a model's folder");
  sub->add_option("folder", options->folder,
                  "A model's folder: its sizes, and every decision with the file behind it")
      ->type_name("FOLDER");
  sub->add_flag("--ignore-unknown-keys", options->ignore_unknown_keys,
                "Keys of the folder's files that encore does not know are no error");
  sub->add_option("--weights", options->weights,
                  "A file of weights: what it takes of memory in each precision")
      ->type_name("FILE");
  sub->add_flag("--json", options->json,
                "The same as JSON; sizes in bytes, 0 = unknown or not limited");
  sub->add_flag("--plan", options->plan, "Also how a layer and a batch would be computed here");
  options->plan_options = options->model.AddTo(*sub);
  options->plan_options.push_back(
      sub->add_option("--threads", options->threads, "Threads to plan for; else all usable cores")
          ->check(CLI::Range(1, bench::kMaxThreads)));
  options->plan_options.push_back(
      sub->add_option("--target", options->target, "SIMD target to plan for, e.g. AVX2")
          ->type_name("NAME"));
  options->precision_option = options->precision.AddTo(*sub);
  sub->footer(kFooter);
  sub->callback([options, &action] { action = [options] { return Run(*options); }; });
}

}  // namespace encore::tool
