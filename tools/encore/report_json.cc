// SPDX-License-Identifier: Apache-2.0
//
// A report as JSON, member by member as report.schema.json has it: one function for each object of
// the file, which reads and writes it. Nothing that is read is trusted: numbers must be finite and
// in their range, for pages divide by them and take logarithms.

#include <initializer_list>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "encore/version.h"
#include "engine/io/json_members.h"
#include "engine/io/json_value.h"
#include "engine/platform/mapped_file.h"
#include "nlohmann/json.hpp"
#include "tools/encore/failure.h"
#include "tools/encore/report_data.h"
#include "tools/encore/text.h"

namespace encore::tool {
namespace {

using internal::JsonMembers;
using internal::JsonValue;
using Json = nlohmann::ordered_json;

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

// The members of one object. Each function reads the member of that name into the variable, or
// writes the variable; what is wanted of a number is asked of those that are read.
class Members {
 public:
  Members() = default;                                        // writes
  explicit Members(JsonMembers* source) : source_(source) {}  // reads

  bool reads() const { return source_ != nullptr; }
  const Json& json() const { return json_; }  // what was written

  // Whether there is something to read, or a place to write.
  bool Has(const char* key) { return !reads() || source_->Has(key); }

  void Refuse(const char* key, const std::string& wanted) {
    if (reads()) source_->Refuse(key, wanted);
  }

  void Text(const char* key, std::string& text) {
    if (!Writes(key, Printable(text))) text = source_->String(key, "");
  }
  void RequiredText(const char* key, std::string& text) {
    if (!Writes(key, Printable(text))) text = source_->RequiredString(key);
  }
  // "" is null.
  void TextOrNull(const char* key, std::string& text) {
    if (!Writes(key, text.empty() ? Json() : Json(text))) text = source_->String(key, "");
  }
  // "" is absent.
  void TextIfAny(const char* key, std::string& text) {
    if (reads() || !text.empty()) Text(key, text);
  }
  void Word(const char* key, std::string& text, std::initializer_list<std::string_view> words) {
    if (Writes(key, text)) return;
    text = source_->RequiredString(key);
    std::string wanted;
    for (const std::string_view word : words) {
      if (text == word) return;
      wanted += (wanted.empty() ? "'" : " or '") + std::string(word) + "'";
    }
    Refuse(key, wanted);
  }

  void Bool(const char* key, bool& value) {
    if (!Writes(key, value)) value = source_->Bool(key, false);
  }
  void Size(const char* key, size_t& value, size_t absent = 0) {
    if (!Writes(key, value)) value = source_->Size(key, absent);
  }
  void RequiredSize(const char* key, size_t& value) {
    if (!Writes(key, value)) value = source_->RequiredSize(key);
  }
  void Count(const char* key, int& value, int least) {
    if (Writes(key, value)) return;
    const size_t size = source_->RequiredSize(key);
    const auto most = static_cast<size_t>(std::numeric_limits<int>::max());
    if (size < static_cast<size_t>(least) || size > most) {
      return Refuse(key, "a whole number of at least " + std::to_string(least));
    }
    value = static_cast<int>(size);
  }

  void Positive(const char* key, double& value) {
    if (Writes(key, value)) return;
    value = source_->OptionalNumber(key).value_or(0);
    if (!IsPositive(value)) Refuse(key, kPositive);
  }
  // Nothing is null.
  void PositiveOrNull(const char* key, std::optional<double>& value) {
    if (!reads()) {
      json_[key] = value ? Json(*value) : Json();
      return;
    }
    const JsonValue* found = source_->Find(key);
    if (found != nullptr && found->is_null()) return;
    Positive(key, value.emplace());
  }
  void NotNegative(const char* key, double& value) {
    if (Writes(key, value)) return;
    value = source_->OptionalNumber(key).value_or(-1);
    if (!(0 <= value && value <= kLargest)) Refuse(key, "a number of at least 0");
  }
  // -1 is unknown, as is an absent member.
  void Percent(const char* key, double& value) {
    if (Writes(key, value)) return;
    value = source_->Number(key, -1);
    if (value != -1 && !(0 <= value && value <= 1e6)) {
      Refuse(key, "a percentage of at least 0, or -1 for unknown");
    }
  }

