// SPDX-License-Identifier: Apache-2.0
//
// Draws the figures, and writes them as JSON independently of the tool's writer.

#include "tests/cli/synthetic_report.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <random>

#include "nlohmann/json.hpp"

namespace encore {
namespace {

using Json = nlohmann::ordered_json;

struct Load {
  const char* name;
  size_t d_model;
  size_t heads;
  size_t sequences;
  size_t tokens;
};
constexpr Load kLoads[] = {{"minilm_1x16", 384, 12, 1, 16},
                           {"base_1x16", 768, 12, 1, 16},
                           {"base_1x128", 768, 12, 1, 128},
                           {"base_8x128", 768, 12, 8, 128},
                           {"large_1x128", 1024, 16, 1, 128}};

// Of one thread.
constexpr double kMemory = 2.2e10;                                         // bytes a second
const std::map<std::string, double> kTargetPeak = {{"AVX3_ZEN4", 2.5e11},  // FLOP/s in f32
                                                   {"AVX2", 1.27e11},
                                                   {"NEON", 0.6e11}};
const std::map<std::string, double> kPrecisionFactor = {{"f32", 1}, {"bf16", 2}, {"int8", 4}};
const std::map<std::string, double> kWeightBytes = {{"f32", 4}, {"bf16", 2}, {"int8", 1}};

class Drawer {
 public:
  explicit Drawer(const SyntheticRun& run) : run_(run), random_(run.seed) {
    machine_ = Factor(run.run_drift);
  }

  tool::Report Draw() {
    report_.encore = "0.1.0";
    report_.created = "2026-11-23T05:10:52Z";
    report_.machine = {.cpu = "Synthetic 9000",
                       .architecture = "x86_64",
                       .cores = 2,
                       .cores_text = "2: all cores of the system",
                       .l1d_bytes = 49152,
                       .l2_bytes = size_t{1} << 20,
                       .l3_bytes = size_t{32} << 20,
                       .system = "Linux 6.1",
                       .compiler = "g++ 12.2.0",
                       .targets = {"AVX3_ZEN4", "AVX2"}};
    report_.run = {.threads_from = "pool",
                   .idle_spin_us = 0,
                   .binding = "one thread is bound to a core",
                   .seconds_per_row = 0.5,
                   .seconds = 60};
    report_.noise = {.steal_percent = 0, .busy_percent = 1.2, .peak_drift_percent = 0, .notes = {}};
    DrawRoofs();
    for (const Load& load : kLoads) {
      for (const std::string& target : run_.targets) {
        for (const char* precision : {"f32", "bf16", "int8"}) {
          for (const int threads : run_.threads) {
            DrawRow(load, target, precision, threads, "warm");
            if (target == run_.targets[0]) DrawRow(load, target, precision, threads, "cold");
          }
        }
      }
    }
    std::sort(peaks_.begin(), peaks_.end());
    const size_t last = peaks_.size() - 1;
    report_.noise.peak_drift_percent =
        100 * (peaks_[last * 9 / 10] - peaks_[last / 10]) / peaks_[last / 2];
    return report_;
  }

 private:
  double Factor(double deviation) { return std::exp(deviation * normal_(random_)); }

  static double Speedup(int threads) { return std::pow(threads, 0.93); }

  void DrawRoofs() {
    for (const int threads : run_.threads) {
      for (const std::string& target : run_.targets) {
        for (const auto& [precision, factor] : kPrecisionFactor) {
          tool::ReportRoof roof{.kind = "compute",
                                .target = target,
                                .precision = precision,
                                .level = {},
                                .threads = threads,
                                .samples = {}};
          roof.flops_per_s =
              kTargetPeak.at(target) * factor * threads * machine_ * Factor(run_.row_drift / 4);
          roof.samples = {roof.flops_per_s};
          report_.roofs.push_back(roof);
        }
      }
      for (const auto& [level, bytes, speed] : {std::tuple("L1", size_t{24576}, 18.0),
                                                {"L2", size_t{524288}, 6.0},
                                                {"L3", size_t{8388608}, 3.0},
                                                {"memory", size_t{134217728}, 1.0}}) {
        tool::ReportRoof roof{.kind = "read",
                              .target = {},
                              .precision = {},
                              .level = level,
                              .bytes = bytes,
                              .threads = threads,
                              .samples = {}};
        roof.bytes_per_s = kMemory * speed * Speedup(threads) * machine_;
        roof.samples = {roof.bytes_per_s};
        report_.roofs.push_back(roof);
      }
    }
  }

  void DrawRow(const Load& load, const std::string& target, const std::string& precision,
               int threads, const char* weights) {
    const size_t d = load.d_model;
    const auto tokens = static_cast<double>(load.sequences * load.tokens);
    const bool cold = std::string(weights) == "cold";
    tool::ReportRow row{.engine_version = "0.1.0",
                        .workload = load.name,
                        .d_model = d,
                        .heads = load.heads,
                        .d_ff = 4 * d,
                        .activation = "gelu",
                        .layers = cold ? size_t{12} : size_t{1},
                        .sequences = load.sequences,
                        .tokens = load.sequences * load.tokens,
                        .useful_tokens = load.sequences * load.tokens,
                        .precision = precision,
                        .target = target,
                        .threads = threads,
                        .weights = weights,
                        .calls = 60,
                        .seconds = {},
                        .quantiles = {},
                        .slots = {},
                        .roof = {}};
    const auto layers = static_cast<double>(row.layers);
    const double matrices = 12.0 * static_cast<double>(d * d);
    row.flops = layers * tokens * (2 * matrices + 4 * static_cast<double>(d * load.tokens));
    row.weight_bytes = layers * matrices * kWeightBytes.at(precision);
    const double peak = kTargetPeak.at(target) * kPrecisionFactor.at(precision);
    const double computing = row.flops / (0.9 * peak * Speedup(threads));
    const double reading = row.weight_bytes / (kMemory * Speedup(threads));
    const double now = machine_ * Factor(run_.row_drift);
    peaks_.push_back(now);
    const double time = (cold ? std::max(computing, reading) + 0.2 * computing : computing) /
                        (run_.speed * now) * Factor(run_.row_noise);
    for (size_t i = 0; i < run_.slots; ++i) row.slots.push_back(time * Factor(run_.slot_noise));
    DrawSeconds(row, time);
    row.gflops = row.flops / row.seconds.p50 * 1e-9;
    row.tokens_per_s = tokens * layers / row.seconds.p50;
    row.useful_tokens_per_s = row.tokens_per_s;
    const bool reads = cold && reading > computing;
    row.roof = tool::ReportRowRoof{.kind = reads ? "read" : "compute",
                                   .level = reads ? "memory" : "",
                                   .name = reads ? "memory bandwidth" : precision + " peak",
                                   .value = (reads ? kMemory : peak) * threads * machine_,
                                   .share = 0.8};
    row.verified = true;
    report_.rows.push_back(row);
  }

