// SPDX-License-Identifier: Apache-2.0
//
// Reading reports (tools/encore/report_data.h): what was written comes back, and every kind of
// damage is one sentence that names file, member, what was found and what was wanted.

#include "tools/encore/report_data.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "tests/cli/synthetic_report.h"
#include "tools/encore/failure.h"

namespace encore::tool {
namespace {

using nlohmann::json;

const std::string& Text() {
  static const std::string text = SyntheticJson(SyntheticReport({.threads = {1}, .slots = 5}));
  return text;
}

// The sentence that refuses the text; "" if it is taken.
std::string Refusal(const std::string& text) {
  try {
    ParseReport(text, "r.json");
    return "";
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.exit_status(), kExitBadInput);
    return failure.what();
  }
}

void ExpectRefused(const std::string& text, const std::vector<std::string>& words) {
  const std::string sentence = Refusal(text);
  EXPECT_EQ(sentence.rfind("r.json", 0), 0u) << sentence;
  EXPECT_EQ(sentence.find('\n'), std::string::npos) << sentence;
  EXPECT_LT(sentence.size(), 300u) << sentence;
  for (const std::string& word : words) {
    EXPECT_NE(sentence.find(word), std::string::npos) << "wanted " << word << "\nin " << sentence;
  }
}

// With another value at this place.
std::string With(const std::string& place, const json& value) {
  json changed = json::parse(Text());
  changed[json::json_pointer(place)] = value;
  return changed.dump();
}

std::string Without(const std::string& parent, const std::string& key) {
  json changed = json::parse(Text());
  changed[json::json_pointer(parent)].erase(key);
  return changed.dump();
}

TEST(ReportReadTest, ReadsWhatIsWritten) {
  const Report written = SyntheticReport({.threads = {1}, .slots = 5});
  const Report read = ParseReport(Text(), "r.json");
  EXPECT_EQ(SyntheticJson(read), Text());
  ASSERT_EQ(read.rows.size(), written.rows.size());
  EXPECT_EQ(read.rows[1].slots, written.rows[1].slots);
  EXPECT_EQ(read.rows[1].roof->name, written.rows[1].roof->name);
  EXPECT_EQ(read.roofs.size(), written.roofs.size());
}

TEST(ReportReadTest, PassesOverWhatItDoesNotKnowOrNeed) {
  EXPECT_EQ(Refusal(With("/rows/0/colour", "blue")), "");
  EXPECT_EQ(Refusal(With("/rows/0/roof", nullptr)), "");
  EXPECT_EQ(Refusal(Without("/rows/0", "roof")), "");
  EXPECT_EQ(Refusal(Without("/rows/0", "quantiles")), "");
  EXPECT_EQ(Refusal(With("/noise/busy_percent", -1)), "");
  EXPECT_EQ(Refusal(With("/roofs", json::array())), "");
}

TEST(ReportReadTest, RefusesWhatIsNoReport) {
  ExpectRefused("", {"JSON"});
  ExpectRefused(Text().substr(0, Text().size() / 2), {"JSON"});
  ExpectRefused("[]", {"an array of 0", "an object"});
  ExpectRefused("{}", {"encore_report is absent", "encore report"});
  ExpectRefused(R"({"encore_report": "1"})", {"encore_report is '1'", "whole number"});
  ExpectRefused(R"({"encore_report": -1})", {"encore_report is -1"});
  ExpectRefused(R"({"encore_report": 0})", {"encore_report is 0"});
  ExpectRefused(std::string(100000, '['), {"JSON"});
  ExpectRefused("{\"encore_report\": NaN}", {"JSON"});
}

TEST(ReportReadTest, RefusesANewerVersionByNumber) {
  ExpectRefused(With("/encore_report", 2), {"encore_report is 2", "newer", "reads version 1"});
}

TEST(ReportReadTest, RefusesAbsentMembers) {
  for (const char* key : {"machine", "run", "noise", "roofs", "rows"}) {
    ExpectRefused(Without("", key), {std::string(key) + " is absent"});
  }
  ExpectRefused(Without("/machine", "cpu"), {"machine: cpu is absent", "a string"});
  for (const char* key : {"engine", "workload", "layers", "tokens", "precision", "threads",
                          "weights", "flops", "weight_bytes", "seconds", "slots", "gflops"}) {
    ExpectRefused(Without("/rows/3", key), {"rows[3]: " + std::string(key) + " is absent"});
  }
  ExpectRefused(Without("/rows/0/seconds", "p99"), {"rows[0]: seconds: p99 is absent"});
  ExpectRefused(Without("/roofs/0", "kind"), {"roofs[0]: kind is absent"});
}

TEST(ReportReadTest, RefusesOtherTypes) {
  ExpectRefused(With("/rows", json::object()), {"rows is an object", "an array"});
  ExpectRefused(With("/rows/2", 7), {"rows[2]", "found 7", "an object"});
  ExpectRefused(With("/rows/2/threads", "two"), {"rows[2]: threads is 'two'"});
  ExpectRefused(With("/rows/2/threads", 1.5), {"rows[2]: threads is 1.5"});
  ExpectRefused(With("/rows/2/amx_bf16", 1), {"amx_bf16 is 1", "true or false"});
  ExpectRefused(With("/rows/2/slots", "fast"), {"slots is 'fast'"});
  ExpectRefused(With("/rows/2/slots/1", "fast"), {"slots[1] is 'fast'", "above 0"});
  ExpectRefused(With("/rows/2/roof", 3), {"rows[2]: roof", "found 3"});
  ExpectRefused(With("/noise/notes", json::array({1})), {"noise: notes[0] is 1", "a string"});
  ExpectRefused(With("/machine/cpu", nullptr), {"machine: cpu is null"});
}

TEST(ReportReadTest, RefusesNumbersOutOfRange) {
  ExpectRefused(With("/rows/0/flops", 0), {"rows[0]: flops is 0", "above 0"});
  ExpectRefused(With("/rows/0/weight_bytes", -5), {"weight_bytes is -5"});
  ExpectRefused(With("/rows/0/seconds/p50", -1e-3), {"rows[0]: seconds: p50 is -0.001"});
  ExpectRefused(With("/rows/0/slots/0", 0), {"slots[0] is 0"});
  ExpectRefused(With("/rows/0/slots", json::array()), {"slots is an array of 0", "at least one"});
  ExpectRefused(With("/rows/0/quantiles", {1, 2}), {"quantiles is an array of 2", "101"});
  ExpectRefused(With("/rows/0/threads", 0), {"threads is 0", "at least 1"});
  ExpectRefused(With("/rows/0/threads", 4294967297), {"threads is 4294967297"});
  ExpectRefused(With("/rows/0/weights", "hot"), {"weights is 'hot'", "'warm' or 'cold'"});
  ExpectRefused(With("/noise/busy_percent", -3), {"noise: busy_percent is -3", "-1"});
  ExpectRefused(With("/roofs/0/flops_per_s", 1e300), {"roofs[0]: flops_per_s", "above 0"});
  std::string infinite = With("/rows/0/flops", 123456789.0);
  infinite.replace(infinite.find("123456789.0"), 11, "1e999");
  ExpectRefused(infinite, {});
}

TEST(ReportReadTest, RefusesMoreThanCanBeCompared) {
  ExpectRefused(With("/rows", json(2001, json::object())), {"rows is an array of 2001", "2000"});
  ExpectRefused(With("/roofs", json(501, json::object())), {"roofs is an array of 501", "500"});
  ExpectRefused(With("/rows/0/slots", json(1001, 1e-3)), {"rows[0]: slots", "1001", "1000"});
  EXPECT_EQ(Refusal(With("/rows/0/slots", json(1000, 1e-3))), "");
}

TEST(ReportReadTest, RefusesFilesThatAreNone) {
  EXPECT_THROW(ReadReport("nothing/there.json"), Failure);
  EXPECT_THROW(ReadReport("."), Failure);
}

}  // namespace
}  // namespace encore::tool
