// SPDX-License-Identifier: Apache-2.0
//
// What `encore bench` measures with: noise, levels of memory, slots, roofs beside loops that were
// written for this test alone, and the check before the clock starts.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <limits>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include "bench/measure/check.h"
#include "bench/measure/forward.h"
#include "bench/measure/models.h"
#include "bench/measure/noise.h"
#include "bench/measure/os.h"
#include "bench/measure/peak.h"
#include "bench/measure/read.h"
#include "bench/measure/roof_kernels.h"
#include "bench/measure/samples.h"
#include "encore/cpu.h"
#include "encore/thread_pool.h"
#include "engine/base/aligned_buffer.h"
#include "nlohmann/json.hpp"
#include "tests/support/cpu_time.h"
#include "tests/support/precisions.h"
#include "tests/support/results.h"
#include "tests/support/sanitizers.h"
#include "tests/support/targets.h"
#include "tools/encore/bench_roofs.h"
#include "tools/encore/bench_table.h"
#include "tools/encore/report_data.h"

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#include <immintrin.h>
#endif

namespace encore::bench {
namespace {

TEST(Noise, ReadsTheFirstLineOfProcStat) {
  // user nice system idle iowait irq softirq steal guest guest_nice
  const auto times = ParseCpuTimes("cpu  100 20 30 1000 200 4 6 40 50 5", 100);
  ASSERT_TRUE(times.has_value());
  EXPECT_DOUBLE_EQ(times->all, 14.0);  // guests are users too
  EXPECT_DOUBLE_EQ(times->stolen, 0.4);
  EXPECT_DOUBLE_EQ(times->busy, 1.6);
  EXPECT_FALSE(ParseCpuTimes("cpu0 1 2 3 4 5 6 7 8", 100));
  EXPECT_FALSE(ParseCpuTimes("cpu 1 2 3 4 5 6 7", 100));
  EXPECT_FALSE(ParseCpuTimes("", 100));
}

TEST(Noise, IsWhatOthersTookOfAllCores) {
  const CpuTimes before{.all = 100, .stolen = 1, .busy = 50, .own = 5};
  const CpuTimes after{.all = 120, .stolen = 2, .busy = 62, .own = 15};
  const OtherLoad load = LoadBetween(before, after);
  EXPECT_DOUBLE_EQ(load.steal_percent, 5);
  EXPECT_DOUBLE_EQ(load.busy_percent, 10);
  EXPECT_EQ(LoadBetween(before, {}).busy_percent, -1);
  EXPECT_EQ(LoadBetween(before, before).steal_percent, -1) << "no time has passed";
  const CpuTimes coarse{.all = 120, .stolen = 1, .busy = 59, .own = 15};
  EXPECT_EQ(LoadBetween(before, coarse).busy_percent, 0);
}

TEST(ReadLevels, AreTheNearestThatHaveRoom) {
  const std::vector<ReadLevel> levels = {
      {"L1", 1, 100}, {"L2", 1, 1000}, {"L3", 1, 10000}, {"memory", 1, SIZE_MAX}};
  EXPECT_EQ(LevelFor(100, levels).name, "L1");
  EXPECT_EQ(LevelFor(101, levels).name, "L2");
  EXPECT_EQ(LevelFor(1001, levels).name, "L3");
  EXPECT_EQ(LevelFor(20000, levels).name, "L3") << "a part may stay there";
  EXPECT_EQ(LevelFor(20001, levels).name, "memory");
  EXPECT_EQ(LevelFor(5, {levels.back()}).name, "memory");
  for (const int threads : {1, 2, 64}) {
    const std::vector<ReadLevel> here = ReadLevels(threads);
    EXPECT_EQ(here.back().name, "memory");
    for (size_t i = 0; i + 1 < here.size(); ++i) {
      EXPECT_LT(here[i].bytes, here[i + 1].bytes) << threads << " " << here[i].name;
    }
  }
}

TEST(CopiesForCold, ExceedTheCacheAndAreBounded) {
  constexpr size_t kMiB = size_t{1} << 20;
  for (const size_t bytes : {kMiB / 8, kMiB, 28 * kMiB}) {
    for (const size_t l3 : {size_t{0}, 8 * kMiB, 96 * kMiB}) {
      EXPECT_GE(CopiesForCold(bytes, l3) * bytes, 16 * l3);
    }
    EXPECT_LE(CopiesForCold(bytes, 1024 * 1024 * kMiB) * bytes, kMostColdBytes + 2 * bytes);
  }
  EXPECT_EQ(CopiesForCold(8192 * kMiB, 1024 * kMiB), 2u);  // a copy larger than the bound
}

TEST(Samples, SlotsAndPercentilesAreOfTheSamples) {
  Samples samples(Executor::Inline());
  for (int i = 1; i <= 10; ++i) samples.Add(i % 2 == 0 ? i : -i);  // -1, 2, -3 ... in one slot
  const double start = WallSeconds();
  while (WallSeconds() - start < 25e-3) {
  }
  samples.Add(50);  // the first one's slot ends with it
  samples.Add(7);
  samples.Finish();
  const std::vector<double> two = samples.SlotMedians(64);
  ASSERT_EQ(two.size(), 2u);
  EXPECT_EQ(two[0], 2) << "of -9 -7 -5 -3 -1 2 4 6 8 10 50";
  EXPECT_EQ(two[1], 7);
  EXPECT_EQ(samples.SlotMedians(1), std::vector<double>{2});
  const std::vector<double> percentiles = samples.Percentiles();
  ASSERT_EQ(percentiles.size(), 101u);
  for (const int percent : {0, 1, 50, 90, 99, 100}) {
    EXPECT_EQ(percentiles[static_cast<size_t>(percent)], samples.SecondsAt(percent / 100.0));
  }
  samples.Resume();
  samples.Add(20);
  samples.Finish();
  EXPECT_EQ(samples.count(), 13u);
  EXPECT_EQ(samples.SlotMedians(64), (std::vector<double>{2, 7, 20})) << "a slot of its own";
}

TEST(Spread, DoesNotGrowWithTheNumberOfValues) {
  std::vector<double> values = {95, 100, 105};
  EXPECT_DOUBLE_EQ(Spread(values), 0.1);
  values.clear();
  for (int i = 0; i < 100; ++i) values.push_back(99 + i % 3);
  const double few = Spread(values);
  EXPECT_DOUBLE_EQ(few, 0.02);
  for (const double outlier : {20.0, 60.0, 110.0}) values.push_back(outlier);
  EXPECT_DOUBLE_EQ(Spread(values), few);
}

// Every model of the benchmarks, in every precision, on every target.
TEST(ErrorOfLayers, IsSmall) {
  double worst[4] = {};
  ForEachTarget([&](const std::string&) {
    for (const Model& model : {kExample, kMiniLm, kModernBert}) {
      for (const Precision precision : kPrecisions) {
        const std::optional<double> error = Taken(ErrorOfLayers(model, {precision}));
        ASSERT_TRUE(error.has_value());
        EXPECT_LE(*error, MostError(precision)) << model.name << " " << PrecisionName(precision);
        double& most = worst[static_cast<int>(precision)];
        most = std::max(most, *error);
      }
    }
  });
  std::printf("largest errors: f32 %.1e, bf16 %.1e, int8 %.1e, int4 %.1e\n", worst[0], worst[1],
              worst[2], worst[3]);
  EXPECT_GT(worst[1], MostError(Precision::kF32)) << "bf16 would pass for f32";
  const Model huge = {"huge", 8192, 64, 32768, Activation::kGelu};
  const std::optional<double> unknown = Taken(ErrorOfLayers(huge, {}));
  EXPECT_FALSE(unknown.has_value()) << "the reference would take minutes";
}

TEST(AllFinite, SeesOneNumberThatIsNone) {
  std::vector<float> y(1000, 1.0f);
  EXPECT_TRUE(AllFinite(ConstView(y.data(), Shape(10, 100))));
  y[731] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_FALSE(AllFinite(ConstView(y.data(), Shape(10, 100))));
  y[731] = std::numeric_limits<float>::infinity();
  EXPECT_FALSE(AllFinite(ConstView(y.data(), Shape(10, 100))));
}

TEST(ReadMeter, MeasuresEachThreadsBuffer) {
  const ThreadPool pool = Taken(ThreadPool::Create({.threads = 3}));
  for (const Executor& executor : {Executor::Inline(), pool.executor()}) {
    ReadMeter meter = Taken(ReadMeter::Create(executor, 10000));
    EXPECT_GT(meter.Measure(), 1e6);
    EXPECT_LT(meter.Measure(), 1e15);
  }
}

// The loop reads all of the buffer: exclusive or of every word reaches the sum, in whatever lane.
TEST(ReadLoop, ReadsEveryWord) {
  constexpr size_t kCount = 2 * internal::PeakKernels::kReadStep;
  internal::AlignedBuffer<uint32_t> buffer;
  ASSERT_TRUE(buffer.Allocate(kCount));
  ForEachTarget([&](const std::string&) {
    std::fill(buffer.data(), buffer.data() + kCount, 0u);
    for (size_t i = 0; i < kCount; ++i) {
      buffer.data()[i] = 0x40;
      uint32_t sum = 0;
      const double bytes = internal::GetPeakKernels().read(buffer.data(), kCount, 3, &sum);
      EXPECT_EQ(bytes, 3.0 * sizeof(uint32_t) * kCount);
      ASSERT_EQ(sum, 0x40u) << "word " << i;
      buffer.data()[i] = 0;
    }
  });
}

TEST(ReportJson, TellsKindsApart) {
  tool::Report report;
  report.roofs = {{.kind = "compute", .target = "AVX2", .precision = "f32", .flops_per_s = 5},
                  {.kind = "read", .level = "L2", .bytes = 7, .bytes_per_s = 6, .threads = 2}};
  report.rows.resize(2);
  report.rows[0].roof = {.kind = "compute", .level = "", .name = "f32 peak"};
  report.rows[1].quantiles = {1, 2};
  const nlohmann::json json = nlohmann::json::parse(tool::ReportJson(report));
  EXPECT_EQ(json["roofs"][0]["flops_per_s"], 5);
  EXPECT_FALSE(json["roofs"][0].contains("level"));
  EXPECT_EQ(json["roofs"][1]["bytes"], 7);
  EXPECT_FALSE(json["roofs"][1].contains("precision"));
  EXPECT_TRUE(json["rows"][0]["roof"]["level"].is_null());
  EXPECT_FALSE(json["rows"][0].contains("quantiles"));
  EXPECT_TRUE(json["rows"][1]["roof"].is_null());
  EXPECT_EQ(json["rows"][1]["quantiles"].size(), 2u);
}

TEST(PrintRoofs, LeavesBlankWhatSomeThreadCountsLack) {
  std::ostringstream out;
  tool::PrintRoofs(out, {{.kind = "compute", .precision = "f32", .flops_per_s = 1e9},
                         {.kind = "read", .level = "memory", .bytes_per_s = 2e9},
                         {.kind = "compute", .precision = "f32", .flops_per_s = 3e9, .threads = 9},
                         {.kind = "read", .level = "L3", .bytes_per_s = 4e9, .threads = 9},
                         {.kind = "read", .level = "memory", .bytes_per_s = 5e9, .threads = 9}});
  EXPECT_NE(out.str().find("    threads        f32         L3     memory\n"
                           "          1        1.0                   2.0\n"
                           "          9        3.0        4.0        5.0\n"),
            std::string::npos)
      << out.str();
}

TEST(BenchTable, MarksRowsWhoseThreadsShareACore) {
  tool::ReportRow row;
  row.threads = 2;
  row.verified = true;
  const auto printed = [&](bool shares_core) {
    std::ostringstream out;
    tool::BenchTable(tool::BenchKind::kLayers).PrintRow(out, row, shares_core);
    return out.str();
  };
  EXPECT_EQ(printed(false).find('*'), std::string::npos);
  EXPECT_NE(printed(true).find(" *\n"), std::string::npos);
  row.verified = false;
  EXPECT_NE(printed(false).find("not checked"), std::string::npos);
  std::ostringstream head;
  tool::BenchTable(tool::BenchKind::kLayers).PrintHead(head);
  EXPECT_NE(head.str().find("*: the threads had less than their peak"), std::string::npos);
}

// A warning that holds for many rows is one line with their number; of few rows it names them.
TEST(BenchRoofs, OneNoteForAllRowsThatShareACore) {
  const auto note = [](int rows, size_t cores) {
    tool::BenchRoofs roofs;
    tool::ReportRow row;
    row.threads = 2;
    row.precision = "f32";
    for (int i = 0; i < rows; ++i) {
      row.workload = "load" + std::to_string(i);
      EXPECT_LT(roofs.Watch(row, {}, 1.0), tool::kLeastOfPeaks);  // 1 FLOP/s
    }
    row.workload = "free";
    EXPECT_GT(roofs.Watch(row, {}, 1e18), tool::kLeastOfPeaks);
    tool::Report report;
    report.machine.cores = cores;
    roofs.Finish(&report);
    EXPECT_EQ(report.noise.notes.size(), 1u);
    return report.noise.notes.at(0);
  };
  EXPECT_TRUE(note(39, 2).ends_with("shared a core or other work had it: 39 of 40 rows"))
      << note(39, 2);
  EXPECT_TRUE(note(2, 2).ends_with("had it: load0  f32 on , load1  f32 on ")) << note(2, 2);
  EXPECT_EQ(note(39, 1), "2 threads shared 1 core: 39 of 40 rows");
}

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
// Independent loops, of another shape: one stream of loads, and chains that go on by a product of
// two unknown numbers. Written out, since this test is compiled with -O1, as those are that have
// kernels of their own under foreach_target.
__attribute__((target("avx512f"), noinline)) uint64_t ReadAgain(const uint32_t* data,
                                                                size_t count) {
  __m512i s0 = _mm512_setzero_si512();
  __m512i s1 = _mm512_setzero_si512();
  __m512i s2 = _mm512_setzero_si512();
  __m512i s3 = _mm512_setzero_si512();
  __m512i s4 = _mm512_setzero_si512();
  __m512i s5 = _mm512_setzero_si512();
  __m512i s6 = _mm512_setzero_si512();
  __m512i s7 = _mm512_setzero_si512();
  for (size_t i = 0; i < count; i += 128) {
    s0 = _mm512_or_si512(s0, _mm512_load_si512(data + i + 0));
    s1 = _mm512_or_si512(s1, _mm512_load_si512(data + i + 16));
    s2 = _mm512_or_si512(s2, _mm512_load_si512(data + i + 32));
    s3 = _mm512_or_si512(s3, _mm512_load_si512(data + i + 48));
    s4 = _mm512_or_si512(s4, _mm512_load_si512(data + i + 64));
    s5 = _mm512_or_si512(s5, _mm512_load_si512(data + i + 80));
    s6 = _mm512_or_si512(s6, _mm512_load_si512(data + i + 96));
    s7 = _mm512_or_si512(s7, _mm512_load_si512(data + i + 112));
  }
  s0 = _mm512_or_si512(_mm512_or_si512(s0, s1), _mm512_or_si512(s2, s3));
  s4 = _mm512_or_si512(_mm512_or_si512(s4, s5), _mm512_or_si512(s6, s7));
  alignas(64) uint64_t words[8];
  _mm512_store_si512(words, _mm512_or_si512(s0, s4));
  return std::accumulate(words, words + 8, uint64_t{0}, std::bit_or<>());
}

__attribute__((target("avx512f"), noinline)) float MultiplyAgain(size_t rounds, const float* two) {
  const __m512 a = _mm512_set1_ps(two[0]);
  const __m512 b = _mm512_set1_ps(two[1]);
  __m512 s0 = _mm512_set1_ps(0.0f);
  __m512 s1 = _mm512_set1_ps(1.0f);
  __m512 s2 = _mm512_set1_ps(2.0f);
  __m512 s3 = _mm512_set1_ps(3.0f);
  __m512 s4 = _mm512_set1_ps(4.0f);
  __m512 s5 = _mm512_set1_ps(5.0f);
  __m512 s6 = _mm512_set1_ps(6.0f);
  __m512 s7 = _mm512_set1_ps(7.0f);
  __m512 s8 = _mm512_set1_ps(8.0f);
  __m512 s9 = _mm512_set1_ps(9.0f);
  __m512 s10 = _mm512_set1_ps(10.0f);
  __m512 s11 = _mm512_set1_ps(11.0f);
  for (size_t round = 0; round < rounds; ++round) {
    s0 = _mm512_fmadd_ps(s0, a, b);
    s1 = _mm512_fmadd_ps(s1, a, b);
    s2 = _mm512_fmadd_ps(s2, a, b);
    s3 = _mm512_fmadd_ps(s3, a, b);
    s4 = _mm512_fmadd_ps(s4, a, b);
    s5 = _mm512_fmadd_ps(s5, a, b);
    s6 = _mm512_fmadd_ps(s6, a, b);
    s7 = _mm512_fmadd_ps(s7, a, b);
    s8 = _mm512_fmadd_ps(s8, a, b);
    s9 = _mm512_fmadd_ps(s9, a, b);
    s10 = _mm512_fmadd_ps(s10, a, b);
    s11 = _mm512_fmadd_ps(s11, a, b);
  }
  s0 = _mm512_add_ps(_mm512_add_ps(_mm512_add_ps(s0, s1), _mm512_add_ps(s2, s3)),
                     _mm512_add_ps(_mm512_add_ps(s4, s5), _mm512_add_ps(s6, s7)));
  s8 = _mm512_add_ps(_mm512_add_ps(s8, s9), _mm512_add_ps(s10, s11));
  alignas(64) float sums[16];
  _mm512_store_ps(sums, _mm512_add_ps(s0, s8));
  return std::accumulate(sums, sums + 16, 0.0f);
}

bool Agree(double a, double b) { return a > 0.6 * b && a < 1.7 * b; }
constexpr int kMostTurns = 40;

// Prints how far they are apart; that machine must be quiet for it to be under 5 %. What fails is a
// loop that was optimised away, or that runs at half of the speed. On a busy machine, or beside a
// busy thread on the same core, it takes more turns until both had their share, and says nothing
// where this thread had less than 80 % of a core.
TEST(Roofs, AgreeWithLoopsOfThisTest) {
  const std::string target = ActiveTarget();
  if (!__builtin_cpu_supports("avx512f") || (!target.starts_with("AVX3") && target != "AMX")) {
    GTEST_SKIP() << "its loops need AVX-512, and are no match for others";
  }
  if (kSlow) GTEST_SKIP() << "its loops are watched or emulated";
  const double cpu_before = ProcessCpuMilliseconds();
  const auto begin = std::chrono::steady_clock::now();
  const auto has_a_core = [&] {
    const std::chrono::duration<double, std::milli> wall = std::chrono::steady_clock::now() - begin;
    return ProcessCpuMilliseconds() - cpu_before > 0.8 * wall.count();
  };
  const auto best_of = [](double work, const auto& run) {
    double best = 0;
    for (int i = 0; i < 50; ++i) best = std::max(best, work / SecondsOf(run));
    return best;
  };
  volatile uint64_t sink = 0;
  for (const ReadLevel& level : ReadLevels(1)) {
    const size_t bytes = std::min(level.bytes, size_t{128} << 20);
    ReadMeter meter = Taken(ReadMeter::Create(Executor::Inline(), bytes));
    const size_t count = bytes / sizeof(uint32_t) / 1024 * 1024;
    internal::AlignedBuffer<uint32_t> buffer;
    ASSERT_TRUE(buffer.Allocate(count));
    std::fill(buffer.data(), buffer.data() + count, 5u);
    const size_t rounds = 1 + (size_t{4} << 20) / bytes;
    double found = 0;
    double again = 0;
    for (int turn = 0; turn < 3 || (turn < kMostTurns && !Agree(found, again)); ++turn) {
      found = std::max(found, meter.Measure());
      again = std::max(again, best_of(static_cast<double>(4 * count * rounds), [&] {
                         for (size_t i = 0; i < rounds; ++i) {
                           sink = sink + ReadAgain(buffer.data(), count);
                         }
                       }));
    }
    std::printf("%-6s %6.1f GB/s, this test's loop %6.1f: %.3f\n", level.name.c_str(), found * 1e-9,
                again * 1e-9, found / again);
    if (!Agree(found, again) && !has_a_core()) GTEST_SKIP() << "the machine is busy";
    EXPECT_TRUE(Agree(found, again)) << level.name;
  }
  const float two[2] = {0.999f, 0.001f};
  PeakMeter meter(Executor::Inline());
  double found = 0;
  double again = 0;
  constexpr size_t kRounds = 20000;
  for (int turn = 0; turn < 3 || (turn < kMostTurns && !Agree(found, again)); ++turn) {
    found = std::max(found, meter.Measure());
    again = std::max(again, best_of(2.0 * 16 * 12 * kRounds, [&] {
                       sink = sink + static_cast<uint64_t>(MultiplyAgain(kRounds, two));
                     }));
  }
  std::printf("f32    %6.1f GFLOP/s, this test's loop %6.1f: %.3f\n", found * 1e-9, again * 1e-9,
              found / again);
  if (!Agree(found, again) && !has_a_core()) GTEST_SKIP() << "the machine is busy";
  EXPECT_TRUE(Agree(found, again));
}
#endif

}  // namespace
}  // namespace encore::bench
