// SPDX-License-Identifier: Apache-2.0
//
// A report as JSON, member by member as report.schema.json has it. Not here: reading it.

#include "nlohmann/json.hpp"
#include "tools/encore/report_data.h"
#include "tools/encore/text.h"

namespace encore::tool {
namespace {

using Json = nlohmann::ordered_json;

Json MachineJson(const ReportMachine& machine) {
  return {{"cpu", Printable(machine.cpu)},
          {"architecture", Printable(machine.architecture)},
          {"cores", machine.cores},
          {"cores_text", Printable(machine.cores_text)},
          {"l1d_bytes", machine.l1d_bytes},
          {"l2_bytes", machine.l2_bytes},
          {"l3_bytes", machine.l3_bytes},
          {"system", Printable(machine.system)},
          {"compiler", Printable(machine.compiler)},
          {"targets", machine.targets}};
}

Json RoofJson(const ReportRoof& roof) {
  Json json = {{"kind", roof.kind}};
  if (roof.kind == "compute") {
    json.update({{"target", roof.target}, {"precision", roof.precision}});
  } else {
    json.update({{"level", roof.level}, {"bytes", roof.bytes}});
  }
  json["threads"] = roof.threads;
  if (roof.kind == "compute") {
    json["flops_per_s"] = roof.flops_per_s;
  } else {
    json["bytes_per_s"] = roof.bytes_per_s;
  }
  json["samples"] = roof.samples;
  return json;
}

Json RowRoofJson(const std::optional<ReportRowRoof>& roof) {
  if (!roof) return nullptr;
  return {{"kind", roof->kind},
          {"level", roof->level.empty() ? Json(nullptr) : Json(roof->level)},
          {"name", roof->name},
          {"value", roof->value},
          {"share", roof->share}};
}

Json RowJson(const ReportRow& row) {
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
                 {"p99", row.seconds.p99},
                 {"max", row.seconds.max}}}};
  if (!row.quantiles.empty()) json["quantiles"] = row.quantiles;
  json.update({{"slots", row.slots},
               {"gflops", row.gflops},
               {"tokens_per_s", row.tokens_per_s},
               {"useful_tokens_per_s", row.useful_tokens_per_s},
               {"roof", RowRoofJson(row.roof)},
               {"verified", row.verified}});
  return json;
}

}  // namespace

std::string ReportJson(const Report& report) {
  Json json = {{"encore_report", report.version},
               {"encore", report.encore},
               {"created", report.created},
               {"machine", MachineJson(report.machine)},
               {"run",
                {{"threads_from", report.run.threads_from},
                 {"idle_spin_us", report.run.idle_spin_us},
                 {"binding", Printable(report.run.binding)},
                 {"seconds_per_row", report.run.seconds_per_row},
                 {"seconds", report.run.seconds}}},
               {"noise",
                {{"steal_percent", report.noise.steal_percent},
                 {"busy_percent", report.noise.busy_percent},
                 {"peak_drift_percent", report.noise.peak_drift_percent},
                 {"notes", report.noise.notes}}},
               {"roofs", Json::array()},
               {"rows", Json::array()}};
  for (const ReportRoof& roof : report.roofs) json["roofs"].push_back(RoofJson(roof));
  for (const ReportRow& row : report.rows) json["rows"].push_back(RowJson(row));
  return json.dump(1) + "\n";
}

}  // namespace encore::tool
