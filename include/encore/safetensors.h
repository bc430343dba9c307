// SPDX-License-Identifier: Apache-2.0
//
// Files in the safetensors format: read memory-mapped with every offset validated before use, and
// written whole or not at all.
//
// The format: 8 bytes, the header's length N, little-endian; N bytes of JSON; the tensors' bytes,
// little-endian and row-major. https://github.com/huggingface/safetensors describes it; encore is
// as strict as that reader, and strict about duplicate and unknown keys too.

#ifndef ENCORE_SAFETENSORS_H_
#define ENCORE_SAFETENSORS_H_

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "encore/export.h"
#include "encore/status.h"
#include "encore/tensor.h"

namespace encore::inline v0_1 {

// A tensor in a file, or to be written to one. Owns no data.
struct SafetensorsEntry {
  std::string name;
  DType dtype = DType::kF32;
  Shape shape;
  // Dense and row-major, exactly DTypeSize(dtype) * shape.NumElements() of them. In a file they may
  // start at any address, aligned or not.
  std::span<const std::byte> bytes;

  // Valid as long as the bytes. For dtypes that weights may have.
  WeightView View() const { return WeightView(dtype, bytes.data(), shape); }
};

using SafetensorsMetadata = std::map<std::string, std::string>;

// Where an open file's bytes lie.
enum class FileMemory {
  // In the file, mapped. It must not be shortened or rewritten in place while it is open: bytes
  // that were rewritten are read as they are, and to touch bytes that were cut off ends the process
  // by SIGBUS. CheckUnchanged() finds such a change before a call, not during one. To replace a
  // file, write a new one beside it and rename that.
  kMapped,
  // In memory, as many bytes as the file has, read once: nobody can change them. For folders that
  // other programs write to, and for network file systems.
  kCopied,
};

// A validated, immutable file. Any number of threads may read from it. Copies share the same
// memory, which lives as long as the last of them. Error sentences escape and shorten names, which
// come from the file.
class ENCORE_API SafetensorsFile {
 public:
  // To move is to copy: what was moved from stays as it is.
  SafetensorsFile(const SafetensorsFile&) = default;
  SafetensorsFile& operator=(const SafetensorsFile&) = default;

  // A mapped file may be renamed over or removed while open; see FileMemory. kNotFound or kIo if it
  // cannot be read; kCorruptData if it breaks the format, or has duplicate or unknown keys;
  // kUnsupported for a dtype that DType lacks or a rank above Shape::kMaxRank; kOutOfMemory.
  static Result<SafetensorsFile> Open(const std::string& path,
                                      FileMemory memory = FileMemory::kMapped);

  // The same from a file's bytes in the caller's memory, which must outlive this object, its copies
  // and its views. `name` stands for the path in error sentences.
  static Result<SafetensorsFile> FromBytes(std::span<const std::byte> bytes,
                                           const std::string& name = "(memory)");

  // The path or name it was opened with.
  const std::string& name() const&;
  const std::string& name() const&& = delete;
  // kIo if the file was shortened, lengthened or written to since it was opened, as far as its size
  // and time of modification tell. Takes a microsecond; a long-lived program may ask before it
  // reads. What was copied or came from bytes is as it was.
  Status CheckUnchanged() const;
  // A text for EncoderOptions::cache that no other file has, nor this one after a change, as far as
  // device, inode, size and times tell. Empty where they do not: for a file that was changed in the
  // two seconds before it was opened, for bytes, and on systems without them.
  std::string identity() const;
  // Gives the file's pages back: what was read of it no longer counts as this process's memory, and
  // is read again when it is touched. For instance after Encoder::Create, which packs its own copy
  // of the weights. Views stay valid, and other threads may use them meanwhile. Does nothing where
  // the file could not be mapped, was copied, or came from bytes.
  void ReleasePages() const;

  // In the order of the header.
  const std::vector<SafetensorsEntry>& tensors() const&;
  const std::vector<SafetensorsEntry>& tensors() const&& = delete;
  // The strings under "__metadata__"; empty if there are none.
  const SafetensorsMetadata& metadata() const&;
  const SafetensorsMetadata& metadata() const&& = delete;

  // The tensor of this name, or null.
  const SafetensorsEntry* Find(std::string_view tensor) const&;
  const SafetensorsEntry* Find(std::string_view tensor) const&& = delete;

  // An aligned copy as it is stored. kNotFound; kOutOfMemory; kCorruptData for a BOOL that is
  // neither 0 nor 1.
  Result<Tensor> Read(std::string_view tensor) const;

  // An aligned copy in F32. F16 and BF16 convert exactly, F64 rounds to nearest and overflows to
  // infinity. kNotFound; kInvalidArgument for a dtype that is not a floating-point one;
  // kOutOfMemory.
  Result<Tensor> ReadAsF32(std::string_view tensor) const;

  // The file's own memory, nothing copied; valid as long as this object or a copy of it. kNotFound;
  // kUnsupported if the tensor is not F32 or not aligned to 4 bytes: ReadAsF32 serves those. A
  // tensor without elements has a null view.
  Result<TensorView<const float>> ViewF32(std::string_view tensor) const&;
  Result<TensorView<const float>> ViewF32(std::string_view tensor) const&& = delete;

 private:
  struct Impl;
  explicit SafetensorsFile(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  Result<const SafetensorsEntry*> Require(std::string_view tensor) const;

  std::shared_ptr<const Impl> impl_;
};

// An entry for all of a tensor, which must outlive it.
ENCORE_API SafetensorsEntry MakeSafetensorsEntry(std::string name, const Tensor& tensor);

// Writes a file that SafetensorsFile and the reference reader accept. The header lists the tensors
// in the given order; their bytes follow by descending element size, so that each is aligned to its
// elements. The file appears at `path` complete or not at all: it is written beside it under
// another name and renamed. The permissions of a file that it replaces are kept. kInvalidArgument
// if two tensors share a name, a name is "__metadata__" or not UTF-8, or bytes do not fit the
// shape; kUnsupported if the header would exceed the format's limit; kNotFound or kIo if the system
// refuses.
ENCORE_API Status WriteSafetensors(const std::string& path,
                                   std::span<const SafetensorsEntry> tensors,
                                   const SafetensorsMetadata& metadata = {});

}  // namespace encore

#endif  // ENCORE_SAFETENSORS_H_
