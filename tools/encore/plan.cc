// SPDX-License-Identifier: Apache-2.0
//
// `encore info --plan`: asks the engine's pure functions for their choices and writes them down.

#include <algorithm>

#include "encore/cpu.h"
#include "encore/encoder.h"
#include "engine/base/int_math.h"
#include "engine/kernels/gemm_kernel.h"
#include "engine/nn/thread_plan.h"
#include "engine/ops/gemm_blocking.h"
#include "tools/encore/info_parts.h"
#include "tools/encore/text.h"

namespace encore::tool {
namespace {

using internal::GemmKernel;
using internal::ThreadPlanKind;
using Json = nlohmann::ordered_json;

Json MatrixPlan(const GemmKernel& kernel, const std::string& name, size_t n, size_t k) {
  const size_t nv = internal::ChoosePanelVectors(kernel, n);
  const size_t nr = nv * kernel.lanes;
  const internal::GemmBlocking blocking =
      internal::ChooseGemmBlocking(internal::MachineCaches(), k, nr);
  return {{"name", name},
          {"n", n},
          {"k", k},
          {"nr", nr},
          {"panels", internal::DivCeil(n, nr)},
          {"mr", kernel.max_mr[nv]},
          {"mc", blocking.mc},
          {"kc", blocking.kc},
          {"bytes", k * internal::RoundUp(n, kernel.lanes) * sizeof(float)}};
}

Json Threads(const bench::NamedWorkload& workload, int threads, size_t panel_cols) {
  const EncoderConfig config = bench::ConfigOf(workload.model);
  std::vector<size_t> starts{0};
  for (const size_t length : workload.lengths) starts.push_back(starts.back() + length);
  const size_t most = static_cast<size_t>(threads);
  std::vector<size_t> words(internal::ThreadPlanWords(workload.lengths.size(), most));
  const internal::ThreadPlan plan = internal::ChooseThreadPlan(
      internal::ModelSizes(config), starts, most, internal::MachineCaches(), words.data());

  Json json = {{"kind", internal::ThreadPlanKindName(plan.kind)}, {"threads", plan.threads}};
  switch (plan.kind) {
    case ThreadPlanKind::kSequences:
      for (size_t i = 0; i < plan.tasks; ++i) {
        const size_t first = plan.task_starts[plan.order[i]];
        const size_t end = plan.task_starts[plan.order[i] + 1];
        json["groups"].push_back({{"first_sequence", first},
                                  {"sequences", end - first},
                                  {"rows", starts[end] - starts[first]}});
      }
      break;
    case ThreadPlanKind::kRows:
      for (size_t b = 0; b < plan.row_blocks.parts; ++b) {
        json["row_blocks"].push_back(plan.row_blocks.begin(b + 1) - plan.row_blocks.begin(b));
      }
      json["attention_apart"] = plan.attention_apart;
      break;
    case ThreadPlanKind::kColumns:
      json["heads_together"] =
          internal::HeadsTogether({config.d_model, config.layers[0]}, plan.threads, panel_cols);
      break;
  }
  return json;
}

// "96", "96 to 128".
std::string Between(const std::vector<size_t>& values) {
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  return *least == *most ? std::to_string(*least)
                         : std::to_string(*least) + " to " + std::to_string(*most);
}

void PrintGroups(std::ostream& out, const Json& groups, bool several_threads) {
  constexpr size_t kListed = 12;
  std::vector<size_t> rows;
  std::vector<size_t> sequences;
  for (const Json& group : groups) {
    rows.push_back(group["rows"]);
    sequences.push_back(group["sequences"]);
  }
  out << "  " << Counted(groups.size(), "group") << " of " << Between(sequences)
      << (*std::max_element(sequences.begin(), sequences.end()) == 1 ? " sequence" : " sequences")
      << (several_threads ? ", taken by whoever is free, the largest first" : "") << "\n  rows: ";
  if (groups.size() > kListed) {
    out << Between(rows) << "\n";
    return;
  }
  for (size_t i = 0; i < rows.size(); ++i) out << (i > 0 ? ", " : "") << rows[i];
  out << "\n";
}

void PrintThreads(std::ostream& out, const Json& threads) {
  const size_t count = threads["threads"];
  out << "Threads\n  by " << threads["kind"].get<std::string>() << ", on "
      << Counted(count, "thread") << "\n";
  if (threads.contains("groups")) {
    PrintGroups(out, threads["groups"], count > 1);
  } else if (threads.contains("row_blocks")) {
    out << "  " << Counted(threads["row_blocks"].size(), "block") << " of "
        << Between(threads["row_blocks"]) << " rows; attention "
        << (threads["attention_apart"] ? "apart, by heads and blocks of queries"
                                       : "as a part of each block's work")
        << "\n";
  } else {
    out << "  each step by columns, attention by heads; the first product's columns "
        << (threads["heads_together"] ? "and attention of a head together"
                                      : "and attention one after the other")
        << "\n";
  }
}

}  // namespace

Json PlanJson(const bench::NamedWorkload& workload, int threads) {
  const GemmKernel& kernel = internal::GetGemmKernelF32();
  const size_t d = workload.model.d_model;
  const size_t d_ff = workload.model.d_ff;
  Json plan = {{"target", ActiveTarget()}, {"lanes", kernel.lanes}};
  for (size_t nv = 1; nv <= GemmKernel::kMaxNv; ++nv) {
    if (kernel.max_mr[nv] == 0) continue;
    plan["tiles"].push_back(
        {{"vectors", nv}, {"mr", kernel.max_mr[nv]}, {"nr", nv * kernel.lanes}});
  }
  plan["matrices"] = {MatrixPlan(kernel, "in_proj", 3 * d, d), MatrixPlan(kernel, "out_proj", d, d),
                      MatrixPlan(kernel, "linear1", d_ff, d),
                      MatrixPlan(kernel, "linear2", d, d_ff)};
  plan["batch"] = {{"lengths", bench::DescribeLengths(workload.lengths)},
                   {"tokens", bench::Tokens(workload)},
                   {"threads", threads}};
  plan["threads"] = Threads(workload, threads, plan["matrices"][0]["nr"]);
  return plan;
}

void PrintPlan(std::ostream& out, const Json& plan) {
  out << "Microtiles, f32 with " << plan["target"].get<std::string>() << ", "
      << Counted(plan["lanes"], "float") << " a vector\n ";
  for (const Json& tile : plan["tiles"]) {
    out << " up to " << tile["mr"] << " x " << tile["nr"] << "  ";
  }
  out << "\nMatrices\n  " << PadRight("", 10);
  for (const char* name : {"N", "K", "tile", "panels", "MC", "KC", "packed KiB"}) {
    out << PadLeft(name, 11);
  }
  out << "\n";
  for (const Json& matrix : plan["matrices"]) {
    out << "  " << PadRight(matrix["name"], 10);
    const size_t bytes = matrix["bytes"];
    for (const std::string& cell :
         {matrix["n"].dump(), matrix["k"].dump(), matrix["mr"].dump() + " x " + matrix["nr"].dump(),
          matrix["panels"].dump(), matrix["mc"].dump(), matrix["kc"].dump(),
          std::to_string(bytes >> 10)}) {
      out << PadLeft(cell, 11);
    }
    out << "\n";
  }
  const Json& batch = plan["batch"];
  out << "Batch\n  " << batch["lengths"].get<std::string>() << ", "
      << Counted(batch["tokens"], "token") << ", " << Counted(batch["threads"], "thread") << "\n";
  PrintThreads(out, plan["threads"]);
}

}  // namespace encore::tool
