// SPDX-License-Identifier: Apache-2.0
//
// A report's members, one function for each object of the file. Numbers must be finite and in their
// range, for pages divide by them and take logarithms.

#include "tools/encore/report_read.h"

#include <cmath>
#include <initializer_list>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "encore/version.h"
#include "engine/io/json_members.h"
#include "engine/io/json_value.h"
#include "engine/platform/mapped_file.h"
#include "tools/encore/failure.h"

namespace encore::tool {
namespace {

using internal::JsonMembers;
using internal::JsonValue;

// A report of 1,000 rows takes 2 MB.
constexpr size_t kMaxBytes = size_t{64} << 20;
// Far more than `encore report` writes, and few enough to compare: a row's roof is looked for among
// all of them, and 2,000 times a median of its slots is drawn.
constexpr size_t kMaxRows = 2000;
constexpr size_t kMaxRoofs = 500;
constexpr size_t kMaxSlots = 1000;
constexpr size_t kMaxSamples = 100000;  // of a roof
constexpr size_t kQuantiles = 101;
// Beyond these a quotient of two numbers may overflow.
constexpr double kSmallest = 1e-30;
constexpr double kLargest = 1e30;

constexpr const char* kPositive = "a number above 0";

bool IsPositive(double value) { return kSmallest <= value && value <= kLargest; }

double Positive(JsonMembers& members, std::string_view key) {
  const double value = members.OptionalNumber(key).value_or(0);
  if (!IsPositive(value)) members.Refuse(key, kPositive);
  return value;
}

double NotNegative(JsonMembers& members, std::string_view key) {
  const double value = members.OptionalNumber(key).value_or(-1);
  if (!(0 <= value && value <= kLargest)) members.Refuse(key, "a number of at least 0");
  return value;
}

// -1 is unknown, as is an absent member.
double Percent(JsonMembers& members, std::string_view key) {
  const double value = members.Number(key, -1);
  if (value != -1 && !(0 <= value && value <= 1e6)) {
    members.Refuse(key, "a percentage of at least 0, or -1 for unknown");
  }
  return value;
}

int Count(JsonMembers& members, std::string_view key, int least) {
  const size_t value = members.RequiredSize(key);
  const auto most = static_cast<size_t>(std::numeric_limits<int>::max());
  if (value < static_cast<size_t>(least) || value > most) {
    members.Refuse(key, "a whole number of at least " + std::to_string(least));
    return least;
  }
  return static_cast<int>(value);
}

// One of the words.
std::string Word(JsonMembers& members, std::string_view key,
                 std::initializer_list<std::string_view> words) {
  std::string text = members.RequiredString(key);
  std::string wanted;
  for (const std::string_view word : words) {
    if (text == word) return text;
    wanted += (wanted.empty() ? "'" : " or '") + std::string(word) + "'";
  }
  members.Refuse(key, wanted);
  return text;
}

// At most so many positive numbers; absent or null is none of them.
std::vector<double> Numbers(JsonMembers& members, std::string_view key, size_t most) {
  std::vector<double> numbers;
  const JsonValue* value = members.Find(key);
  if (!members.ok() || value == nullptr || value->is_null()) return numbers;
  if (!value->is_array() || value->items().size() > most) {
    members.Refuse(key, "an array of at most " + std::to_string(most) + " numbers");
    return numbers;
  }
  for (const JsonValue& item : value->items()) {
    if (!item.is_number() || !IsPositive(item.number())) {
      throw Failure(members.where() + ": " + std::string(key) + "[" +
                    std::to_string(numbers.size()) + "] is " + item.Described() + "; wanted " +
                    kPositive);
    }
    numbers.push_back(item.number());
  }
  return numbers;
}

std::vector<std::string> Texts(JsonMembers& members, std::string_view key) {
  std::vector<std::string> texts;
  if (!members.Has(key)) return texts;
  const JsonValue& value = members.RequiredArray(key);
  if (!members.ok()) return texts;
  for (const JsonValue& item : value.items()) {
    if (!item.is_string()) {
      throw Failure(members.where() + ": " + std::string(key) + "[" + std::to_string(texts.size()) +
                    "] is " + item.Described() + "; wanted a string");
    }
    texts.push_back(item.text());
  }
  return texts;
}

ReportMachine ReadMachine(JsonMembers members) {
  ReportMachine machine;
  machine.cpu = members.RequiredString("cpu");
  machine.architecture = members.String("architecture", "");
  machine.cores = Count(members, "cores", 1);
  machine.cores_text = members.String("cores_text", "");
  machine.l1d_bytes = members.Size("l1d_bytes", 0);
  machine.l2_bytes = members.Size("l2_bytes", 0);
  machine.l3_bytes = members.Size("l3_bytes", 0);
  machine.system = members.String("system", "");
  machine.compiler = members.String("compiler", "");
  machine.targets = Texts(members, "targets");
  Check(members.status());
  return machine;
}

ReportRun ReadRun(JsonMembers members) {
  ReportRun run;
  run.threads_from = members.String("threads_from", "");
  if (members.Has("idle_spin_us")) run.idle_spin_us = Count(members, "idle_spin_us", 0);
  run.binding = members.String("binding", "");
  run.seconds_per_row = NotNegative(members, "seconds_per_row");
  run.seconds = NotNegative(members, "seconds");
  Check(members.status());
  return run;
}

ReportNoise ReadNoise(JsonMembers members) {
  ReportNoise noise;
  noise.steal_percent = Percent(members, "steal_percent");
  noise.busy_percent = Percent(members, "busy_percent");
  noise.peak_drift_percent = NotNegative(members, "peak_drift_percent");
  noise.notes = Texts(members, "notes");
  Check(members.status());
  return noise;
}

ReportRoof ReadRoof(JsonMembers members) {
  ReportRoof roof;
  roof.kind = Word(members, "kind", {"compute", "read"});
  if (roof.kind == "compute") {
    roof.target = members.RequiredString("target");
    roof.precision = members.RequiredString("precision");
    roof.flops_per_s = Positive(members, "flops_per_s");
  } else {
    roof.level = Word(members, "level", {"L1", "L2", "L3", "memory"});
    roof.bytes = members.Size("bytes", 0);
    roof.bytes_per_s = Positive(members, "bytes_per_s");
  }
  roof.threads = Count(members, "threads", 1);
  roof.samples = Numbers(members, "samples", kMaxSamples);
  Check(members.status());
  return roof;
}

ReportSeconds ReadSeconds(JsonMembers members) {
  ReportSeconds seconds;
  for (const auto& [key, member] : {std::pair("min", &ReportSeconds::min),
                                    {"p50", &ReportSeconds::p50},
                                    {"p90", &ReportSeconds::p90},
                                    {"p99", &ReportSeconds::p99},
                                    {"max", &ReportSeconds::max}}) {
    seconds.*member = Positive(members, key);
  }
  Check(members.status());
  return seconds;
}

std::optional<ReportRowRoof> ReadRowRoof(JsonMembers members) {
  ReportRowRoof roof;
  roof.kind = Word(members, "kind", {"compute", "read"});
  roof.level = members.String("level", "");
  roof.name = members.RequiredString("name");
  roof.value = Positive(members, "value");
  roof.share = NotNegative(members, "share");
  Check(members.status());
  return roof;
}

void ReadSizes(JsonMembers& members, ReportRow& row) {
  row.d_model = members.RequiredSize("d_model");
  row.heads = members.RequiredSize("heads");
  row.d_ff = members.RequiredSize("d_ff");
  row.activation = members.String("activation", "");
  row.layers = members.RequiredSize("layers");
  row.sequences = members.RequiredSize("sequences");
  row.tokens = members.RequiredSize("tokens");
  row.useful_tokens = members.Size("useful_tokens", row.tokens);
}

ReportRow ReadRow(JsonMembers members) {
  ReportRow row;
  row.engine = members.RequiredString("engine");
  row.engine_version = members.String("engine_version", "");
  row.workload = members.RequiredString("workload");
  ReadSizes(members, row);
  row.precision = members.RequiredString("precision");
  row.amx_bf16 = members.Bool("amx_bf16", false);
  row.target = members.String("target", "");
  row.threads = Count(members, "threads", 1);
  row.weights = Word(members, "weights", {"warm", "cold"});
  row.calls = members.RequiredSize("calls");
  row.flops = Positive(members, "flops");
  row.weight_bytes = Positive(members, "weight_bytes");
  row.gflops = Positive(members, "gflops");
  row.tokens_per_s = Positive(members, "tokens_per_s");
  row.useful_tokens_per_s = NotNegative(members, "useful_tokens_per_s");
  row.verified = members.Bool("verified", false);
  row.quantiles = Numbers(members, "quantiles", kMaxSamples);
  if (!row.quantiles.empty() && row.quantiles.size() != kQuantiles) {
    members.Refuse("quantiles", std::to_string(kQuantiles) + " numbers or none");
  }
  row.slots = Numbers(members, "slots", kMaxSlots);
  if (row.slots.empty()) members.Refuse("slots", "at least one number");
  const JsonValue& seconds = members.RequiredObject("seconds");
  const JsonValue* roof = members.Has("roof") ? members.Find("roof") : nullptr;
  Check(members.status());
  row.seconds = ReadSeconds(JsonMembers(seconds, members.where() + ": seconds"));
  if (roof != nullptr) row.roof = ReadRowRoof(JsonMembers(*roof, members.where() + ": roof"));
  return row;
}

// An array of at most so many objects, read one by one.
template <typename Entry>
std::vector<Entry> Entries(JsonMembers& members, const std::string& key, size_t most,
                           Entry (*read)(JsonMembers)) {
  const JsonValue& array = members.RequiredArray(key);
  if (members.ok() && array.items().size() > most) {
    members.Refuse(key, "at most " + std::to_string(most) + " entries");
  }
  Check(members.status());
  std::vector<Entry> entries;
  for (const JsonValue& item : array.items()) {
    const std::string where =
        members.where() + ": " + key + "[" + std::to_string(entries.size()) + "]";
    entries.push_back(read(JsonMembers(item, where)));
  }
  return entries;
}

void CheckVersion(JsonMembers& members) {
  const std::optional<size_t> version = members.OptionalSize("encore_report");
  Check(members.status());
  if (!version) {
    throw Failure(members.where() +
                  ": encore_report is absent; wanted a report of `encore bench --json` or `encore "
                  "report`");
  }
  if (*version > kReportVersion) {
    throw Failure(members.where() + ": encore_report is " + std::to_string(*version) +
                  ", a report of a newer version; encore " + ENCORE_VERSION_STRING +
                  " reads version " + std::to_string(kReportVersion));
  }
  if (*version < 1) members.Refuse("encore_report", "a version from 1 on");
  Check(members.status());
}

}  // namespace

Report ParseReport(std::string_view text, const std::string& name) {
  const JsonValue root = Take(JsonValue::Parse(text), name);
  JsonMembers members(root, name);
  CheckVersion(members);
  Report report;
  report.encore = members.String("encore", "");
  report.created = members.String("created", "");
  const auto part = [&](const char* key) {
    const JsonValue& value = members.RequiredObject(key);
    Check(members.status());
    return JsonMembers(value, name + ": " + key);
  };
  report.machine = ReadMachine(part("machine"));
  report.run = ReadRun(part("run"));
  report.noise = ReadNoise(part("noise"));
  report.roofs = Entries(members, "roofs", kMaxRoofs, ReadRoof);
  report.rows = Entries(members, "rows", kMaxRows, ReadRow);
  return report;
}

Report ReadReport(const std::string& path) {
  const internal::MappedFile file = Take(internal::MappedFile::Open(path));
  const std::span<const std::byte> bytes = file.bytes();
  if (bytes.size() > kMaxBytes) {
    throw Failure(path + ": found " + std::to_string(bytes.size()) + " bytes; wanted at most " +
                  std::to_string(kMaxBytes));
  }
  return ParseReport({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path);
}

}  // namespace encore::tool
