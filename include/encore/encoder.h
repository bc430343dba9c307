// SPDX-License-Identifier: Apache-2.0
//
// The transformer encoder: one layer or a stack of them, over a batch of packed sequences.
// layer.h says what a layer computes; torch_weights.h reads weights from a file.
//
// Accuracy: each operation keeps its bound of ops.h; the activation's error is at most 0.9 ulp of
// its argument (1.2 on targets without FMA) rather than of its result. A worst-case bound for a
// whole layer is 10^6 times the observed error, so a statistical one is stated. Model each rounding
// as an independent error of mean zero (Higham & Mary 2019, doi:10.1137/18M1226312) with a standard
// deviation of 2^-24 of its result, propagated to first order: each element of y then has a
// standard deviation. For random weights and inputs y is within 8 of them, which the tests check on
// every target. Rows of weights that are multiples of each other have equal errors, which add up:
// with equal rows an error of 131 standard deviations was observed.

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
  // For an I8 weight only: an element is the integer times its row's scale, which is finite and
  // above 0. kInt8 packs the integers, other precisions these products.
  WeightView scale = {};  // [outputs]
  // Smoothing of the input (arXiv:2211.10438), finite and above 0, or empty. kInt8 and kInt4 divide
  // inputs by it and multiply columns of the weight. A weight of floats is given without the
  // factor, an I8 weight with it; kF32 and kBF16 divide an I8 weight by it. If it is empty, Create
  // finds one for a weight of floats; an I8 weight is not smoothed.
  WeightView input_scale = {};  // [inputs]
};

// y = normalized x * weight + bias.
struct NormWeights {
  WeightView weight = {};  // [width], or empty for 1
  WeightView bias = {};    // [width], or empty for 0
};

// Views of the caller's weights, needed only during Encoder::Create, which reads them in place. H =
// num_heads, G = num_kv_heads, D = head size; shapes are those of `weight`. Weights that the layer
// does not use must be empty.
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
  // With buckets: the table of the biases. Layers that share one have the same view.
  WeightView position_bias = {};  // [num_buckets, H]
  // With relative: its table and the norm of the table's rows; layers may share them.
  WeightView relative_embeddings = {};  // [2 span, d_model]
  NormWeights relative_norm = {};       // [d_model]
  // With relative and own_projections, floats: for position_to_content, for content_to_position.
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
  // With experts, E = num_experts, instead of these matrices: those of all experts, one under
  // another, floats. Each expert's second matrix is transposed: row i is what element i of the
  // inner width adds to y.
  WeightView router = {};          // [E, d_model]
  WeightView experts_first = {};   // [E d_ff, d_model]
  WeightView experts_second = {};  // [E d_ff, d_model]
  WeightView experts_bias = {};    // [d_model], or empty for 0
  // With layer_input, floats.
  LinearWeights input_proj = {};     // [width, d_model]
  NormWeights input_norm = {};       // [width]
  LinearWeights input_gate = {};     // [width, d_model]
  LinearWeights input_output = {};   // [d_model, width]
  NormWeights post_input_norm = {};  // [d_model]
  WeightView layer_scalar = {};      // [1], or empty for 1
  // With convolution, floats.
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
  SequenceStarts(std::vector<size_t>&&) = delete;  // a temporary is destroyed before the batch
  SequenceStarts(const std::vector<size_t>&&) = delete;
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

// A view of the caller's numbers, one for each token, or none. Converts from whatever a
// std::span<const size_t> does, but not from a temporary vector or array.
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
  // Shared by all sequences: [S, S], or additive [H, S, S] with a matrix for each head. Token i of
  // a sequence has row and column i of it (or positions[row], if given). S must exceed all of
  // these.
  AttentionMask mask = {};
  // Row and column of the mask for each token, [tokens]; empty: a token's index in its sequence.
  // Causality, windows and the configuration's positions use the order of rows instead.
  TokenPositions positions = {};
};

// At most so many tokens, in at most so many sequences.
struct BatchLimits {
  size_t tokens = 0;
  size_t sequences = 1;
};

// Intermediates to copy out. Any view and either span may be empty. Taps change no bit of y.
struct Taps {
  // Attention weights: entry [layer * sequences + b] is [num_heads, S_b, S_b].
  std::span<const MutableView> attention = {};
  // Entry [layer] is [tokens, d_model]: the output of that layer, before any final norm.
  std::span<const MutableView> hidden = {};
};

