// SPDX-License-Identifier: Apache-2.0
//
// Asks the engine's pure functions for their choices and writes them down.

#include "tools/encore/plan.h"

#include <algorithm>

#include "encore/cpu.h"
#include "encore/encoder.h"
#include "engine/base/int_math.h"
#include "engine/kernels/gemm_kernel.h"
#include "engine/ops/gemm_blocking.h"
#include "tests/reference/sequences.h"
#include "tools/encore/text.h"

namespace encore::tool {
namespace {

using internal::GemmKernel;

std::vector<PlannedTile> Tiles(const GemmKernel& kernel) {
  std::vector<PlannedTile> tiles;
  for (size_t nv = 1; nv <= GemmKernel::kMaxNv; ++nv) {
    if (kernel.max_mr[nv] > 0) tiles.push_back({nv, kernel.max_mr[nv], nv * kernel.lanes});
  }
  return tiles;
}

PlannedMatrix Matrix(const GemmKernel& kernel, const std::string& name, size_t n, size_t k) {
  const size_t nv = internal::ChoosePanelVectors(kernel, n);
  const size_t nr = nv * kernel.lanes;
  const internal::GemmBlocking blocking =
      internal::ChooseGemmBlocking(internal::MachineCaches(), k, nr);
  return {.name = name,
          .n = n,
          .k = k,
          .nr = nr,
          .panels = internal::DivCeil(n, nr),
          .mr = kernel.max_mr[nv],
          .mc = blocking.mc,
          .kc = blocking.kc,
          .bytes = k * internal::RoundUp(n, kernel.lanes) * sizeof(float)};
}

PlannedThreads Threads(const bench::NamedWorkload& workload, int threads, size_t panel_cols) {
  const EncoderConfig config = bench::ConfigOf(workload.model);
  const std::vector<size_t> starts = Starts(workload.lengths);
  const size_t most = static_cast<size_t>(threads);
  std::vector<size_t> words(internal::ThreadPlanWords(workload.lengths.size(), most));
  const internal::ThreadPlan plan = internal::ChooseThreadPlan(
      internal::ModelSizes(config), starts, most, internal::MachineCaches(), words.data());

  PlannedThreads planned{.kind = plan.kind,
                         .count = plan.threads,
                         .groups = {},
                         .row_blocks = {},
                         .attention_apart = plan.attention_apart,
                         .heads_together = internal::HeadsTogether(
                             {config.d_model, config.layers[0]}, plan.threads, panel_cols)};
  if (plan.kind == internal::ThreadPlanKind::kSequences) {
    for (size_t i = 0; i < plan.groups; ++i) {
      const size_t first = plan.group_starts[plan.order[i]];
      const size_t end = plan.group_starts[plan.order[i] + 1];
      planned.groups.push_back({first, end - first, starts[end] - starts[first]});
    }
  }
  if (plan.kind == internal::ThreadPlanKind::kRows) {
    for (size_t b = 0; b < plan.row_blocks.parts; ++b) {
      planned.row_blocks.push_back(plan.row_blocks.begin(b + 1) - plan.row_blocks.begin(b));
    }
  }
  return planned;
}

std::string Size(size_t value) { return std::to_string(value); }

// "96", "96 to 128".
std::string Between(const std::vector<size_t>& values) {
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  return *least == *most ? Size(*least) : Size(*least) + " to " + Size(*most);
}

void PrintGroups(std::ostream& out, const std::vector<PlannedGroup>& groups, size_t threads) {
  constexpr size_t kListed = 12;
  std::vector<size_t> rows;
  std::vector<size_t> sequences;
  for (const PlannedGroup& group : groups) {
    rows.push_back(group.rows);
    sequences.push_back(group.sequences);
  }
  out << "  " << Counted(groups.size(), "group") << " of " << Between(sequences)
      << (*std::max_element(sequences.begin(), sequences.end()) == 1 ? " sequence" : " sequences")
      << (threads > 1 ? ", taken by whoever is free, the largest first" : "") << "\n  rows: ";
  if (groups.size() > kListed) {
    out << Between(rows) << "\n";
    return;
  }
  for (size_t i = 0; i < rows.size(); ++i) out << (i > 0 ? ", " : "") << rows[i];
  out << "\n";
}

void PrintThreads(std::ostream& out, const PlannedThreads& threads) {
  out << "Threads\n  by " << internal::ThreadPlanKindName(threads.kind) << ", on "
      << Counted(threads.count, "thread") << "\n";
  switch (threads.kind) {
    case internal::ThreadPlanKind::kSequences:
      PrintGroups(out, threads.groups, threads.count);
      break;
    case internal::ThreadPlanKind::kRows:
      out << "  " << Counted(threads.row_blocks.size(), "block") << " of "
          << Between(threads.row_blocks) << " rows; attention "
          << (threads.attention_apart ? "apart, by heads and blocks of queries"
                                      : "as a part of each block's work")
          << "\n";
      break;
    case internal::ThreadPlanKind::kColumns:
      out << "  each step by columns, attention by heads; the first product's columns "
          << (threads.heads_together ? "and attention of a head together"
                                     : "and attention one after the other")
          << "\n";
      break;
  }
}

nlohmann::ordered_json ThreadsJson(const PlannedThreads& threads) {
  nlohmann::ordered_json json = {{"kind", internal::ThreadPlanKindName(threads.kind)},
                                 {"threads", threads.count}};
  switch (threads.kind) {
    case internal::ThreadPlanKind::kSequences:
      for (const PlannedGroup& group : threads.groups) {
        json["groups"].push_back({{"first_sequence", group.first_sequence},
                                  {"sequences", group.sequences},
                                  {"rows", group.rows}});
      }
      break;
    case internal::ThreadPlanKind::kRows:
      json["row_blocks"] = threads.row_blocks;
      json["attention_apart"] = threads.attention_apart;
      break;
    case internal::ThreadPlanKind::kColumns:
      json["heads_together"] = threads.heads_together;
      break;
  }
  return json;
}

}  // namespace

Plan MakePlan(const bench::NamedWorkload& workload, int threads) {
  const GemmKernel& kernel = internal::GetGemmKernelF32();
  const size_t d = workload.model.d_model;
  const size_t d_ff = workload.model.d_ff;
  const PlannedMatrix in_proj = Matrix(kernel, "in_proj", 3 * d, d);
  return {.target = ActiveTarget(),
          .lanes = kernel.lanes,
          .tiles = Tiles(kernel),
          .matrices = {in_proj, Matrix(kernel, "out_proj", d, d),
                       Matrix(kernel, "linear1", d_ff, d), Matrix(kernel, "linear2", d, d_ff)},
          .batch = {.lengths = bench::DescribeLengths(workload.lengths),
                    .tokens = bench::Tokens(workload),
                    .threads = threads},
          .threads = Threads(workload, threads, in_proj.nr)};
}

void PrintPlan(std::ostream& out, const Plan& plan) {
  out << "Microtiles, f32 with " << plan.target << ", " << Counted(plan.lanes, "float")
      << " a vector\n ";
  for (const PlannedTile& tile : plan.tiles)
    out << " up to " << tile.mr << " x " << tile.nr << "  ";
  out << "\nMatrices\n  " << PadRight("", 10);
  for (const char* name : {"N", "K", "tile", "panels", "MC", "KC", "packed KiB"}) {
    out << PadLeft(name, 11);
  }
  out << "\n";
  for (const PlannedMatrix& matrix : plan.matrices) {
    out << "  " << PadRight(matrix.name, 10);
    for (const std::string& cell :
         {Size(matrix.n), Size(matrix.k), Size(matrix.mr) + " x " + Size(matrix.nr),
          Size(matrix.panels), Size(matrix.mc), Size(matrix.kc), Size(matrix.bytes >> 10)}) {
      out << PadLeft(cell, 11);
    }
    out << "\n";
  }
  out << "Batch\n  " << plan.batch.lengths << ", " << Counted(plan.batch.tokens, "token") << ", "
      << Counted(static_cast<size_t>(plan.batch.threads), "thread") << "\n";
  PrintThreads(out, plan.threads);
}

nlohmann::ordered_json PlanJson(const Plan& plan) {
  nlohmann::ordered_json json = {{"target", plan.target}, {"lanes", plan.lanes}};
  for (const PlannedTile& tile : plan.tiles) {
    json["tiles"].push_back({{"vectors", tile.vectors}, {"mr", tile.mr}, {"nr", tile.nr}});
  }
  for (const PlannedMatrix& matrix : plan.matrices) {
    json["matrices"].push_back({{"name", matrix.name},
                                {"n", matrix.n},
                                {"k", matrix.k},
                                {"nr", matrix.nr},
                                {"panels", matrix.panels},
                                {"mr", matrix.mr},
                                {"mc", matrix.mc},
                                {"kc", matrix.kc},
                                {"bytes", matrix.bytes}});
  }
  json["batch"] = {{"lengths", plan.batch.lengths},
                   {"tokens", plan.batch.tokens},
                   {"threads", plan.batch.threads}};
  json["threads"] = ThreadsJson(plan.threads);
  return json;
}

}  // namespace encore::tool
