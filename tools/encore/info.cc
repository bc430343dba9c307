// SPDX-License-Identifier: Apache-2.0
//
// `encore info`: what encore sees of the machine. What it makes of that, of a model's folder or of
// a file of weights is in plan.cc, model_info.cc and weights_info.cc.

#include <iostream>
#include <string>
#include <vector>

#include "bench/measure/threads.h"
#include "encore/cpu.h"
#include "encore/version.h"
#include "tools/encore/commands.h"
#include "tools/encore/failure.h"
#include "tools/encore/info_parts.h"
#include "tools/encore/shared_options.h"
#include "tools/encore/text.h"

namespace encore::tool {
namespace {

constexpr const char* kInfoFooter =
    R"(Examples:
  encore info
  encore info --json
  encore info all-MiniLM-L6-v2 --precision int8
  encore info --weights w.safetensors
  encore info --plan --d-model 384 --heads 12 --d-ff 1536 --lengths 16,128,300 --threads 2
  encore info --plan --target AVX2)";

struct InfoOptions {
  std::string folder;
  std::string weights;
  bool ignore_unknown_keys = false;
  bool json = false;
  bool plan = false;
  int threads = 0;
  std::string target;
  ModelOptions model;
  PrecisionOptions precision;
  Option precision_option;
  std::vector<Option> plan_options;
};

nlohmann::ordered_json DomainsJson() {
  nlohmann::ordered_json domains = nlohmann::ordered_json::array();
  for (const CoreDomain& domain : CoreDomains()) {
    domains.push_back(
        {{"node", domain.node}, {"cores", domain.cores}, {"siblings", domain.siblings}});
  }
  return domains;
}

nlohmann::ordered_json MachineJson() {
  const CacheSizes caches = Caches();
  const CoreCount cores = Cores();
  return {{"version", ENCORE_VERSION_STRING},
          {"targets",
           {{"compiled", CompiledTargets()},
            {"supported", SupportedTargets()},
            {"active", ActiveTarget()}}},
          {"caches", {{"l1d", caches.l1d}, {"l2", caches.l2}, {"l3", caches.l3}}},
          {"cores",
           {{"usable", cores.usable},
            {"online", cores.online},
            {"affinity", cores.affinity},
            {"cgroup_quota", cores.cgroup_quota},
            {"reason", cores.reason}}},
          {"core_domains", DomainsJson()}};
}

// "node 0: 0 1, and further threads of these: 2 3".
std::string DomainText(const CoreDomain& domain) {
  const auto list = [](const std::vector<int>& cores) {
    std::string text;
    for (const int core : cores) text += (text.empty() ? "" : " ") + std::to_string(core);
    return text;
  };
  std::string text = "node " + std::to_string(domain.node) + ": " + list(domain.cores);
  if (!domain.siblings.empty()) text += ", and further threads of these: " + list(domain.siblings);
  return text;
}

void PrintMachine(std::ostream& out) {
  const CacheSizes caches = Caches();
  const auto list = [](const std::vector<std::string>& names) {
    return names.empty() ? "none" : Joined(names);
  };
  out << "encore " << ENCORE_VERSION_STRING << "\n"
      << "SIMD targets, best first\n"
      << "  compiled   " << list(CompiledTargets()) << "\n"
      << "  supported  " << list(SupportedTargets()) << "  (by this machine)\n"
      << "  active     " << ActiveTarget() << "\n"
      << "Caches\n"
      << "  L1 data    " << BytesText(caches.l1d) << " a core\n"
      << "  L2         " << BytesText(caches.l2) << " a core\n"
      << "  L3         " << BytesText(caches.l3) << " as a core sees it\n"
      << "Cores\n"
      << "  usable     " << Cores().reason << "\n";
  for (const CoreDomain& domain : CoreDomains()) {
    out << "  one L3     " << DomainText(domain) << "\n";
  }
}

int RunInfo(const InfoOptions& options) {
  for (const Option& option : options.plan_options) {
    const bool for_weights = option.name() == "--threads" || option.name() == "--target";
    if (option.given() && !options.plan && (options.weights.empty() || !for_weights)) {
      throw Failure(option.name() + " is for --plan, which was not asked for");
    }
  }
  if (!options.target.empty()) Check(SetTarget(options.target), "--target");
  const int threads = options.threads > 0 ? options.threads : UsableCores();
  if (!options.weights.empty()) {
    if (options.plan || !options.folder.empty()) {
      throw Failure("--weights is for a file alone, found --plan or a folder beside it");
    }
    PrintWeightsInfo(std::cout,
                     {.path = options.weights, .threads = threads, .json = options.json});
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
  if (options.precision_option.given()) {
    throw Failure("--precision is for a folder, which was not given");
  }
  nlohmann::ordered_json plan;
  if (options.plan) plan = PlanJson(options.model.Workload(), threads);
  if (options.json) {
    nlohmann::ordered_json json = MachineJson();
    if (options.plan) json["plan"] = plan;
    std::cout << json.dump(1) << "\n";
    return kExitOk;
  }
  PrintMachine(std::cout);
  if (options.plan) PrintPlan(std::cout, plan);
  return kExitOk;
}

}  // namespace

void AddInfo(CommandLine& line, Action& action) {
  const auto [command, options] = AddCommand(
      line, action, "info",
      "Show this machine's SIMD targets, caches and cores, or what a model's folder means",
      kInfoFooter, RunInfo);
  command.Add("folder", &options->folder,
              "A model's folder: its sizes, and each setting with the file it comes from",
              {.type = "FOLDER"});
  command.Add("--ignore-unknown-keys", &options->ignore_unknown_keys, kIgnoreUnknownKeysHelp);
  command.Add("--weights", &options->weights,
              "A file of weights, or a model's folder: its memory in each precision",
              {.type = "FILE|FOLDER"});
  command.Add("--json", &options->json,
              "Print JSON; sizes are in bytes, 0: unknown or not limited");
  command.Add("--plan", &options->plan, "Also show how a layer and a batch would be computed here");
  options->plan_options = options->model.AddTo(command);
  options->plan_options.push_back(command.Add("--threads", &options->threads,
                                              "Threads to plan for; default: all usable cores",
                                              {.range = Range{1, bench::kMaxThreads}}));
  options->plan_options.push_back(command.Add(
      "--target", &options->target, "SIMD target to plan for, e.g. AVX2", {.type = "NAME"}));
  options->precision_option = options->precision.AddTo(command);
}

}  // namespace encore::tool
