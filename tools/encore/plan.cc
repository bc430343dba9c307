// SPDX-License-Identifier: Apache-2.0
//
// Asks the engine's pure functions for their choices and writes them down.

#include "tools/encore/plan.h"

#include "engine/base/int_math.h"
#include "engine/kernels/gemm_kernel.h"
#include "engine/ops/gemm_blocking.h"
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

std::string Size(size_t value) { return std::to_string(value); }

}  // namespace

Plan MakePlan(const bench::NamedWorkload& workload, int threads) {
  const GemmKernel& kernel = internal::GetGemmKernelF32();
  const size_t d = workload.model.d_model;
  const size_t d_ff = workload.model.d_ff;
  return {.target = kernel.target,
          .lanes = kernel.lanes,
          .tiles = Tiles(kernel),
          .matrices = {Matrix(kernel, "in_proj", 3 * d, d), Matrix(kernel, "out_proj", d, d),
                       Matrix(kernel, "linear1", d_ff, d), Matrix(kernel, "linear2", d, d_ff)},
          .batch = {.lengths = bench::DescribeLengths(workload.lengths),
                    .tokens = bench::Tokens(workload),
                    .threads = threads}};
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
  return json;
}

}  // namespace encore::tool
