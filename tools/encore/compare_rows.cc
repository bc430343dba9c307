// SPDX-License-Identifier: Apache-2.0
//
// Pairs of rows, by a key without the target and then by targets; and noise between runs, from what
// the reports tell of their roofs and of other work.

#include "tools/encore/compare_rows.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "tools/encore/compare_statistics.h"
#include "tools/encore/text.h"

namespace encore::tool {
namespace {

// Engine (or nothing, across engines) and workload; d_model, heads and d_ff; activation; layers,
// sequences, tokens and operations, in which lengths differ that have one sum; precision, amx_bf16,
// threads, weights.
using Key = std::tuple<std::string, std::string, size_t, size_t, size_t, std::string, size_t,
                       size_t, size_t, double, std::string, bool, int, std::string>;
using Rows = std::vector<const ReportRow*>;

// A precision, and whether it is bf16 on AMX.
using Products = std::pair<std::string, bool>;

Products ProductsOf(const ReportRow& row) { return {row.precision, row.amx_bf16}; }

// Of this row, or of one like it in those products.
Key KeyOf(const ReportRow& row, bool across_engines, const Products& products) {
  return {across_engines ? "" : row.engine,
          row.workload,
          row.d_model,
          row.heads,
          row.d_ff,
          row.activation,
          row.layers,
          row.sequences,
          row.tokens,
          row.flops,
          products.first,
          products.second,
          row.threads,
          row.weights};
}

std::map<Key, Rows> RowsByKey(const Report& report, bool across_engines) {
  std::map<Key, Rows> rows;
  for (const ReportRow& row : report.rows) {
    rows[KeyOf(row, across_engines, ProductsOf(row))].push_back(&row);
  }
  return rows;
}

template <typename What>
auto AllOf(const Report& report, const What& what) {
  std::set<std::decay_t<decltype(what(ReportRow()))>> all;
  for (const ReportRow& row : report.rows) all.insert(what(row));
  return all;
}

// Whether a row of each is alike in it.
template <typename What>
bool Share(const Report& base, const Report& other, const What& what) {
  const auto ours = AllOf(base, what);
  return std::any_of(other.rows.begin(), other.rows.end(),
                     [&](const ReportRow& row) { return ours.contains(what(row)); });
}

// The row of the target that the report's machine names first.
const ReportRow* Best(const Rows& rows, const std::vector<std::string>& targets) {
  const auto rank = [&](const ReportRow* row) {
    return std::find(targets.begin(), targets.end(), row->target) - targets.begin();
  };
  return *std::min_element(rows.begin(), rows.end(), [&](const ReportRow* a, const ReportRow* b) {
    return rank(a) < rank(b);
  });
}

const ReportRow* OfTarget(const Rows& rows, const std::string& target) {
  const auto found = std::find_if(rows.begin(), rows.end(),
                                  [&](const ReportRow* row) { return row->target == target; });
  return found == rows.end() ? nullptr : *found;
}

// From here on a run counts as disturbed, in percent.
constexpr double kMuchBusy = 5;
constexpr double kMuchSteal = 1;
constexpr double kMuchDrift = 10;

// Two in a quarter.
constexpr size_t kLeastSlotsThatMove = 8;

double TakenShare(const ReportNoise& noise) {
  return (std::max(noise.steal_percent, 0.0) + std::max(noise.busy_percent, 0.0)) / 100;
}

// The report's roof that is of one kind with this one; nullptr if there is none.
const ReportRoof* SameRoof(const Report& report, const ReportRoof& roof) {
  const auto found =
      std::find_if(report.roofs.begin(), report.roofs.end(), [&](const ReportRoof& other) {
        return other.kind == roof.kind && other.target == roof.target &&
               other.precision == roof.precision && other.level == roof.level &&
               other.threads == roof.threads;
      });
  return found == report.roofs.end() ? nullptr : &*found;
}

// By how much a row moved while it was measured, beyond what its slots differ by one after the
// other: the medians of its quarters, the highest by the lowest. Unlike those differences, which
// even out, what lasts for a part of one row (a neighbour on a core's other thread, say) may last
// for all of another, and shows in no roof and no system's counters.
double MovedShare(const std::vector<double>& slots) {
  if (slots.size() < kLeastSlotsThatMove) return 0;
  std::vector<double> steps;
  for (size_t i = 1; i < slots.size(); ++i) steps.push_back(std::fabs(slots[i] - slots[i - 1]));
  std::vector<double> quarters;
  for (size_t begin = 0, quarter = 1; quarter <= 4; ++quarter) {
    const size_t end = slots.size() * quarter / 4;
    quarters.push_back(Median({slots.begin() + static_cast<std::ptrdiff_t>(begin),
                               slots.begin() + static_cast<std::ptrdiff_t>(end)}));
    begin = end;
  }
  const auto [low, high] = std::minmax_element(quarters.begin(), quarters.end());
  // Of normal noise, the median step is 0.95 standard deviations of a slot, and a median of n slots
  // has 1.25 / sqrt(n) of one. The highest and the lowest of four lie two of these apart, or more.
  const double error =
      1.25 * Median(steps) / 0.95 / std::sqrt(static_cast<double>(slots.size()) / 4);
  return std::max(0.0, (*high - *low - 3 * error) / *low);
}

// The most of any row of that engine on as many threads.
double MovedShare(const Report& report, const ReportRow& like) {
  double most = 0;
  for (const ReportRow& row : report.rows) {
    if (row.threads == like.threads && row.engine == like.engine) {
      most = std::max(most, MovedShare(row.slots));
    }
  }
  return most;
}

// Whether other work shared cores with so many threads for some part of the run: one of these ran
// at half its speed then, and calls whose work is in even parts took twice as long.
bool IsCrowded(const Report& report, int threads) {
  const double taken = TakenShare(report.noise);
  return 100 * taken > kMuchBusy && threads > (1 - taken) * report.machine.cores;
}

// Bandwidth of memory, with so many threads in both.
std::optional<double> MemoryRatio(const Report& base, const Report& other, int threads) {
  const ReportRoof memory = {.kind = "read", .level = "memory", .threads = threads};
  const ReportRoof* ours = SameRoof(base, memory);
  const ReportRoof* theirs = SameRoof(other, memory);
  if (ours == nullptr || theirs == nullptr) return {};
  return theirs->bytes_per_s / ours->bytes_per_s;
}

bool ReadsMemory(const ReportRow& row) {
  return row.weights == "cold" || (row.roof.has_value() && row.roof->kind == "read");
}

// Of the roofs that stand in the rows themselves.
std::optional<double> RowRoofRatio(const RowPair& rows) {
  if (!rows.base->roof || !rows.other->roof || rows.base->target != rows.other->target) return {};
  if (rows.base->roof->name != rows.other->roof->name) return {};
  return rows.other->roof->value / rows.base->roof->value;
}

}  // namespace

RowPairs PairRows(const Report& base, const Report& other) {
  RowPairs result;
  result.across_engines = !Share(base, other, [](const ReportRow& row) { return row.engine; });
  result.across_precisions = !Share(base, other, ProductsOf);
  const std::set<Products> their_products = AllOf(other, ProductsOf);
  const std::map<Key, Rows> base_rows = RowsByKey(base, result.across_engines);
  const std::map<Key, Rows> other_rows = RowsByKey(other, result.across_engines);
  std::set<const ReportRow*> paired;
  const auto pair_with = [&](const ReportRow& row, const Products& products) {
    const auto theirs = other_rows.find(KeyOf(row, result.across_engines, products));
    if (theirs == other_rows.end()) return;
    const Rows& ours = base_rows.at(KeyOf(row, result.across_engines, ProductsOf(row)));
    const auto pair = [&](const ReportRow* with) {
      result.pairs.push_back({&row, with});
      paired.insert({&row, with});
    };
    const ReportRow* same = OfTarget(theirs->second, row.target);
    if (same != nullptr && OfTarget(ours, row.target) == &row) pair(same);
    const ReportRow* best = Best(theirs->second, other.machine.targets);
    if (Best(ours, base.machine.targets) == &row && best->target != row.target) pair(best);
  };
  for (const ReportRow& row : base.rows) {
    if (!result.across_precisions) {
      pair_with(row, ProductsOf(row));
      continue;
    }
    for (const Products& products : their_products) pair_with(row, products);
  }
  const auto alone = [&](const Report& report) {
    return static_cast<size_t>(
        std::count_if(report.rows.begin(), report.rows.end(),
                      [&](const ReportRow& row) { return !paired.contains(&row); }));
  };
  result.base_alone = alone(base);
  result.other_alone = alone(other);
  return result;
}

bool SameMachine(const Report& base, const Report& other) {
  const ReportMachine& a = base.machine;
  const ReportMachine& b = other.machine;
  return a.cpu == b.cpu && a.architecture == b.architecture && a.cores == b.cores &&
         a.l1d_bytes == b.l1d_bytes && a.l2_bytes == b.l2_bytes && a.l3_bytes == b.l3_bytes;
}

double NoiseShare(const Report& base, const Report& other) {
  const double drift = (base.noise.peak_drift_percent + other.noise.peak_drift_percent) / 2 / 100;
  return std::max({kLeastNoise, drift, TakenShare(base.noise), TakenShare(other.noise)});
}

std::optional<double> PeakRatio(const Report& base, const Report& other, const RowPair& rows) {
  std::optional<double> ratio;
  int best = -1;
  for (const ReportRoof& ours : base.roofs) {
    if (ours.kind != "compute") continue;
    const int fit = (ours.threads == rows.base->threads ? 4 : 0) +
                    (ours.precision == rows.base->precision ? 2 : 0) +
                    (ours.target == rows.base->target ? 1 : 0);
    if (fit <= best) continue;
    const ReportRoof* theirs = SameRoof(other, ours);
    if (theirs == nullptr) continue;
    best = fit;
    ratio = theirs->flops_per_s / ours.flops_per_s;
  }
  return ratio;
}

std::optional<double> F32PeakRatio(const Report& base, const Report& other) {
  std::optional<double> ratio;
  for (const ReportRoof& ours : base.roofs) {
    if (ours.kind != "compute" || ours.precision != "f32" || ours.threads != 1) continue;
    const bool best = !base.machine.targets.empty() && ours.target == base.machine.targets[0];
    const ReportRoof* theirs = best || !ratio ? SameRoof(other, ours) : nullptr;
    if (theirs != nullptr) ratio = theirs->flops_per_s / ours.flops_per_s;
  }
  return ratio;
}

NoiseBand BandOf(const Report& base, const Report& other, const RowPair& rows) {
  NoiseBand band{
      .moved = std::max(MovedShare(base, *rows.base), MovedShare(other, *rows.other)),
      .crowded = IsCrowded(base, rows.base->threads) || IsCrowded(other, rows.other->threads),
      .disturbed = 100 * std::max(TakenShare(base.noise), TakenShare(other.noise)) > kMuchBusy};
  double share = std::max({NoiseShare(base, other), band.moved, band.crowded ? 1.0 : 0.0});
  const auto reach = [&](std::optional<double> ratio) {
    band.low = std::min(band.low, ratio.value_or(1));
    band.high = std::max(band.high, ratio.value_or(1));
  };
  if (SameMachine(base, other)) {
    const std::optional<double> peak = PeakRatio(base, other, rows);
    if (!peak) share = std::max(share, kUnknownNoise);
    reach(peak);
    reach(RowRoofRatio(rows));
    if (ReadsMemory(*rows.base) || ReadsMemory(*rows.other)) {
      reach(MemoryRatio(base, other, rows.base->threads));
    }
  }
  band.low /= 1 + share;
  band.high *= 1 + share;
  return band;
}

std::vector<std::string> NoiseSentences(const ReportNoise& noise) {
  std::vector<std::string> sentences = noise.notes;
  if (noise.busy_percent > kMuchBusy) {
    sentences.push_back("Other processes took " + Number(noise.busy_percent, 0) +
                        " % of all cores' time: speeds are lower than on a quiet machine.");
  }
  if (noise.steal_percent > kMuchSteal) {
    sentences.push_back("Other virtual machines took " + Number(noise.steal_percent, 1) +
                        " % of all cores' time: speeds are lower than on a quiet host.");
  }
  if (noise.peak_drift_percent > kMuchDrift) {
    sentences.push_back("The peak of one core moved by " + Number(noise.peak_drift_percent, 0) +
                        " % in the course of the run: clocks changed, or the core was shared.");
  }
  return sentences;
}

}  // namespace encore::tool
