// SPDX-License-Identifier: Apache-2.0
//
// The transformer encoder: one layer or a stack of them, over a batch of packed sequences.
// layer.h says what a layer computes; torch_weights.h reads weights from a file.
//
// Accuracy: each operation keeps its bound of ops.h; the activation is right to 0.9 ulp of its
// argument (1.2 on targets without FMA) rather than of its result. A worst-case bound for a whole
// layer is 10^6 times the observed error, so a statistical one is stated: take the roundings as
// independent errors of mean zero (Higham & Mary 2019, doi:10.1137/18M1226312), each with a
// standard deviation of 2^-24 of its result, and carry them through the operations that follow to
// first order. They give each element of y a standard deviation. y is within 8 of them for weights
// and inputs that are drawn at random, which the tests hold on every target. Where rows of weights
// are equal or multiples of each other their errors are so too and add up, which the statistics do
// not know. With weights of equal rows, an error of 131 standard deviations was seen.

#ifndef ENCORE_ENCODER_H_
#define ENCORE_ENCODER_H_

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "encore/executor.h"
#include "encore/export.h"
#include "encore/layer.h"
#include "encore/ops.h"
#include "encore/precision.h"
#include "encore/status.h"
#include "encore/tensor.h"
#include "encore/workspace.h"

namespace encore::inline v0_1 {

namespace internal {
struct EncoderAccess;
}

// d_model and the layers, first to last. A stack of equal layers:
//   EncoderConfig::Uniform(768, 12, {.num_heads = 12, .d_ff = 3072, .activation =
//   Activation::kGelu})
struct EncoderConfig {
  size_t d_model = 0;                                 // width of a token's vector
  std::vector<LayerConfig> layers = {};               // at least one
  NormConfig final_norm = {.type = NormType::kNone};  // after the last layer