  // At most so many positive numbers; absent or null is none of them.
  void Numbers(const char* key, std::vector<double>& numbers, size_t most) {
    if (Writes(key, numbers)) return;
    const JsonValue* value = source_->Find(key);
    if (!source_->ok() || value == nullptr || value->is_null()) return;
    if (!value->is_array() || value->items().size() > most) {
      return Refuse(key, "an array of at most " + std::to_string(most) + " numbers");
    }
    for (const JsonValue& item : value->items()) {
      if (!item.is_number() || !IsPositive(item.number())) {
        RefuseItem(key, numbers.size(), item, kPositive);
      }
      numbers.push_back(item.number());
    }
  }
  void Texts(const char* key, std::vector<std::string>& texts) {
    if (Writes(key, texts) || !source_->Has(key)) return;
    const JsonValue& value = source_->RequiredArray(key);
    if (!source_->ok()) return;
    for (const JsonValue& item : value.items()) {
      if (!item.is_string()) RefuseItem(key, texts.size(), item, "a string");
      texts.push_back(item.text());
    }
  }

  template <typename T>
  void Object(const char* key, T& value, void (*visit)(Members&, T&)) {
    if (!reads()) {
      json_[key] = Written(value, visit);
      return;
    }
    const JsonValue& object = source_->RequiredObject(key);
    Check(source_->status());
    Read(object, source_->where() + ": " + key, value, visit);
  }
  template <typename T>
  void ObjectOrNull(const char* key, std::optional<T>& value, void (*visit)(Members&, T&)) {
    if (!reads()) {
      json_[key] = value ? Written(*value, visit) : Json();
    } else if (source_->Has(key)) {
      Read(*source_->Find(key), source_->where() + ": " + key, value.emplace(), visit);
    }
  }
  // An array of at most so many objects.
  template <typename T>
  void Objects(const char* key, std::vector<T>& values, size_t most, void (*visit)(Members&, T&)) {
    if (!reads()) {
      Json& array = json_[key] = Json::array();
      for (T& value : values) array.push_back(Written(value, visit));
      return;
    }
    const JsonValue& array = source_->RequiredArray(key);
    if (source_->ok() && array.items().size() > most) {
      Refuse(key, "at most " + std::to_string(most) + " entries");
    }
    Check(source_->status());
    for (const JsonValue& item : array.items()) {
      const std::string place = std::string(key) + "[" + std::to_string(values.size()) + "]";
      Read(item, source_->where() + ": " + place, values.emplace_back(), visit);
    }
  }

 private:
  template <typename T>
  bool Writes(const char* key, const T& value) {
    if (!reads()) json_[key] = value;
    return !reads();
  }

  template <typename T>
  static Json Written(T& value, void (*visit)(Members&, T&)) {
    Members members;
    visit(members, value);
    return std::move(members.json_);
  }
  template <typename T>
  static void Read(const JsonValue& object, const std::string& where, T& value,
                   void (*visit)(Members&, T&)) {
    JsonMembers source(object, where);
    Members members(&source);
    visit(members, value);
    Check(source.status());
  }

  [[noreturn]] void RefuseItem(const std::string& key, size_t i, const JsonValue& item,
                               const std::string& wanted) {
    throw Failure(source_->where() + ": " + key + "[" + std::to_string(i) + "] is " +
                  item.Described() + "; wanted " + wanted);
  }

