// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a call of an operation of encore/ops.h, on views of any shape and strides: what
// cannot be is refused and nothing is written; else nothing but the output is written, and it has
// the bits of a plain computation.

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <string_view>

#include "reference/accuracy.h"
#include "reference/bounded.h"
#include "tests/fuzz/operations.h"
#include "tests/fuzz/target.h"

namespace encore::fuzz {
namespace {

// Of at most some hundred elements.
Shape DrawShape(Draw& draw, size_t least_rank) {
  const size_t rank = draw.Between(least_rank, draw.Chance(4) ? Shape::kMaxRank : 3);
  std::array<size_t, Shape::kMaxRank> extents{};
  size_t count = 1;
  for (size_t i = rank; i-- > 0;) {
    extents[i] = DrawExtent(draw, i + 1 == rank ? 20 : 4);
    if (count * extents[i] > 600) extents[i] = 1;
    count *= std::max<size_t>(extents[i], 1);
  }
  return *Shape::Create(extents.data(), rank);
}

// Where an operation of one input writes: apart from it, into the input itself, or, which it need
// not find out, into memory that they share.
class UnaryOutput {
 public:
  UnaryOutput(OperationDraw& run, DrawnInput& x) : out_(run.draw, x.view().shape()) {
    y_ = out_.view();
    if (x.folded() || !run.draw.Chance(4)) return;
    in_place_ = true;
    y_ = x.view();
  }
  const MutableView& view() const { return y_; }
  const DrawnOutput& apart() const { return out_; }
  void CheckRest() const {
    if (!in_place_) out_.CheckRest();
  }