// Rows of each sequence: its first token's (CLS), its last token's, or all.
enum class OutputRows : uint8_t { kFirst = 0, kLast = 1, kAll = 2 };

// Keeps packed weights for the next process. A file in `folder` has those of one model, SIMD
// target, precision and choice of kernels. It is mapped: an encoder is made without packing, and
// all its processes share one copy in memory.
//
// No file is trusted. Sizes and offsets are computed, never read. Each opening checks
// - the length, a description of every matrix and its kernel, and 64-bit checksums of all bytes,
//   which takes as long as reading them. They detect damage, not intent: who can write to the
//   folder as this user or as root can change results. No file makes a call crash, unless it is
//   shortened in place during the call (SIGBUS);
// - one newly packed panel of each matrix; or all panels if `identity` differs or is empty, or with
//   `compare`, which takes as long as packing.
// A file that differs is replaced, and so is a symbolic link, which is never followed;
// Encoder::cache_use() reports it. Files of other users than this one and root are not opened and
// stay, as do folders, pipes and devices. Only its owner may write to a file made here. An encoder
// keeps a mapped file that is renamed over or removed; a file changed in place since its opening is
// kIo at the next call.
//
// Files appear whole or not at all, and any number of processes may open and write at once. A file
// that cannot be written is no error; Encoder::cache_use() reports it. Old files may be removed at
// any time. Layers with relative embeddings have no file. Results have the same bits with and
// without a cache. A forward pass may take some percent longer where the system has no large pages
// for files.
struct PackedCache {
  std::string folder = {};    // created if missing; empty: no cache
  std::string model = {};     // distinguishes models in one folder: the path of the weights, say
  std::string identity = {};  // of weights and configuration: another one when they change. Empty:
                              // unknown. For files see SafetensorsFile::identity()
  bool compare = false;       // compare all panels, whatever the identity
  bool trust = false;         // no checksum of panels: only the panels compared are read
};

// How an encoder is made. Thread-safe to share.
struct EncoderOptions {
  Precision precision = Precision::kF32;
  // Whose threads pack the weights.
  Executor executor = {};
  // Called after each layer is packed, by one of these threads: pages of its matrices may be
  // released (SafetensorsFile::ReleasePages). Must not throw. With `cache` layers may be packed
  // several times.
  std::function<void()> layer_packed = {};
  // With kInt8 and kInt4: matrices that are computed as in kBF16 instead.
  std::vector<MatrixOfLayer> keep = {};
  // Products in bf16, also those of kInt8 and kInt4 (attention, `keep`), use AMX's bf16 instruction
  // where AMX is the active target. It is several times as fast and about as exact, but adds
  // products in another order: results have other bits than on machines without it. Other promises
  // hold.
  bool amx_bf16 = false;
  PackedCache cache = {};
};

// An encoder with its weights packed for the SIMD target that was active at creation. Immutable:
// any number of threads may call Forward at once, with a workspace each. Copying shares the packed
// weights.
class ENCORE_API Encoder {
 public:
  // Validates the configuration and every shape, then packs the weights with the executor's
  // threads. The encoder holds the packed form only. Weights are read in place, a few rows at a
  // time, without a second copy. kInvalidArgument names the switch or tensor, the found and the
  // wanted; kOutOfMemory.
  static Result<Encoder> Create(const EncoderConfig& config, const EncoderWeights& weights,
                                const EncoderOptions& options = {});

  // As given, with the defaults that depend on other fields filled in (num_kv_heads, head_size,
  // attention_scale, rotary size and inverse frequencies, ALiBi's slopes).
  // A moved-from Encoder has no layers, "" and 0 here, and its calls are kInvalidArgument.
  const EncoderConfig& config() const&;
  const EncoderConfig& config() const&& = delete;  // it may end with the temporary
  // The SIMD target it computes with, e.g. "AVX2".
  std::string_view target() const;
  Precision precision() const;
  // Whether it multiplies bf16 by AMX (EncoderOptions::amx_bf16).
  bool amx_bf16() const;
  // Bytes of all layers' packed matrices, with int4's scales of groups: nearly all of an encoder's
  // memory. Biases, norms and int8's scales are not counted. Copies of an encoder share it.
  size_t packed_bytes() const;
  size_t mapped_bytes() const;  // of the cache's file where that has the matrices, else 0