  static EncoderConfig Uniform(size_t d_model, size_t num_layers, const LayerConfig& layer,
                               const NormConfig& final_norm = {.type = NormType::kNone}) {
    return {d_model, std::vector<LayerConfig>(num_layers, layer), final_norm};
  }
  size_t num_layers() const { return layers.size(); }
};

// A linear layer, y = x weight^T + bias, as torch.nn.Linear has it: views of the caller's numbers.
struct LinearWeights {
  WeightView weight = {};  // [outputs, inputs]; floats, or I8 with `scale`
  WeightView bias = {};    // [outputs], or empty for 0
  // Of an I8 weight, else empty: an element is the integer times its row's scale, which is finite
  // and above 0. With kInt8 such a weight is packed as it is; with others as these products.
  WeightView scale = {};  // [outputs]
  // Smoothing of the input (arXiv:2211.10438), finite and above 0, or empty. Only kInt8 and kInt4
  // need it: inputs are divided by these, and columns of the weight multiplied. A weight of floats
  // is given without, and is multiplied when it is packed for these; in an I8 weight the factor is
  // there already, and kF32 and kBF16 divide by it. Where it is empty, Create finds its own for a
  // weight of floats, and an I8 weight has none.
  WeightView input_scale = {};  // [inputs]
};

// y = normalized x * weight + bias.
struct NormWeights {
  WeightView weight = {};  // [width], or empty for 1
  WeightView bias = {};    // [width], or empty for 0
};

// Views of the caller's weights, needed only during Encoder::Create, which reads them in place. H =
// num_heads, G = num_kv_heads, D = head size; shapes are those of `weight`. What the layer has no
// use for must be empty.
struct EncoderLayerWeights {
  // q, k, v in one matrix, rows of q first, or three. All three have one input, whose scale is
  // in_proj.input_scale in either case.
  LinearWeights in_proj = {};  // [(H + 2 G) D, d_model]
  LinearWeights q_proj = {};   // [H D, d_model]
  LinearWeights k_proj = {};   // [G D, d_model]
  LinearWeights v_proj = {};   // [G D, d_model]
  // With qk_norm.
  NormWeights q_norm = {};  // [D]
  NormWeights k_norm = {};  // [D]
  // With buckets: the table of the biases. Layers may share one: then give the same view.
  WeightView position_bias = {};  // [num_buckets, H]
  // With relative: its table and the norm of the table's rows, which layers may share as well.
  WeightView relative_embeddings = {};  // [2 span, d_model]
  NormWeights relative_norm = {};       // [d_model]
  // With relative and own_projections, of floats: with position_to_content, with
  // content_to_position.
  LinearWeights pos_q_proj = {};  // [H D, d_model]
  LinearWeights pos_k_proj = {};  // [G D, d_model]
  LinearWeights out_proj = {};    // [d_model, H D]
  // LayerScale (arXiv:2103.17239), or empty: multiplies what attention and the feed-forward network
  // add to x. Folded into weights. Not with NormPlacement::kBoth.
  WeightView layer_scale1 = {};  // [d_model]
  WeightView layer_scale2 = {};  // [d_model]
  // The first matrix of the feed-forward network; where gated both halves in one matrix, or two.
  // The scale of their input is linear1.input_scale in either case.
  LinearWeights linear1 = {};    // [d_ff, d_model], or [2 d_ff, d_model] where gated
  LinearWeights gate_proj = {};  // [d_ff, d_model]: the activated half
  LinearWeights up_proj = {};    // [d_ff, d_model]: the other
  LinearWeights linear2 = {};    // [d_model, d_ff]
  // With experts, E = num_experts, in the place of these matrices: those of all experts, one under
  // another. Of floats. Each expert's second matrix is transposed: a row is what an element of the
  // inner width adds to y.
  WeightView router = {};          // [E, d_model]
  WeightView experts_first = {};   // [E d_ff, d_model]
  WeightView experts_second = {};  // [E d_ff, d_model]
  WeightView experts_bias = {};    // [d_model], or empty for 0
  // With layer_input, of floats.
  LinearWeights input_proj = {};     // [width, d_model]
  NormWeights input_norm = {};       // [width]
  LinearWeights input_gate = {};     // [width, d_model]
  LinearWeights input_output = {};   // [d_model, width]
  NormWeights post_input_norm = {};  // [d_model]
  WeightView layer_scalar = {};      // [1], or empty for 1
  // With convolution, of floats.
  LinearWeights convolution = {};     // [d_model, d_model kernel]
  NormWeights convolution_norm = {};  // [d_model]
  // Norms of attention (1) and of the feed-forward network (2).
  NormWeights norm1 = {};  // [d_model]
  NormWeights norm2 = {};  // [d_model]
  // With NormPlacement::kBoth.
  NormWeights post_norm1 = {};  // [d_model]
  NormWeights post_norm2 = {};  // [d_model]
};

struct EncoderWeights {
  std::vector<EncoderLayerWeights> layers = {};  // as many as the configuration has
  NormWeights norm = {};                         // [d_model], with a final norm only
};

// Where sequences start: one entry a sequence, plus the end. A view of the caller's numbers, or a
// copy of a list: {0, 3, 8} are two sequences of 3 and 5 tokens.
class SequenceStarts {
 public:
  SequenceStarts() = default;
  SequenceStarts(std::span<const size_t> starts)  // NOLINT(google-explicit-constructor)
      : starts_(starts) {}
  SequenceStarts(const std::vector<size_t>& starts)  // NOLINT(google-explicit-constructor)
      : starts_(starts) {}
  SequenceStarts(std::vector<size_t>&&) = delete;        // it ends before the batch
  SequenceStarts(const std::vector<size_t>&&) = delete;  // likewise
  // Allocates.
  SequenceStarts(std::initializer_list<size_t> starts) : list_(starts) {}

