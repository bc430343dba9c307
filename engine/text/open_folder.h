// SPDX-License-Identifier: Apache-2.0
//
// Opens a folder by its kind: one function each.

#ifndef ENCORE_ENGINE_TEXT_OPEN_FOLDER_H_
#define ENCORE_ENGINE_TEXT_OPEN_FOLDER_H_

#include <memory>
#include <string>

#include "encore/text_encoder.h"
#include "engine/text/text_encoder_impl.h"

namespace encore::inline v0_1::internal {

// kUnsupported for a folder of a kind that another class opens.
Result<std::shared_ptr<const TextEncoder::Impl>> OpenFolder(const std::string& path,
                                                            const OpenOptions& options,
                                                            FolderUse use);

struct Opening {
  const ModelFolder& found;
  const OpenOptions& options;
  const FolderReading& reading;
};
using NewImpl = std::unique_ptr<TextEncoder::Impl>;

// Folders with a transformer.
Result<NewImpl> OpenCheckpoint(const Opening& opening);
Result<NewImpl> OpenDense(const Opening& opening);
Result<NewImpl> OpenTransformer(const Opening& opening);
Result<NewImpl> OpenLogitScore(const Opening& opening);
Result<NewImpl> OpenSparse(const Opening& opening);
Result<NewImpl> OpenFeatures(const Opening& opening);
Result<NewImpl> OpenLate(const Opening& opening);
// Folders without one, static_open.cc.
Result<NewImpl> OpenStatic(const Opening& opening);
Result<NewImpl> OpenModel2Vec(const Opening& opening);
Result<NewImpl> OpenSparseStatic(const Opening& opening);

Result<Tokenizer> OpenTokenizer(const ModelFolder& found, const OpenOptions& options);
// tokenizer.json as it is, whatever other files say. kNotFound without one.
Result<Tokenizer> OpenWrittenTokenizer(const Folder& folder);
// Of kStatic and kModel2Vec.
Result<FolderTokenizer> OpenStaticTokenizer(const ModelFolder& found, const FolderReading& reading);

// Without these the other half of a folder is of use: ids without a tokenizer, a tokenizer without
// a model.
bool MayBeMissing(const Status& status);
// Notes the folder's truncate_dim where there are vectors of texts.
void NoteDimensions(const TextEncoder::Impl& impl, const FolderReading& reading);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_TEXT_OPEN_FOLDER_H_