  // The use of EncoderOptions::cache: "mapped", "packed and written", "packed, not written: ..."
  // and the like; "" without one.
  std::string cache_use() const;

  // A workspace for this batch, or for any batch within the limits, on an executor of at most as
  // many threads. kInvalidArgument if the size overflows; kOutOfMemory.
  Result<Workspace> MakeWorkspace(const Batch& batch, const Executor& executor = {}) const;
  Result<Workspace> MakeWorkspace(const BatchLimits& limits, const Executor& executor = {}) const;
  // Its size in bytes, for Workspace::Wrap, Create and Reserve. Linear in tokens + 16 sequences, as
  // each sequence's keys and values fill blocks of 16 tokens: split very many sequences of one
  // token into several calls. Each thread that can get work adds buffers for up to 128 rows (all
  // threads together at most 1.25 times the tokens), and attention scratch (at most heads times
  // ceil(tokens / 64) of them).
  Result<size_t> WorkspaceBytes(const Batch& batch, const Executor& executor = {}) const;
  Result<size_t> WorkspaceBytes(const BatchLimits& limits, int threads) const;

  // y = encoder(x). x and y are [tokens, d_model] with contiguous rows (stride 1 along d_model); y
  // may be x itself, else they must not overlap. Allocates nothing on success (OpenMP's runtime
  // may, when it starts threads), and uses at most 96 KiB of each thread's stack. A sequence's bits
  // depend on that sequence and the mask alone: not on other sequences, its index, the executor or
  // the number of threads. kInvalidArgument names seq_starts, the mask, x, y, a tap or the
  // workspace, the found and the wanted; nothing is written then.
  Status Forward(const Batch& batch, ConstView x, MutableView y, const Workspace& workspace,
                 const Executor& executor = {}, const Taps& taps = {}) const;

  // One row of each sequence: row b of y [sequences, d_model] has the bits of that row of sequence
  // b in Forward's y, the final norm included. The last layer computes all keys and values, but
  // queries, attention and later steps for these rows only, which saves some 7 percent of the time
  // of 12 equal layers. x [tokens, d_model] is the input and is overwritten: earlier layers run in
  // place. x and y have contiguous rows that do not overlap. With taps of the last layer it
  // computes all rows. All else is as in Forward; an empty sequence is kInvalidArgument. With kAll
  // it is Forward, and y may be x.
  Status ForwardRows(const Batch& batch, OutputRows rows, MutableView x, MutableView y,
                     const Workspace& workspace, const Executor& executor = {},
                     const Taps& taps = {}) const;

 private:
  friend struct internal::EncoderAccess;
  struct Impl;
  explicit Encoder(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<const Impl> impl_;
};

// Converts [B, S, D] with a key-padding mask, holes included, into a packed batch and back. Padding
// tokens are left out: no key, no query, and zeros in the output. Immutable: any number of threads
// may use it at once.
class ENCORE_API PaddedBatch {
 public:
  // key_padding_mask [B, S], true = padding, as PyTorch's src_key_padding_mask; or empty for none.
  // kInvalidArgument if it has another shape or B S overflows; kOutOfMemory.
  static Result<PaddedBatch> Create(size_t batch, size_t seq,
                                    TensorView<const bool> key_padding_mask = {});
  // attention_mask [B, S] as from Hugging Face tokenizers: 1 = token, 0 = padding. Other numbers
  // and a list of another size are kInvalidArgument.
  static Result<PaddedBatch> FromAttentionMask(TensorView<const int64_t> attention_mask);
  static Result<PaddedBatch> FromAttentionMask(size_t batch, size_t seq,
                                               const std::vector<bool>& attention_mask);

  size_t tokens() const { return rows_.size(); }
  size_t sequences() const { return starts_.empty() ? 0 : starts_.size() - 1; }
  // Valid as long as this object lives. The mask's rows and columns are those of the padded
  // sequence, [S, S].
  Batch batch(const AttentionMask& mask = {}) const& { return Batch{starts_, mask, positions_}; }
  Batch batch(const AttentionMask& mask = {}) const&& = delete;
  // Index of packed row t in the B * S padded rows.
  std::span<const size_t> rows() const& { return rows_; }
  std::span<const size_t> rows() const&& = delete;

  // padded [B, S, D] to packed [tokens, D]. Both: kInvalidArgument names another shape and the
  // wanted.
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
