// SPDX-License-Identifier: Apache-2.0
//
// A folder's kind: which modules it has, in which order, and so what its model computes. It is
// decided once, when the folder is opened; everything after switches on it.

#ifndef ENCORE_ENGINE_TEXT_FOLDER_KIND_H_
#define ENCORE_ENGINE_TEXT_FOLDER_KIND_H_

#include <cstdint>
#include <string>
#include <vector>

#include "encore/status.h"

namespace encore::inline v0_1::internal {

enum class FolderKind : uint8_t {
  // Without modules.json:
  kCheckpoint,  // transformers': pooled hidden states, and the head of config.json's class
  kModel2Vec,   // static embeddings by Model2Vec's rules
  kStanford,    // late interaction by Stanford's ColBERT
  // By modules.json:
  kDense,         // Transformer, Pooling: a vector for each text
  kTransformer,   // Transformer alone: a classifier or reranker, or hidden states
  kLogitScore,    // Transformer, LogitScore: a reranker by the logits of one or two tokens
  kSparse,        // Transformer, SpladePooling; for queries maybe static weights, by a Router
  kSparseStatic,  // SparseStaticEmbedding: a weight for each token
  kStatic,        // StaticEmbedding: the mean of the tokens' vectors
  kLate,          // Transformer, Dense, MultiVectorMask: a vector for each token
  // With modules.json or without:
  kFeatures,  // CLIP, SigLIP: the transformer itself makes a vector for each text
  kM3,        // BGE-M3's vector for each token (m3_heads.h). TextEncoder opens its other vectors
};

// What opens the folder. A tokenizer alone is the first module's: what follows it is not checked,
// and late interaction is not looked for.
enum class FolderUse : uint8_t { kTextEncoder, kMultiVectorEncoder, kTokenizer };

enum class ModuleKind : uint8_t {
  kTransformer,
  kStaticEmbedding,
  kPooling,
  kDense,
  kNormalize,
  kLayerNorm,
  kDropout,
  kQuantize,
  kClipModel,  // the older name of a transformer that makes vectors of texts and images
  // Of a SparseEncoder:
  kMlmTransformer,  // the older name of a transformer whose task is "fill-mask"
  kSpladePooling,
  kSparseStatic,
  kRouter,
  kMultiVectorMask,
  kLogitScore,  // of a CrossEncoder
};

struct ModuleEntry {
  ModuleKind kind = ModuleKind::kTransformer;
  std::string path;        // within the folder; may be ""
  bool of_pylate = false;  // a class of PyLate's
  bool of_jina = false;    // of the code beside Jina v3
};

constexpr bool IsTransformer(ModuleKind kind) {
  return kind == ModuleKind::kTransformer || kind == ModuleKind::kMlmTransformer ||
         kind == ModuleKind::kClipModel;
}
constexpr bool IsLate(FolderKind kind) {
  return kind == FolderKind::kLate || kind == FolderKind::kStanford || kind == FolderKind::kM3;
}

struct FolderReading;
struct ModelFolder;

// The kind of a folder of which all but that is known. kUnsupported for modules in another order
// than the kind's, for a transformer's task that the kind does not have, and for the kind of
// another class than `use`; kInvalidArgument for lengths of late interaction in another kind.
Result<FolderKind> DecideKind(const ModelFolder& found, FolderUse use,
                              const FolderReading& reading);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_TEXT_FOLDER_KIND_H_
