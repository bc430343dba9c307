// SPDX-License-Identifier: Apache-2.0
//
// `encore run`: weights and inputs from safetensors files, outputs into one. This file has the
// options and the order of things; the parts are in run_batch and the library.

#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "encore/cpu.h"
#include "encore/encoder.h"
#include "encore/safetensors.h"
#include "encore/thread_pool.h"
#include "encore/torch_weights.h"
#include "tools/encore/commands.h"
#include "tools/encore/failure.h"
#include "tools/encore/run_batch.h"
#include "tools/encore/shared_options.h"
#include "tools/encore/text.h"

namespace encore::tool {
namespace {

constexpr const char* kRunFooter =
    R"(The weights are a state_dict of torch.nn.TransformerEncoderLayer or TransformerEncoder,
saved with its configuration:
  safetensors.torch.save_file(model.state_dict(), "w.safetensors",
      metadata={"nhead": "4", "activation": "relu", "norm_first": "False",
                "layer_norm_eps": "1e-05"})
--nhead, --activation, --norm-first and --eps take the place of that metadata.

Tensors of the input file:
  x                 F32, F64, F16 or BF16 [B, S, D]; or [T, D], sequences one after another
  seq_lengths       I64 [B], with x [T, D]: the length of each sequence
  key_padding_mask  BOOL [B, S], optional with x [B, S, D]: true = padding, anywhere
  attn_mask         BOOL (true = may not attend) or F32 (added to the scores) [S, S], optional; S is
                    the longest sequence where x is [T, D]
Tensors of the output file, all F32:
  y                 of x's shape; rows of padding are zeros
  attention.N       [B, H, S, S], the attention weights of layer N (--attention-weights)
  hidden.N          of x's shape, the output of layer N before any final norm (--hidden-states)

Examples:
  encore run --weights w.safetensors --input x.safetensors --output y.safetensors
  encore run --weights w.safetensors --input x.safetensors --output y.safetensors --causal \
      --threads 1
  encore run --weights w.safetensors --input x.safetensors --output y.safetensors --target AVX2 \
      --attention-weights --hidden-states
  encore run --weights w.safetensors --input x.safetensors --output y.safetensors \
      --precision int8 --keep 0.linear1,5.linear2)";

struct RunOptions {
  std::string weights;
  std::string input;
  std::string output;
  int threads = 0;
  std::string executor = "pool";
  std::string target;
  PrecisionOptions precision;
  bool causal = false;
  bool attention_weights = false;
  bool hidden_states = false;
  TorchOptions torch;
};

// `pool` must outlive the executor.
Executor MakeExecutor(const RunOptions& options, std::optional<ThreadPool>& pool) {
  if (options.executor == "openmp") return Executor::OpenMP(options.threads);
  if (options.executor == "pool") {
    pool = Take(ThreadPool::Create({.threads = options.threads}), "--threads");
    return pool->executor();
  }
  if (options.threads > 1) {
    throw Failure("--executor inline has one thread, found --threads " +
                  std::to_string(options.threads));
  }
  return Executor::Inline();
}

int RunEncoder(const RunOptions& options) {
  const TorchOverrides overrides = options.torch.overrides();
  std::vector<MatrixOfLayer> kept = options.precision.kept();
  std::optional<ThreadPool> pool;
  const Executor executor = MakeExecutor(options, pool);
  WantFolderOf(options.output);
  WantOtherFile("--output", options.output, options.weights, "the file of --weights");
  if (!options.target.empty()) Check(SetTarget(options.target), "--target");

  const TorchWeights weights = Take(TorchWeights::Open(options.weights, overrides), "--weights");
  const Precision precision = options.precision.precision().value_or(weights.precision());
  if (IsInteger(precision)) {
    kept.insert(kept.end(), weights.keep().begin(), weights.keep().end());
  }
  const Encoder encoder = Take(Encoder::Create(weights.config(), weights.weights(),
                                               {.precision = precision,
                                                .executor = executor,
                                                .keep = kept,
                                                .amx_bf16 = options.precision.amx_bf16}),
                               "--weights " + options.weights);
  const SafetensorsFile file = Take(SafetensorsFile::Open(options.input), "--input");
  const RunInput input = ReadRunInput(file, encoder.config().d_model);
  const RunOutput output = RunForward(encoder, input,
                                      {.causal = options.causal,
                                       .attention_weights = options.attention_weights,
                                       .hidden_states = options.hidden_states,
                                       .executor = executor});

  std::vector<SafetensorsEntry> entries;
  for (const NamedTensor& named : output.tensors) {
    entries.push_back(MakeSafetensorsEntry(named.name, named.tensor));
  }
  CheckWritten(WriteSafetensors(options.output, entries), "--output");

  std::cout << options.output << ": y " << output.tensors[0].tensor.shape().ToString();
  if (entries.size() > 1) std::cout << " and " << Counted(entries.size() - 1, "more tensor");
  std::cout << "; " << Counted(input.tokens(), "token") << " in " << Number(output.seconds * 1e3, 3)
            << " ms in " << PrecisionName(encoder.precision()) << " with " << encoder.target()
            << ", " << Counted(static_cast<size_t>(executor.threads()), "thread") << "\n";
  return kExitOk;
}

}  // namespace

void AddRun(CommandLine& line, Action& action) {
  const auto [command, options] = AddCommand(
      line, action, "run", "Run an encoder on tensors from files", kRunFooter, RunEncoder);
  command.Add("--weights", &options->weights, "Weights and configuration (safetensors)",
              {.type = "FILE", .required = true});
  command.Add("--input", &options->input, "Input tensors (safetensors)",
              {.type = "FILE", .required = true});
  command.Add("--output", &options->output, "Write the results there (safetensors)",
              {.type = "FILE", .required = true});
  command.Add("--attention-weights", &options->attention_weights, "Also write attention.N");
  command.Add("--hidden-states", &options->hidden_states, "Also write hidden.N");
  command.Add("--causal", &options->causal, "Causal attention: no token sees a later one");
  command.Add("--threads", &options->threads, "Threads; 0: encore's choice",
              {.show_default = true, .range = Range{0, 1024}});
  command.Add("--executor", &options->executor, "Where threads come from: pool, openmp or inline",
              {.show_default = true, .one_of = {"pool", "openmp", "inline"}});
  command.Add("--target", &options->target, "SIMD target, e.g. AVX2; default: the best",
              {.type = "NAME"});
  options->precision.AddTo(command);
  options->precision.AddAmxTo(command);
  options->torch.AddTo(command);
}

}  // namespace encore::tool