  JsonMembers* source_ = nullptr;
  Json json_ = Json::object();
};

void Machine(Members& members, ReportMachine& machine) {
  members.RequiredText("cpu", machine.cpu);
  members.Text("architecture", machine.architecture);
  members.Count("cores", machine.cores, 1);
  members.Text("cores_text", machine.cores_text);
  members.Size("l1d_bytes", machine.l1d_bytes);
  members.Size("l2_bytes", machine.l2_bytes);
  members.Size("l3_bytes", machine.l3_bytes);
  members.Text("system", machine.system);
  members.Text("compiler", machine.compiler);
  members.TextIfAny("commit", machine.commit);
  members.TextIfAny("flags", machine.flags);
  members.Texts("targets", machine.targets);
}

void Run(Members& members, ReportRun& run) {
  members.Text("threads_from", run.threads_from);
  if (members.Has("idle_spin_us")) members.Count("idle_spin_us", run.idle_spin_us, 0);
  members.Text("binding", run.binding);
  members.NotNegative("seconds_per_row", run.seconds_per_row);
  members.NotNegative("seconds", run.seconds);
}

void Noise(Members& members, ReportNoise& noise) {
  members.Percent("steal_percent", noise.steal_percent);
  members.Percent("busy_percent", noise.busy_percent);
  members.NotNegative("peak_drift_percent", noise.peak_drift_percent);
  members.Texts("notes", noise.notes);
}

void Roof(Members& members, ReportRoof& roof) {
  members.Word("kind", roof.kind, {"compute", "read"});
  if (roof.kind == "compute") {
    members.RequiredText("target", roof.target);
    members.RequiredText("precision", roof.precision);
    members.Count("threads", roof.threads, 1);
    members.Positive("flops_per_s", roof.flops_per_s);
  } else {
    members.Word("level", roof.level, {"L1", "L2", "L3", "memory"});
    members.Size("bytes", roof.bytes);
    members.Count("threads", roof.threads, 1);
    members.Positive("bytes_per_s", roof.bytes_per_s);
  }
  members.Numbers("samples", roof.samples, kMaxSamples);
}

void Seconds(Members& members, ReportSeconds& seconds) {
  members.Positive("min", seconds.min);
  members.Positive("p50", seconds.p50);
  members.Positive("p90", seconds.p90);
  members.PositiveOrNull("p99", seconds.p99);
  members.Positive("max", seconds.max);
}

void RowRoof(Members& members, ReportRowRoof& roof) {
  members.Word("kind", roof.kind, {"compute", "read"});
  members.TextOrNull("level", roof.level);
  members.RequiredText("name", roof.name);
  members.Positive("value", roof.value);
  members.NotNegative("share", roof.share);
}

void Model(Members& members, ReportModel& model) {
  members.RequiredText("name", model.name);
  members.Size("bytes", model.bytes);
  members.Size("values", model.values);
}

void Row(Members& members, ReportRow& row) {
  members.RequiredText("engine", row.engine);
  members.Text("engine_version", row.engine_version);
  members.RequiredText("workload", row.workload);
  members.RequiredSize("d_model", row.d_model);
  members.RequiredSize("heads", row.heads);
  members.RequiredSize("d_ff", row.d_ff);
  members.Text("activation", row.activation);
  members.RequiredSize("layers", row.layers);
  members.RequiredSize("sequences", row.sequences);
  members.RequiredSize("tokens", row.tokens);
  members.Size("useful_tokens", row.useful_tokens, row.tokens);
  members.RequiredText("precision", row.precision);
  members.Bool("amx_bf16", row.amx_bf16);
  members.Text("target", row.target);
  members.Count("threads", row.threads, 1);
  members.Word("weights", row.weights, {"warm", "cold"});
  members.RequiredSize("calls", row.calls);
  members.Positive("flops", row.flops);
  members.Positive("weight_bytes", row.weight_bytes);
  members.Object("seconds", row.seconds, Seconds);
  if (members.reads() || !row.quantiles.empty()) {
    members.Numbers("quantiles", row.quantiles, kMaxSamples);
    if (!row.quantiles.empty() && row.quantiles.size() != kQuantiles) {
      members.Refuse("quantiles", std::to_string(kQuantiles) + " numbers or none");
    }
  }
  members.Numbers("slots", row.slots, kMaxSlots);
  if (row.slots.empty()) members.Refuse("slots", "at least one number");
  members.Positive("gflops", row.gflops);
  members.Positive("tokens_per_s", row.tokens_per_s);
  members.NotNegative("useful_tokens_per_s", row.useful_tokens_per_s);
  if (members.reads() ? members.Has("model") : row.model.has_value()) {
    members.ObjectOrNull("model", row.model, Model);
    members.Positive("texts_per_s", row.texts_per_s);
  }
  members.ObjectOrNull("roof", row.roof, RowRoof);
  members.Bool("verified", row.verified);
}

void WholeReport(Members& members, Report& report) {
  members.Count("encore_report", report.version, 1);
  members.Text("encore", report.encore);
  members.Text("created", report.created);
  members.Object("machine", report.machine, Machine);
  members.Object("run", report.run, Run);
  members.Object("noise", report.noise, Noise);
  members.Objects("roofs", report.roofs, kMaxRoofs, Roof);
  members.Objects("rows", report.rows, kMaxRows, Row);
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
}

}  // namespace

std::string ReportJson(Report report) {
  Members members;
  WholeReport(members, report);
  return members.json().dump(1) + "\n";
}

Report ParseReport(std::string_view text, const std::string& name) {
  const JsonValue root = Take(JsonValue::Parse(text), name);
  JsonMembers source(root, name);
  CheckVersion(source);
  Members members(&source);
  Report report;
  WholeReport(members, report);
  Check(source.status());
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