  std::span<const size_t> get() const { return list_.empty() ? starts_ : list_; }
  operator std::span<const size_t>() const { return get(); }  // NOLINT(google-explicit-constructor)
  bool empty() const { return get().empty(); }
  size_t size() const { return get().size(); }
  size_t operator[](size_t i) const { return get()[i]; }
  size_t back() const { return get().back(); }

 private:
  std::span<const size_t> starts_;
  std::vector<size_t> list_;
};

// A view of the caller's numbers, one for each token; or none. From what a std::span<const size_t>
// can be made of, but not from a vector or an array that ends before the batch.
class TokenPositions : public std::span<const size_t> {
 public:
  TokenPositions() = default;
  TokenPositions(const size_t* positions, size_t count)
      : std::span<const size_t>(positions, count) {}
  template <typename Range>
  requires(std::convertible_to<Range, std::span<const size_t>>&& std::ranges::borrowed_range<Range>)
      // NOLINTNEXTLINE(google-explicit-constructor,bugprone-forwarding-reference-overload)
      TokenPositions(Range&& positions)
      : std::span<const size_t>(std::forward<Range>(positions)) {}
};

// A batch of sequences packed one after another: sequence b owns rows seq_starts[b] .. seq_starts[b
// + 1] - 1 of x and y. There is no padding. seq_starts[0] is 0, the last entry is the number of
// tokens, entries never decrease; a sequence may be empty.
struct Batch {
  SequenceStarts seq_starts = {};
  // Shared by all sequences: [S, S], or additive [H, S, S] with a matrix for each head; token i of
  // a sequence is row and column i of it (or positions[row], where given). S must exceed all of
  // these.
  AttentionMask mask = {};
  // Row and column of the mask for each token, [tokens]; empty: a token's index in its sequence.
  // They have no part in causality, windows, and positions of the configuration, which go by the
  // order of rows.
  TokenPositions positions = {};
};

// At most so many tokens, in at most so many sequences.
struct BatchLimits {
  size_t tokens = 0;
  size_t sequences = 1;
};

// What to copy out on the way; any view may be empty, and empty spans ask for nothing. Taps change
// no bit of y.
struct Taps {
  // Attention weights: entry [layer * sequences + b] is [num_heads, S_b, S_b].
  std::span<const MutableView> attention = {};
  // Entry [layer] is [tokens, d_model]: the output of that layer, before any final norm.
  std::span<const MutableView> hidden = {};
};

// Which rows of each sequence: its first token's (CLS), its last token's, or all.
enum class OutputRows : uint8_t { kFirst = 0, kLast = 1, kAll = 2 };

// Where packed weights are kept for the next process. A file in `folder` has them for one model,
// SIMD target, precision and choice of kernels. It is mapped: an encoder is made without packing,
// and all processes with it share one copy in memory.
//
// Nothing of a file is trusted. Sizes and offsets are computed, never read. At each opening:
// - its length, a description of every matrix and its kernel, and checksums of 64 bits of all its
//   bytes must be right, which takes as long as reading them. They find damage, not intent: who can
//   write to the folder as this user or as root can change results, but make nothing crash, unless
//   the file is shortened in place during a call (SIGBUS);
// - one panel of each matrix is packed anew and compared, or all of them where `identity` is
//   another one or empty, and with `compare`, which takes as long as packing.
// A file that differs is replaced, and Encoder::cache_use() says so. So is a symbolic link: it is
// never followed. A file of another user than this one and root is not opened, and stays, as do
// folders, pipes and devices. Only its owner may write to a file that is made here. A mapped file
// that is renamed over or removed stays as it is; one that was changed in place since it was opened
// is found before a call (kIo).
//
// Files appear whole or not at all, and any number of processes may open and write at once. A file
// that cannot be written is told by Encoder::cache_use(), and is no error. Old files are nobody's:
// remove them when you like. Layers with relative embeddings have no file. Results have the same
// bits with and without a cache. Only a forward pass may take some percent longer, where the system
// gives files no large pages.
struct PackedCache {
  std::string folder = {};    // made if it is not there; empty: no cache
  std::string model = {};     // tells models in one folder apart: the path of the weights, say
  std::string identity = {};  // of weights and configuration: another one when they change. Empty:
                              // not known. For files see SafetensorsFile::identity()
  bool compare = false;       // all panels, whatever the identity
  bool trust = false;         // panels are in no checksum: nothing but the panels compared is read
};

// How an encoder is made. Thread-safe to share.
struct EncoderOptions {
  Precision precision = Precision::kF32;
  // Whose threads pack the weights.
  Executor executor = {};
  // Called once after each layer, by one of these threads: its matrices will not be read again, so
  // that a file may give their pages back (see SafetensorsFile::ReleasePages). Must not throw. With
  // `cache` they are read several times, and it is called after each.
  std::function<void()> layer_packed = {};
  // Of kInt8 and kInt4: matrices that are computed as in kBF16 instead.
  std::vector<MatrixOfLayer> keep = {};
  // Of kBF16, and of what integers leave in bf16 (attention, `keep`): where the active target is
  // AMX, multiply by its bf16 instruction, which is several times as fast. It adds products in
  // another order, so that results have other bits than on machines without it, and are about as
  // exact. All else that is promised holds. No effect elsewhere.
  bool amx_bf16 = false;
  PackedCache cache = {};
};

// An encoder with its weights packed for the SIMD target that was active at creation. Immutable:
// any number of threads may call Forward at once, with a workspace each. Copying shares the packed
// weights.
class ENCORE_API Encoder {
 public:
  // Validates the configuration and every shape, packs the weights with the executor's threads,
  // once: afterwards they are held in that form alone, and the first Forward is as fast as any.
  // Weights are read where they lie, a few rows at a time: there is no second copy of them.
  // kInvalidArgument names the switch or tensor, what was found and what was wanted; kOutOfMemory.
  static Result<Encoder> Create(const EncoderConfig& config, const EncoderWeights& weights,
                                const EncoderOptions& options = {});