  void DrawSeconds(tool::ReportRow& row, double time) {
    for (int i = 0; i < 101; ++i) {
      const double share = i / 100.0;
      row.quantiles.push_back(time * (0.97 + 0.06 * share + 0.25 * std::pow(share, 40)));
    }
    row.seconds = {row.quantiles[0], row.quantiles[50], row.quantiles[90], row.quantiles[99],
                   1.5 * row.quantiles[100]};
    row.quantiles.back() = row.seconds.max;
  }

  const SyntheticRun& run_;
  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
  double machine_ = 1;
  std::vector<double> peaks_;
  tool::Report report_;
};

Json RoofJson(const tool::ReportRoof& roof) {
  if (roof.kind == "compute") {
    return {
        {"kind", roof.kind},       {"target", roof.target},           {"precision", roof.precision},
        {"threads", roof.threads}, {"flops_per_s", roof.flops_per_s}, {"samples", roof.samples}};
  }
  return {{"kind", roof.kind},
          {"level", roof.level},
          {"bytes", roof.bytes},
          {"threads", roof.threads},
          {"bytes_per_s", roof.bytes_per_s},
          {"samples", roof.samples}};
}

Json RowJson(const tool::ReportRow& row) {
  Json json = {{"engine", row.engine},
               {"engine_version", row.engine_version},
               {"workload", row.workload},
               {"d_model", row.d_model},
               {"heads", row.heads},
               {"d_ff", row.d_ff},
               {"activation", row.activation},
               {"layers", row.layers},
               {"sequences", row.sequences},
               {"tokens", row.tokens},
               {"useful_tokens", row.useful_tokens},
               {"precision", row.precision},
               {"amx_bf16", row.amx_bf16},
               {"target", row.target},
               {"threads", row.threads},
               {"weights", row.weights},
               {"calls", row.calls},
               {"flops", row.flops},
               {"weight_bytes", row.weight_bytes},
               {"seconds",
                {{"min", row.seconds.min},
                 {"p50", row.seconds.p50},
                 {"p90", row.seconds.p90},
                 {"p99", row.seconds.p99 ? nlohmann::json(*row.seconds.p99) : nullptr},
                 {"max", row.seconds.max}}},
               {"slots", row.slots},
               {"gflops", row.gflops},
               {"tokens_per_s", row.tokens_per_s},
               {"useful_tokens_per_s", row.useful_tokens_per_s},
               {"roof", nullptr},
               {"verified", row.verified}};
  if (!row.quantiles.empty()) json["quantiles"] = row.quantiles;
  if (row.roof) {
    json["roof"] = {{"kind", row.roof->kind},
                    {"level", nullptr},
                    {"name", row.roof->name},
                    {"value", row.roof->value},
                    {"share", row.roof->share}};
    if (!row.roof->level.empty()) json["roof"]["level"] = row.roof->level;
  }
  return json;
}

}  // namespace

tool::Report SyntheticReport(const SyntheticRun& run) { return Drawer(run).Draw(); }

std::string SyntheticJson(const tool::Report& report) {
  const tool::ReportMachine& machine = report.machine;
  Json json = {{"encore_report", report.version},
               {"encore", report.encore},
               {"created", report.created},
               {"machine",
                {{"cpu", machine.cpu},
                 {"architecture", machine.architecture},
                 {"cores", machine.cores},
                 {"cores_text", machine.cores_text},
                 {"l1d_bytes", machine.l1d_bytes},
                 {"l2_bytes", machine.l2_bytes},
                 {"l3_bytes", machine.l3_bytes},
                 {"system", machine.system},
                 {"compiler", machine.compiler},
                 {"targets", machine.targets}}},
               {"run",
                {{"threads_from", report.run.threads_from},
                 {"idle_spin_us", report.run.idle_spin_us},
                 {"binding", report.run.binding},
                 {"seconds_per_row", report.run.seconds_per_row},
                 {"seconds", report.run.seconds}}},
               {"noise",
                {{"steal_percent", report.noise.steal_percent},
                 {"busy_percent", report.noise.busy_percent},
                 {"peak_drift_percent", report.noise.peak_drift_percent},
                 {"notes", report.noise.notes}}},
               {"roofs", Json::array()},
               {"rows", Json::array()}};
  for (const tool::ReportRoof& roof : report.roofs) json["roofs"].push_back(RoofJson(roof));
  for (const tool::ReportRow& row : report.rows) json["rows"].push_back(RowJson(row));
  return json.dump(1) + "\n";
}

}  // namespace encore
