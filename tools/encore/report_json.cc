// SPDX-License-Identifier: Apache-2.0
//
// A report as JSON, member by member as python/pyencore/lab/report.schema.json has it.

#include <string>

#include "nlohmann/json.hpp"
#include "tools/encore/report_data.h"
#include "tools/encore/text.h"

namespace encore::tool {
namespace {

using Json = nlohmann::ordered_json;

template <typename T>
Json OrNull(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

Json FactJson(const bench::Fact& fact) {
  if (const auto* number = std::get_if<int64_t>(&fact)) return *number;
  if (const auto* text = std::get_if<std::string>(&fact)) return Printable(*text);
  if (std::holds_alternative<std::monostate>(fact)) return {};
  Json list = Json::array();
  for (const std::string& text : std::get<std::vector<std::string>>(fact)) {
    list.push_back(Printable(text));
  }
  return list;
}

Json MachineJson(const ReportMachine& machine) {
  Json json = {{"cpu", Printable(machine.cpu)},
               {"architecture", Printable(machine.architecture)},
               {"cores", machine.cores},
               {"cores_text", Printable(machine.cores_text)},
               {"l1d_bytes", machine.l1d_bytes},
               {"l2_bytes", machine.l2_bytes},
               {"l3_bytes", machine.l3_bytes},
               {"system", Printable(machine.system)},
               {"compiler", Printable(machine.compiler)}};
  if (!machine.commit.empty()) json["commit"] = Printable(machine.commit);
  if (!machine.flags.empty()) json["flags"] = Printable(machine.flags);
  json["targets"] = machine.targets;
  for (const auto& [name, fact] : machine.hardware) json["hardware"][name] = FactJson(fact);
  return json;
}

Json RoofJson(const ReportRoof& roof) {
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

Json RowRoofJson(const ReportRowRoof& roof) {
  return {{"kind", roof.kind},
          {"level", roof.level.empty() ? Json() : Json(roof.level)},
          {"name", roof.name},
          {"value", roof.value},
          {"share", roof.share}};
}

Json SecondsJson(const ReportSeconds& seconds) {
  return {{"min", seconds.min},
          {"p50", seconds.p50},
          {"p90", seconds.p90},
          {"p99", OrNull(seconds.p99)},
          {"max", seconds.max}};
}

Json LoopJson(const ReportLoop& loop) {
  return {{"hz", loop.hz},
          {"p99_9", OrNull(loop.p99_9)},
          {"late", loop.late},
          {"minor_faults", loop.minor_faults},
          {"major_faults", loop.major_faults},
          {"allocations", OrNull(loop.allocations)},
          {"voluntary_switches", loop.voluntary_switches},
          {"involuntary_switches", loop.involuntary_switches},
          {"control", SecondsJson(loop.control)}};
}

Json RowJson(const ReportRow& row) {
  Json json = {{"engine", row.engine},
               {"engine_version", row.engine_version},
               {"workload", Printable(row.workload)},
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
               {"weight_bytes", row.weight_bytes}};
  json["seconds"] = SecondsJson(row.seconds);
  if (!row.quantiles.empty()) json["quantiles"] = row.quantiles;
  json["slots"] = row.slots;
  json["gflops"] = row.gflops;
  json["tokens_per_s"] = row.tokens_per_s;
  json["useful_tokens_per_s"] = row.useful_tokens_per_s;
  if (row.model) {
    json["model"] = {{"name", Printable(row.model->name)},
                     {"bytes", row.model->bytes},
                     {"values", row.model->values}};
    json["texts_per_s"] = row.texts_per_s;
  }
  if (const auto& opening = row.opening) {
    json["opening"] = {{"seconds", opening->seconds},
                       {"cached", opening->cached ? Json(*opening->cached) : Json()},
                       {"first_call", opening->first_call},
                       {"packed_bytes", opening->packed_bytes},
                       {"resident_bytes", opening->resident_bytes}};
  }
  if (row.loop) json["loop"] = LoopJson(*row.loop);
  if (const auto& server = row.server) {
    json["server"] = {{"calls_per_s", server->calls_per_s},
                      {"load_percent", server->load_percent ? Json(*server->load_percent) : Json()},
                      {"p99_9", server->p99_9 ? Json(*server->p99_9) : Json()}};
  }
  if (row.budget) {
    json["budget"] = {{"seconds", row.budget->seconds}, {"fits", row.budget->fits}};
    if (!row.server) json["budget"]["max_length"] = row.budget->max_length;
  }
  const auto joules_of = [&](size_t count) {
    return row.joules ? Json(*row.joules / static_cast<double>(count)) : Json();
  };
  const double tokens = static_cast<double>(row.useful_tokens);
  json["sensors"] = {{"clock_mhz", OrNull(row.sensors.clock_mhz)},
                     {"temperature_c", OrNull(row.sensors.temperature_c)},
                     {"throttled", OrNull(row.sensors.throttled)},
                     {"watts", OrNull(row.sensors.watts)},
                     {"joules_per_text", joules_of(row.sequences)},
                     {"joules_per_token", joules_of(row.useful_tokens)},
                     {"tokens_per_joule", row.joules ? Json(tokens / *row.joules) : Json()}};
  json["roof"] = row.roof ? RowRoofJson(*row.roof) : Json();
  json["verified"] = row.verified;
  return json;
}

}  // namespace

std::string ReportJson(const Report& report) {
  Json json = {{"encore_report", report.version},
               {"encore", report.encore},
               {"created", report.created},
               {"machine", MachineJson(report.machine)}};
  json["run"] = {
      {"threads_from", report.run.threads_from},
      {"idle_spin_us", report.run.idle_spin_us},
      {"binding", report.run.binding},
      {"seconds_per_row", report.run.seconds_per_row},
      {"seconds", report.run.seconds},
      {"energy_source",
       report.run.energy_source.empty() ? Json() : Json(Printable(report.run.energy_source))},
      {"idle_watts", OrNull(report.run.idle_watts)}};
  json["noise"] = {{"steal_percent", report.noise.steal_percent},
                   {"busy_percent", report.noise.busy_percent},
                   {"peak_drift_percent", report.noise.peak_drift_percent},
                   {"memory_drift_percent", report.noise.memory_drift_percent},
                   {"notes", report.noise.notes}};
  Json& roofs = json["roofs"] = Json::array();
  for (const ReportRoof& roof : report.roofs) roofs.push_back(RoofJson(roof));
  Json& rows = json["rows"] = Json::array();
  for (const ReportRow& row : report.rows) rows.push_back(RowJson(row));
  return json.dump(1) + "\n";
}

}  // namespace encore::tool