  // As given, with the defaults that depend on other fields filled in (num_kv_heads, head_size,
  // attention_scale, rotary size and inverse frequencies, ALiBi's slopes).
  // An Encoder that was moved from has no layers, "" and 0 here, and its calls are
  // kInvalidArgument.
  const EncoderConfig& config() const&;
  const EncoderConfig& config() const&& = delete;  // it may end with the temporary
  // The SIMD target it computes with, e.g. "AVX2".
  std::string_view target() const;
  Precision precision() const;
  // Whether it multiplies bf16 by AMX (EncoderOptions::amx_bf16).
  bool amx_bf16() const;
  // The memory of all layers' matrices as they are packed, in bytes: nearly all that an encoder
  // holds. int4's scales of groups are among it; biases, norms and int8's scales are not. Copies of
  // an encoder share it.
  size_t packed_bytes() const;

  // What became of EncoderOptions::cache: "mapped", "packed and written", "packed, not written:
  // ..." and the like; "" without one.
  std::string cache_use() const;

  // A workspace for this batch, or for any batch within the limits, on an executor of at most as
  // many threads. kInvalidArgument if the size overflows; kOutOfMemory.
  Result<Workspace> MakeWorkspace(const Batch& batch, const Executor& executor = {}) const;
  Result<Workspace> MakeWorkspace(const BatchLimits& limits, const Executor& executor = {}) const;
  // Its size in bytes, for Workspace::Wrap, Create and Reserve. Linear in tokens + 16 sequences, as
  // each sequence's keys and values fill blocks of 16 tokens: very many sequences of one token each
  // are better off in several calls. Threads add to it as far as the batch has work for them: room
  // for blocks of at most 128 rows each, of 1.25 times the tokens together, and for as many tasks
  // of attention at a time as there are heads and blocks of 64 queries.
  Result<size_t> WorkspaceBytes(const Batch& batch, const Executor& executor = {}) const;
  Result<size_t> WorkspaceBytes(const BatchLimits& limits, int threads) const;

