// SPDX-License-Identifier: Apache-2.0
//
// Runs a model with and without taps, and compares all of it with the reference.

#include "tests/support/check_model.h"

#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "reference/encoder.h"
#include "tests/support/compare.h"
#include "tests/support/guarded.h"
#include "tests/support/near_rounded.h"
#include "tests/support/output_rows.h"
#include "tests/support/targets.h"

namespace encore {

void CheckModel(const EncoderModel& model, const std::vector<size_t>& lengths, double* worst,
                const AttentionMask& mask, float scale) {
  const EncoderConfig& config = model.config();
  const size_t d = config.d_model;
  const std::vector<size_t> starts = Starts(lengths);
  const std::vector<float> x = RandomFloats(starts.back() * d, 99, scale);
  std::vector<reference::EncoderResult<reference::Rounded>> want;
  for (size_t b = 0; b < lengths.size(); ++b) {
    const ConstView sequence(x.data() + starts[b] * d, Shape(lengths[b], d));
    want.push_back(reference::Encode<reference::Rounded>(config, model.weights(), sequence, mask));
  }
  ForEachTarget([&](const std::string& target) {
    const Encoder encoder = model.Make();
    ASSERT_EQ(encoder.target(), target);
    const Batch batch{.seq_starts = starts, .mask = mask};
    const std::vector<float> y = Forward(encoder, batch, x);

    // With taps, the same bits and the tapped values.
    std::vector<std::unique_ptr<Guarded>> outputs;
    std::vector<MutableView> attention, hidden;
    for (size_t layer = 0; layer < config.num_layers(); ++layer) {
      for (const size_t length : lengths) {
        outputs.push_back(
            std::make_unique<Guarded>(Shape(config.layers[layer].num_heads, length, length)));
        attention.push_back(outputs.back()->view());
      }
      outputs.push_back(std::make_unique<Guarded>(
          Shape(starts.back(), d), Guarded::Strides{static_cast<ptrdiff_t>(d) + 2, 1}));
      hidden.push_back(outputs.back()->view());
    }
    ASSERT_TRUE(SameBits(Forward(encoder, batch, x, {}, {attention, hidden}), y))
        << "taps change bits";
    for (const auto& output : outputs) ASSERT_TRUE(output->Intact());

    const Workspace workspace = *encoder.MakeWorkspace(batch);
    std::vector<float> in_place = x;
    const MutableView rows_in_place(in_place.data(), Shape(starts.back(), d));
    ASSERT_TRUE(encoder.Forward(batch, rows_in_place, rows_in_place, workspace).ok());
    ASSERT_TRUE(SameBits(in_place, y)) << "in place";
    ASSERT_TRUE(SameOutputRows(encoder, batch, x, y));

    for (size_t b = 0; b < lengths.size(); ++b) {
      const auto rows = [&](const MutableView& all) {
        return Elements(ConstView(all.data() + static_cast<ptrdiff_t>(starts[b]) * all.stride(0),
                                  Shape(lengths[b], d), all.strides()));
      };
      ASSERT_TRUE(NearRounded({y.data() + starts[b] * d, lengths[b] * d}, want[b].y, worst))
          << "sequence " << b;
      for (size_t layer = 0; layer < config.num_layers(); ++layer) {
        ASSERT_TRUE(NearRounded(rows(hidden[layer]), want[b].hidden[layer], worst))
            << "hidden states of layer " << layer << ", sequence " << b;
        for (size_t h = 0; h < config.layers[layer].num_heads; ++h) {
          ASSERT_TRUE(NearRounded(Elements(attention[layer * lengths.size() + b][h]),
                                  want[b].attention[layer][h], worst))
              << "attention of layer " << layer << ", sequence " << b << ", head " << h;
        }
      }
    }
  });
}

}  // namespace encore