 private:
  DrawnOutput out_;
  MutableView y_;
  bool in_place_ = false;
};

bool Within(std::span<const float> x, float most) {
  return std::all_of(x.begin(), x.end(), [=](float v) { return std::fabs(v) <= most; });
}

using Unary = Status (*)(ConstView, MutableView);
constexpr Unary kUnary[] = {Exp, Tanh, Relu, Gelu, GeluTanh, Silu};  // as in kAccuracies

void RunUnary(OperationDraw& run) {
  const size_t which = run.draw.Between(0, std::size(kUnary) - 1);
  DrawnInput x = run.Input(DrawShape(run.draw, 0));
  const UnaryOutput y(run, x);
  const std::vector<float> in = Dense(x.view());
  if (run.draw.Chance(8)) {
    const bool input = run.draw.Chance(2);
    return CheckRefused(
        kUnary[which](input ? Spoiled(run.draw, ConstView(x.view())) : x.view(),
                      input ? y.apart().view() : Spoiled(run.draw, y.apart().view())),
        y.apart());
  }
  CheckTaken(kUnary[which](x.view(), y.view()));
  y.CheckRest();
  const std::vector<float> got = Dense(y.view());
  const reference::Accuracy& accuracy = reference::kAccuracies[which];
  const double most = run.target.has_fma() ? accuracy.ulps : accuracy.ulps_no_fma;
  for (size_t i = 0; i < got.size(); ++i) {
    const double exact = accuracy.exact(static_cast<double>(in[i]));
    const double error = reference::UlpError(got[i], exact);
    ENCORE_FUZZ_CHECK(error <= most, std::string(accuracy.name) + " of " + Exactly(in[i]) + " is " +
                                         Exactly(got[i]) + ", " + std::to_string(error) +
                                         " ulp off, on " + run.target.name());
  }
  if (!run.draw.Chance(4)) return;
  run.target.UseTwin(run.draw);
  std::vector<float> dense(in.size());
  const Shape shape(in.size());
  CheckTaken(kUnary[which]({in.data(), shape}, {dense.data(), shape}));
  CheckSame(got, dense, accuracy.name.data());
}

void RunAdd(OperationDraw& run) {
  const Shape shape = DrawShape(run.draw, 0);
  DrawnInput a = run.Input(shape);
  const DrawnInput b = run.Input(shape);
  const UnaryOutput c(run, a);
  const std::vector<float> left = Dense(a.view());
  const std::vector<float> right = Dense(b.view());
  if (run.draw.Chance(8)) {
    const bool first = run.draw.Chance(2);
    return CheckRefused(
        Add(first ? Spoiled(run.draw, ConstView(a.view())) : a.view(),
            first ? b.view() : Spoiled(run.draw, ConstView(b.view())), c.apart().view()),
        c.apart());
  }
  CheckTaken(Add(a.view(), b.view(), c.view()));
  c.CheckRest();
  std::vector<float> want(left.size());
  std::transform(left.begin(), left.end(), right.begin(), want.begin(), std::plus<>());
  CheckSame(Dense(c.view()), want, "add");
}

// Into memory that overlaps the input in some way: whether it is refused or not, nothing beside is
// touched.
void RunOverlap(OperationDraw& run) {
  const size_t rows = run.draw.Between(1, 9);
  const size_t cols = run.draw.Between(1, 40);
  const size_t shift = run.draw.Between(0, rows * cols);
  std::vector<float> memory(2 * rows * cols);
  run.source.Fill(memory, run.kind);
  const ConstView x(memory.data(), {rows, cols});
  MutableView y(memory.data() + shift, {rows, cols});
  if (run.draw.Chance(3)) {
    const auto step = static_cast<ptrdiff_t>(rows);
    y = MutableView(memory.data() + shift, {rows, cols}, {1, step});
  }
  const ConstView bias = {};
  Status status;
  switch (run.draw.Between(0, 4)) {
    case 0:
      status = kUnary[run.draw.Between(0, std::size(kUnary) - 1)](x, y);
      break;
    case 1:
      status = Softmax(x, y);
      break;
    case 2:
      status = LayerNorm(x, bias, bias, 1e-5, y);
      break;
    case 3:
      status = MatMul(x, ConstView(memory.data(), {cols, cols}, {0, 1}), y);
      break;
    default:
      status = Attention(x, x, x, y);
      break;
  }
  if (!status.ok()) CheckError(status);
}

enum class RowOperation : uint8_t { kSoftmax, kLayerNorm, kRmsNorm };

struct RowParameters {
  RowOperation operation;
  double epsilon;
};

Status CallRows(const RowParameters& p, const ConstView& x, const ConstView& weight,
                const ConstView& bias, const MutableView& y) {
  switch (p.operation) {
    case RowOperation::kSoftmax:
      return Softmax(x, y);
    case RowOperation::kLayerNorm:
      return LayerNorm(x, weight, bias, p.epsilon, y);
    default:
      return RmsNorm(x, weight, p.epsilon, y);
  }
}

// Whether squares may vanish in a row, for which norms promise nothing: at an s^2 below n 2^-126.
bool MayVanish(const RowParameters& p, std::span<const float> row) {
  const double n = static_cast<double>(row.size());
  double mean = 0;
  double square = 0;
  for (const float v : row) mean += p.operation == RowOperation::kLayerNorm ? v / n : 0;
  for (const float v : row) square += (v - mean) * (v - mean) / n;
  return square + p.epsilon < n * 0x1p-126;
}

// Against the documented bounds; one row [1, n] of x.
void CheckRow(const RowParameters& p, const ConstView& x, const ConstView& weight,
              const ConstView& bias, std::span<const float> got) {
  const std::span<const float> row(x.data(), x.dim(1));
  if (p.operation == RowOperation::kSoftmax) {
    return CheckBound(got, reference::BoundedSoftmax(x), "softmax");
  }
  const bool constant = std::all_of(row.begin(), row.end(), [&](float v) { return v == row[0]; });
  if (constant && p.operation == RowOperation::kLayerNorm) {
    const std::vector<float> zeros(row.size());
    return CheckSame(got, bias.empty() ? zeros : Dense(bias), "layer_norm of a constant row");
  }
  if (p.epsilon > 1 || MayVanish(p, row)) return;
  if (p.operation == RowOperation::kRmsNorm) {
    return CheckBound(got, reference::BoundedRmsNorm(x, weight, p.epsilon), "rms_norm");
  }
  CheckBound(got, reference::BoundedLayerNorm(x, weight, bias, p.epsilon), "layer_norm");
}

void RunRows(OperationDraw& run) {
  constexpr double kEpsilons[] = {1e-5, 1e-12, 0, 1e-45, 1e30, 1e300};
  const RowParameters p{static_cast<RowOperation>(run.draw.Between(0, 2)),
                        kEpsilons[run.draw.Chance(2) ? 0 : run.draw.Between(0, 5)]};
  const Shape shape = DrawShape(run.draw, 1);
  const size_t n = shape[shape.rank() - 1];
  DrawnInput x = run.Input(shape);
  const UnaryOutput y(run, x);
  const DrawnInput weight = run.Input(Shape(n), Numbers::kTame);
  const DrawnInput bias = run.Input(Shape(n), Numbers::kTame);
  const ConstView w = run.draw.Chance(2) ? ConstView(weight.view()) : ConstView();
  const ConstView b = run.draw.Chance(2) ? ConstView(bias.view()) : ConstView();
  const std::vector<float> in = Dense(x.view());
  if (run.draw.Chance(8)) {
    const RowParameters bad{p.operation, run.draw.Chance(2) ? -1 : reference::kInfinity};
    const bool epsilon = p.operation != RowOperation::kSoftmax && run.draw.Chance(4);
    return CheckRefused(
        CallRows(epsilon ? bad : p, epsilon ? x.view() : Spoiled(run.draw, ConstView(x.view())), w,
                 b, y.apart().view()),
        y.apart());
  }
  CheckTaken(CallRows(p, x.view(), w, b, y.view()));
  y.CheckRest();
  const std::vector<float> got = Dense(y.view());
  if (got.empty()) return;
  // As rows of one dense matrix, on a target with the same bits.
  run.target.UseTwin(run.draw);
  const Shape matrix(in.size() / n, n);
  const std::vector<float> dense_w = w.empty() ? std::vector<float>() : Dense(w);
  const std::vector<float> dense_b = b.empty() ? std::vector<float>() : Dense(b);
  const ConstView one_w = w.empty() ? w : ConstView(dense_w.data(), Shape(n));
  const ConstView one_b = b.empty() ? b : ConstView(dense_b.data(), Shape(n));
  const ConstView rows(in.data(), matrix);
  std::vector<float> dense(in.size());
  CheckTaken(CallRows(p, rows, one_w, one_b, {dense.data(), matrix}));
  CheckSame(got, dense, "rows");
  const float most = p.operation == RowOperation::kSoftmax ? 3.4e38f : 1e15f;
  if (!run.target.has_fma() || !Within(in, most)) return;
  for (size_t i = 0; i < in.size(); i += n) {
    CheckRow(p, ConstView(in.data() + i, {1, n}), one_w, one_b, std::span(got).subspan(i, n));
  }
}

// One chain of multiply-adds for each element, beginning at the bias.
std::vector<float> ChainProduct(bool fma, std::span<const float> a, const ConstView& b,
                                const ConstView& bias) {
  const size_t k = b.dim(0);
  const size_t n = b.dim(1);
  const size_t m = k == 0 ? 0 : a.size() / k;
  std::vector<float> c;
  for (size_t i = 0; i < m; ++i) {
    for (size_t j = 0; j < n; ++j) {
      float sum = bias.empty() ? 0 : bias(j);
      for (size_t at = 0; at < k; ++at) sum = MulAdd(fma, a[i * k + at], b(at, j), sum);
      c.push_back(sum);
    }
  }
  return c;
}

void RunMatMul(OperationDraw& run) {
  Draw& draw = run.draw;
  const size_t m = DrawExtent(draw, 8);
  const size_t k = DrawExtent(draw, 12);
  const size_t n = DrawExtent(draw, 20);
  const bool packed = draw.Chance(3);
  const bool transposed = packed || draw.Chance(2);
  const DrawnInput a = run.Input(Shape(m, k));
  const DrawnInput b = run.Input(transposed ? Shape(n, k) : Shape(k, n));
  const DrawnInput biases = run.Input(Shape(n));
  const ConstView bias = draw.Chance(2) ? ConstView(biases.view()) : ConstView();
  const DrawnOutput c(draw, Shape(m, n));
  const MatMulOptions options{.transpose_b = transposed ? Transpose::kYes : Transpose::kNo,
                              .bias = bias,
                              .executor = DrawExecutor(draw)};
  std::optional<PackedLinear> linear;
  if (packed) {
    const Result<PackedLinear> made = PackedLinear::Create(b.view(), bias);
    CheckTaken(made.status());
    linear = *made;
  }
  const auto call = [&](const ConstView& left, const MutableView& out) {
    return packed ? linear->Apply(left, out, options.executor)
                  : MatMul(left, b.view(), out, options);
  };
  if (draw.Chance(8)) {
    const bool input = draw.Chance(2);
    return CheckRefused(call(input ? Spoiled(draw, ConstView(a.view())) : a.view(),
                             input ? c.view() : Spoiled(draw, c.view())),
                        c);
  }
  if (!packed && draw.Chance(16)) {
    return CheckRefused(MatMul(a.view(), Spoiled(draw, ConstView(b.view())), c.view(), options), c);
  }
  CheckTaken(call(a.view(), c.view()));
  c.CheckRest();
  if (k == 0) return;
  const ConstView columns = transposed ? ConstView(b.view()).Transposed() : ConstView(b.view());
  CheckSame(Dense(c.view()), ChainProduct(run.target.has_fma(), Dense(a.view()), columns, bias),
            "matmul");
}

}  // namespace

void RunOperations(std::string_view input) {
  Draw draw(input);
  const size_t kind = draw.Between(0, 11);
  const DrawnTarget target(draw);
  OperationDraw run{draw, target, NumberSource(draw.Seed()), DrawNumbers(draw)};
  if (kind < 2) return RunUnary(run);
  if (kind == 2) return RunAdd(run);
  if (kind == 3) return RunOverlap(run);
  if (kind < 7) return RunRows(run);
  if (kind < 9) return RunMatMul(run);
  if (kind < 11) return RunAttention(run);
  RunMultiHeadAttention(run);
}

}  // namespace encore::fuzz