  // y = encoder(x). x and y are [tokens, d_model] with contiguous rows (stride 1 along d_model); y
  // may be x itself, else they must not overlap. Allocates nothing on success (OpenMP's runtime
  // may, when it starts threads), and takes at most 96 KiB of each thread's stack. Each sequence's
  // bits depend on that sequence alone (and the mask): not on the other sequences, its place, the
  // executor or the number of threads. kInvalidArgument names seq_starts, the mask, x, y, a tap or
  // the workspace, what was found and what was wanted; nothing is written then.
  Status Forward(const Batch& batch, ConstView x, MutableView y, const Workspace& workspace,
                 const Executor& executor = {}, const Taps& taps = {}) const;

  // One row of each sequence: row b of y [sequences, d_model] has the bits of that row of sequence
  // b in Forward's y, the final norm included. The last layer computes all keys and values, but
  // queries, attention and all that follows for these rows only: of 12 equal layers it saves some 7
  // percent of the time. x [tokens, d_model] is the input and is overwritten: earlier layers run in
  // place. x and y have contiguous rows that do not overlap. Where taps want anything of the last
  // layer, it computes all rows. Workspaces, threads and the rest are as in Forward; a sequence
  // without a token is kInvalidArgument. With kAll it is Forward, and y may be x.
  Status ForwardRows(const Batch& batch, OutputRows rows, MutableView x, MutableView y,
                     const Workspace& workspace, const Executor& executor = {},
                     const Taps& taps = {}) const;

 private:
  friend struct internal::EncoderAccess;
  struct Impl;
  explicit Encoder(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<const Impl> impl_;
};

// Turns [B, S, D] with a key-padding mask, holes included, into a packed batch and back. A padding
// token is left out altogether: no key, no query, and zeros in the output. Immutable: any number of
// threads may use it at once.
class ENCORE_API PaddedBatch {
 public:
  // key_padding_mask [B, S], true = padding, as PyTorch's src_key_padding_mask; or empty for none.
  // kInvalidArgument if it has another shape or B S overflows; kOutOfMemory.
  static Result<PaddedBatch> Create(size_t batch, size_t seq,
                                    TensorView<const bool> key_padding_mask = {});
  // attention_mask [B, S] as Hugging Face tokenizers give it: 1 = token, 0 = padding. Any other
  // number, or a list of another size, is kInvalidArgument.
  static Result<PaddedBatch> FromAttentionMask(TensorView<const int64_t> attention_mask);
  static Result<PaddedBatch> FromAttentionMask(size_t batch, size_t seq,
                                               const std::vector<bool>& attention_mask);

  size_t tokens() const { return rows_.size(); }
  size_t sequences() const { return starts_.empty() ? 0 : starts_.size() - 1; }
  // Valid as long as this object lives. The mask's rows and columns are those of the padded
  // sequence, [S, S].
  Batch batch(const AttentionMask& mask = {}) const& { return Batch{starts_, mask, positions_}; }
  Batch batch(const AttentionMask& mask = {}) const&& = delete;
  // Where packed row t was: index into the B * S padded rows.
  std::span<const size_t> rows() const& { return rows_; }
  std::span<const size_t> rows() const&& = delete;

  // padded [B, S, D] to packed [tokens, D]. Both refuse other shapes: kInvalidArgument says what
  // was found and what was wanted.
  Status Pack(ConstView padded, MutableView packed) const;
  // packed [tokens, D] to padded [B, S, D]; rows of padding become zeros.
  Status Unpack(ConstView packed, MutableView padded) const;

 private:
  size_t batch_ = 0;
  size_t seq_ = 0;
  std::vector<size_t> starts_{0};
  std::vector<size_t> positions_;
  std::vector<size_t> rows_;
};

}  // namespace encore

#endif  // ENCORE_ENCODER_H_
