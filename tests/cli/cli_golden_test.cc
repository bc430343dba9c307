// SPDX-License-Identifier: Apache-2.0
//
// `encore run` on every golden file of tests/data/golden (made by PyTorch in float64), on every
// SIMD target this machine has.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "encore/cpu.h"
#include "encore/safetensors.h"
#include "nlohmann/json.hpp"
#include "tests/cli/cli_runner.h"

namespace encore {
namespace {

// Of the largest magnitude of the tensor; PyTorch itself is at 4e-7 in f32.
constexpr double kGoldenTolerance = 1e-6;

class CliGoldenTest : public CliTest, public testing::WithParamInterface<std::string> {};

// Largest |found - expected| over the largest |expected|; NaN if any is, infinity if shapes differ.
double RelativeError(const SafetensorsFile& found, const SafetensorsFile& expected,
                     const std::string& name) {
  const Result<Tensor> f = found.Read(name);
  const Result<Tensor> e = expected.Read(name);
  if (!f.ok() || !e.ok() || f->shape() != e->shape() || f->dtype() != DType::kF32 ||
      e->dtype() != DType::kF64) {
    return HUGE_VAL;
  }
  const auto* values = static_cast<const float*>(f->data());
  const auto* wanted = static_cast<const double*>(e->data());
  double error = 0;
  double largest = 0;
  for (size_t i = 0; i < e->size_bytes() / sizeof(double); ++i) {
    const double here = std::fabs(static_cast<double>(values[i]) - wanted[i]);
    if (std::isnan(here)) return here;
    error = std::max(error, here);
    largest = std::max(largest, std::fabs(wanted[i]));
  }
  return error / largest;
}

TEST_P(CliGoldenTest, RunReproducesPyTorch) {
  const std::string golden = ENCORE_TEST_DATA_DIR "/golden/";
  const nlohmann::json manifest = nlohmann::json::parse(ReadFile(golden + "manifest.json"));
  const nlohmann::json& cases = manifest["cases"];
  ASSERT_GE(cases.size(), 30u);
  double worst = 0;
  for (const auto& [name, about] : cases.items()) {
    SCOPED_TRACE(name);
    const std::string output = Path(name + ".safetensors");
    std::vector<std::string> arguments = {"run",
                                          "--weights",
                                          golden + name + ".weights.safetensors",
                                          "--input",
                                          golden + name + ".input.safetensors",
                                          "--output",
                                          output,
                                          "--target",
                                          GetParam()};
    for (const auto& argument : about["arguments"]) arguments.push_back(argument);
    const CliResult result = Encore(arguments);
    ASSERT_EQ(result.status, 0) << result.err;
    EXPECT_NE(result.out.find("with " + GetParam() + ","), std::string::npos) << result.out;

    const Result<SafetensorsFile> found = SafetensorsFile::Open(output);
    const Result<SafetensorsFile> expected =
        SafetensorsFile::Open(golden + name + ".expected.safetensors");
    ASSERT_TRUE(found.ok()) << found.status().message();
    ASSERT_TRUE(expected.ok()) << expected.status().message();
    EXPECT_EQ(found->tensors().size(), expected->tensors().size());
    double worst_here = 0;
    for (const SafetensorsEntry& entry : expected->tensors()) {
      const double error = RelativeError(*found, *expected, entry.name);
      EXPECT_LE(error, kGoldenTolerance) << entry.name;
      if (!(error <= worst_here)) worst_here = error;
    }
    std::printf("%-22s largest error %.1e of the largest value\n", name.c_str(), worst_here);
    if (!(worst_here <= worst)) worst = worst_here;
  }
  std::printf("%s: worst of %zu cases %.1e, allowed %.0e\n", GetParam().c_str(), cases.size(),
              worst, kGoldenTolerance);
}

INSTANTIATE_TEST_SUITE_P(Targets, CliGoldenTest, testing::ValuesIn(SupportedTargets()),
                         [](const auto& target) { return target.param; });

}  // namespace
}  // namespace encore
