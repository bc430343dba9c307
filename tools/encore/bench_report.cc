// SPDX-License-Identifier: Apache-2.0
//
// Tables of `encore bench`.

#include "tools/encore/bench_report.h"

#include <algorithm>
#include <map>

#include "bench/measure/models.h"
#include "encore/encoder.h"
#include "tools/encore/bench_roofs.h"
#include "tools/encore/text.h"

namespace encore::tool {
namespace {

constexpr size_t kNameWidth = 27;  // "modernbert_22_layers_1x512"
constexpr size_t kNumberWidth = 11;

void PrintCells(std::ostream& out, const std::string& workload, const std::string& threads,
                const std::string& weights, const std::vector<std::string>& numbers) {
  out << PadRight(workload, kNameWidth) << PadLeft(threads, 7) << "  " << PadRight(weights, 7);
  for (const std::string& number : numbers) out << PadLeft(number, kNumberWidth);
}

std::string Microseconds(double seconds) {
  return seconds < 0.1 ? Number(1e6 * seconds, 1) : Grouped(1e6 * seconds);
}

}  // namespace

void PrintBenchHead(std::ostream& out,
                    const std::vector<std::pair<std::string, std::string>>& context) {
  out << "encore bench\n";
  for (const auto& [name, value] : context) out << "  " << PadRight(name, 13) << value << "\n";
}

void PrintRoofs(std::ostream& out, const std::vector<ReportRoof>& roofs) {
  out << "\nRoofs of all threads together: multiply-adds in GFLOP/s, reading in GB/s\n"
      << PadLeft("threads", kNumberWidth);
  std::map<int, std::map<std::string, double>> lines;
  for (const ReportRoof& roof : roofs) {
    const bool compute = roof.kind == "compute";
    lines[roof.threads][compute ? roof.precision : roof.level] =
        1e-9 * (compute ? roof.flops_per_s : roof.bytes_per_s);
  }
  // A level may be there for some numbers of threads alone, as L3 is.
  std::vector<std::string> names;
  for (const char* name : {"f32", "bf16", "int8", "L1", "L2", "L3", "memory"}) {
    const bool known = std::any_of(lines.begin(), lines.end(),
                                   [&](const auto& line) { return line.second.contains(name); });
    if (known) names.emplace_back(name);
  }
  for (const std::string& name : names) out << PadLeft(name, kNumberWidth);
  out << "\n";
  for (const auto& [threads, values] : lines) {
    out << PadLeft(std::to_string(threads), kNumberWidth);
    for (const std::string& name : names) {
      const auto value = values.find(name);
      out << PadLeft(value == values.end() ? "" : Number(value->second, 1), kNumberWidth);
    }
    out << "\n";
  }
}

void PrintBenchColumns(std::ostream& out) {
  out << "\nWarm: the same layers again and again. Cold: the layers of models that together are "
         "larger than the caches.\nShare: of the roof that applies, as measured between the calls. "
         "Tokens that "
         "only pad count as none.\n\n";
  PrintCells(out, "workload", "threads", "weights",
             {"p50 us", "p99 us", "tokens/s", "GFLOP/s", "share"});
  out << "  of\n";
}

void PrintBenchRow(std::ostream& out, const ReportRow& row, double shared_peak) {
  PrintCells(out, row.workload, std::to_string(row.threads), row.weights,
             {Microseconds(row.seconds.p50), Microseconds(row.seconds.p99),
              Grouped(row.useful_tokens_per_s), Number(row.gflops, 1),
              row.roof ? Number(100 * row.roof->share, 1) + " %" : ""});
  if (row.roof) out << "  " << row.roof->name;
  if (!row.verified) out << "; not checked, too large for the reference";
  if (shared_peak < kLeastOfPeaks) {
    out << "; " << row.threads << " threads had the peak of "
        << Number(shared_peak * row.threads, 1);
  }
  out << "\n";
  out.flush();  // rows take their time
}

void PrintNoise(std::ostream& out, const ReportNoise& noise) {
  const auto percent = [](double value) {
    return value < 0 ? std::string("an unknown part") : Number(value, 1) + " %";
  };
  out << "\nNoise: other processes took " << percent(noise.busy_percent)
      << " of all cores' time, the hypervisor " << percent(noise.steal_percent)
      << "; one thread's peak varied by " << percent(noise.peak_drift_percent) << ".\n";
  for (const std::string& note : noise.notes) out << note << ".\n";
}

void PrintWorkloads(std::ostream& out) {
  out << PadRight("workload", kNameWidth) << PadRight("d_model, heads, d_ff", 24)
      << PadRight("sequences x tokens", 20) << PadLeft("GFLOP", 9) << "\n";
  for (const bench::NamedWorkload& load : bench::NamedWorkloads()) {
    const bench::Model& model = load.model;
    out << PadRight(load.name, kNameWidth)
        << PadRight(std::to_string(model.d_model) + ", " + std::to_string(model.heads) + ", " +
                        std::to_string(model.d_ff) + ", " +
                        std::string(ActivationName(model.activation)),
                    24)
        << PadRight(bench::DescribeLengths(load.lengths), 20)
        << PadLeft(Number(bench::StackFlops(model, load.lengths, load.layers) * 1e-9, 3), 9)
        << (load.warm_by_default ? "" : "  by name only") << "\n";
  }
  out << PadRight("custom", kNameWidth)
      << "sizes from --d-model, --heads, --d-ff, --batch and --seq or "
         "--lengths\n";
}

}  // namespace encore::tool
