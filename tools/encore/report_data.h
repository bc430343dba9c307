// SPDX-License-Identifier: Apache-2.0
//
// What `encore bench --json` writes down of a machine: plain data, member by member as in
// python/pyencore/lab/report.schema.json, which tells what each means.

#ifndef ENCORE_TOOLS_ENCORE_REPORT_DATA_H_
#define ENCORE_TOOLS_ENCORE_REPORT_DATA_H_

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/measure/machine.h"
#include "bench/measure/sensors.h"

namespace encore::tool {

inline constexpr int kReportVersion = 1;

struct ReportMachine {
  std::string cpu;           // "AMD EPYC"
  std::string architecture;  // "x86_64"
  int cores = 0;             // usable ones
  std::string cores_text;    // why so many
  size_t l1d_bytes = 0;      // 0 where the system does not tell
  size_t l2_bytes = 0;
  size_t l3_bytes = 0;
  std::string system;                // "Linux 6.1"
  std::string compiler;              // "g++ 12.2.0"
  std::string commit = {};           // of the sources when the build was configured; "" unknown
  std::string flags = {};            // of the compiler; "" unknown
  std::vector<std::string> targets;  // that the machine runs, best first
  std::vector<std::pair<std::string, bench::Fact>> hardware = {};
};

struct ReportRun {
  std::string threads_from;  // "pool" or "openmp"
  int idle_spin_us = 0;
  std::string binding;
  double seconds_per_row = 0;
  double seconds = 0;              // of the whole run
  std::string energy_source = {};  // of bench/measure/sensors.h; "" if energy cannot be read
  std::optional<double> idle_watts = {};
};

struct ReportNoise {
  double steal_percent = -1;        // of all cores' time during the run; -1 if unknown, as below
  double busy_percent = -1;         // of all cores' time, what other processes took
  double peak_drift_percent = 0;    // (p90 - p10) / median of one thread's f32 peak, best target
  double memory_drift_percent = 0;  // likewise of memory's bandwidth; the most of a thread count
  std::vector<std::string> notes;   // sentences
};

struct ReportRoof {
  std::string kind;  // "compute" or "read"
  // Of "compute" alone.
  std::string target = {};
  std::string precision = {};  // "f32", "bf16", "int8", "int4"
  double flops_per_s = 0;
  // Of "read" alone.
  std::string level = {};  // "L1", "L2", "L3", "memory"
  size_t bytes = 0;        // a thread's buffer
  double bytes_per_s = 0;  // of all threads together
  // Of both.
  int threads = 1;
  std::vector<double> samples = {};
};

// Of fewer calls, the call that 1 in 100 is slower than is the slowest one, or near it.
inline constexpr size_t kCallsForP99 = 100;

// Of one call.
struct ReportSeconds {
  double min = 0;
  double p50 = 0;
  double p90 = 0;
  std::optional<double> p99 = {};  // of kCallsForP99 calls and more
  double max = 0;
};

// The roof that applies to a row: the one under which the work takes longer.
struct ReportRowRoof {
  std::string kind;   // "compute" or "read"
  std::string level;  // of "read"; "" is null in the file
  std::string name;   // "f32 peak", "memory bandwidth"
  double value = 0;   // operations or bytes a second
  double share = 0;   // of it, that the row reached
};

// A model whose texts a call takes to vectors or scores.
struct ReportModel {
  std::string name;   // of its folder, without the path
  size_t bytes = 0;   // of its weight files
  size_t values = 0;  // in them: parameters, and scales
};

// Of a row of texts: what it took to open its model in its precision, files read before.
struct ReportOpening {
  double seconds = 0;                 // packing the weights
  std::optional<double> cached = {};  // with a folder of packed weights that is there already
  double first_call = 0;              // with one query
  size_t packed_bytes = 0;            // of the layers' matrices
  size_t resident_bytes = 0;          // by which the process grew until then; 0 if unknown
};

// Of a row whose calls are made one in each frame of a loop. Counts are a frame's, of the whole
// process.
struct ReportLoop {
  int hz = 0;                        // 0: back to back
  std::optional<double> p99_9 = {};  // seconds of a call; of ten times kCallsForP99 and more
  size_t late = 0;                   // calls that took longer than 1 / hz
  double minor_faults = 0;
  double major_faults = 0;
  std::optional<double> allocations = {};  // calls of operator new; nothing if not counted
  double voluntary_switches = 0;           // the wait for the next frame is one
  double involuntary_switches = 0;
  ReportSeconds control;  // of fixed integer work in each frame, after the call
};

// Of a row whose calls are made by as many copies of the model as there are threads.
struct ReportServer {
  double calls_per_s = 0;                   // that were done
  std::optional<size_t> load_percent = {};  // arrivals, of what can be done; nothing: back to back
  std::optional<double> p99_9 = {};         // as ReportLoop's
};

// Of a row that says how many tokens of one text fit into a time, or which load.
struct ReportBudget {
  double seconds = 0;     // that p99 may be
  bool fits = false;      // false: the fewest tokens that there can be take longer
  size_t max_length = 0;  // of the model; 0: no limit
};

struct ReportRow {
  std::string engine = "encore";
  std::string engine_version;
  std::string workload;
  size_t d_model = 0;
  size_t heads = 0;
  size_t d_ff = 0;
  std::string activation;
  size_t layers = 1;  // in the call whose time is given
  size_t sequences = 1;
  size_t tokens = 0;         // computed
  size_t useful_tokens = 0;  // those that are no padding
  std::string precision;
  bool amx_bf16 = false;
  std::string target;
  int threads = 1;
  std::string weights;  // "warm" or "cold"
  size_t calls = 0;
  double flops = 0;         // of a call
  double weight_bytes = 0;  // that a call reads
  ReportSeconds seconds;
  std::vector<double> quantiles;  // 101 of them, or none
  std::vector<double> slots;      // medians of consecutive slots of the run
  double gflops = 0;
  double tokens_per_s = 0;
  double useful_tokens_per_s = 0;
  // Of rows of texts, which are the sequences.
  std::optional<ReportModel> model = {};
  std::optional<ReportOpening> opening = {};
  double texts_per_s = 0;
  std::optional<ReportLoop> loop = {};
  std::optional<ReportServer> server = {};
  std::optional<ReportBudget> budget = {};
  bench::SensorValues sensors = {};
  std::optional<double> joules = {};  // of a call
  std::optional<ReportRowRoof> roof;
  // Before timing, the model's first layers on four tokens agreed with a reference in double
  // precision, and the output was finite and, bit for bit, what one thread alone computes.
  bool verified = false;
};

struct Report {
  int version = kReportVersion;
  std::string encore;   // version of the program
  std::string created;  // "2026-11-23T05:10:52Z"
  ReportMachine machine;
  ReportRun run;
  ReportNoise noise;
  std::vector<ReportRoof> roofs;
  std::vector<ReportRow> rows;
};

// The JSON text, with a line break at its end.
std::string ReportJson(const Report& report);

}  // namespace encore::tool

#endif  // ENCORE_TOOLS_ENCORE_REPORT_DATA_H_
