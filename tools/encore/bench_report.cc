// SPDX-License-Identifier: Apache-2.0
//
// Tables and JSON of `encore bench`.

#include "tools/encore/bench_report.h"

#include "bench/measure/models.h"
#include "encore/encoder.h"
#include "nlohmann/json.hpp"
#include "tools/encore/text.h"

namespace encore::tool {
namespace {

constexpr size_t kNameWidth = 18;  // "ragged_64_uniform"
constexpr size_t kNumberWidth = 11;

void PrintCells(std::ostream& out, const std::string& workload, const std::string& threads,
                const std::string& weights, const std::vector<std::string>& numbers) {
  out << PadRight(workload, kNameWidth) << PadLeft(threads, 7) << "  " << PadRight(weights, 7);
  for (const std::string& number : numbers) out << PadLeft(number, kNumberWidth);
  out << "\n";
}

}  // namespace

void PrintBenchHead(std::ostream& out, const BenchContext& context) {
  out << "encore bench, f32; one call is one layer\n";
  for (const auto& [name, value] : context) out << "  " << PadRight(name, 13) << value << "\n";
  out << "Warm: the same layer again and again. Cold: the layers of a model larger than the "
         "caches.\n"
      << "GFLOP/s: from the median; peak: multiply-adds on as many threads, measured between the "
         "calls.\nShare: of the peak next to each call, the median. GB/s: of weights.\n\n";
  PrintCells(out, "workload", "threads", "weights",
             {"us min", "us median", "us p99", "GFLOP/s", "peak", "share", "GB/s"});
}

void PrintBenchRow(std::ostream& out, const BenchRow& row) {
  PrintCells(out, row.workload->name, std::to_string(row.threads), row.cold ? "cold" : "warm",
             {Number(row.us_min, 1), Number(row.us_median, 1), Number(row.us_p99, 1),
              Number(row.gflops, 1), Number(row.peak_gflops, 1), Number(100 * row.share, 1) + " %",
              Number(row.gbytes_per_s, 1)});
  out.flush();  // rows take their time
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
        << PadLeft(Number(bench::LayerFlops(model, load.lengths) * 1e-9, 3), 9)
        << (load.is_default ? "" : "  by name only") << "\n";
  }
  out << "custom            sizes from --d-model, --heads, --d-ff, --batch and --seq or "
         "--lengths\n";
}

std::string BenchJson(const BenchContext& context, const std::vector<BenchRow>& rows) {
  nlohmann::ordered_json json = {{"context", nlohmann::ordered_json::object()},
                                 {"rows", nlohmann::ordered_json::array()}};
  for (const auto& [name, value] : context) json["context"][name] = Printable(value);
  for (const BenchRow& row : rows) {
    const bench::NamedWorkload& load = *row.workload;
    json["rows"].push_back({{"workload", load.name},
                            {"precision", std::string(PrecisionName(row.precision))},
                            {"threads", row.threads},
                            {"cold", row.cold},
                            {"us_min", row.us_min},
                            {"us_median", row.us_median},
                            {"us_p99", row.us_p99},
                            {"gflops", row.gflops},
                            {"peak_gflops", row.peak_gflops},
                            {"share", row.share},
                            {"gbytes_per_s", row.gbytes_per_s},
                            {"target", row.target},
                            {"tokens_per_s", row.tokens_per_s},
                            {"calls", row.calls},
                            {"d_model", load.model.d_model},
                            {"heads", load.model.heads},
                            {"d_ff", load.model.d_ff},
                            {"activation", ActivationName(load.model.activation)},
                            {"lengths", bench::DescribeLengths(load.lengths)},
                            {"tokens", bench::Tokens(load)}});
  }
  return json.dump(1) + "\n";
}

}  // namespace encore::tool
