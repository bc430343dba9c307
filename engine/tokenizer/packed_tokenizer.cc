// SPDX-License-Identifier: Apache-2.0
//
// Finding, checking and writing the file of a tokenizer's tables.

#include "engine/tokenizer/packed_tokenizer.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <span>
#include <utility>

#include "encore/version.h"
#include "engine/base/checksum.h"
#include "engine/base/status_macros.h"
#include "engine/platform/file_error.h"
#include "engine/platform/file_writer.h"
#include "engine/platform/path.h"

namespace encore::inline v0_1::internal {
namespace {

// To be raised whenever other tables are made of the same files, or they are spelled otherwise.
constexpr int kFormat = 1;
constexpr size_t kDescription = 64;
constexpr size_t kHead = kDescription + 2 * sizeof(uint64_t);
// All that decides how tokenizer.json is read.
constexpr const char* kFilesBeside[] = {"tokenizer_config.json", "special_tokens_map.json",
                                        "added_tokens.json", "config.json"};

std::string Description() {
  std::string text = "encore packed tokenizer " + std::to_string(kFormat) + ", encore " +
                     ENCORE_VERSION_STRING + "\n";
  text.resize(kDescription, '\n');
  return text;
}

// A text of JSON from its start on.
class Scanner {
 public:
  explicit Scanner(std::string_view json) : json_(json) {}

  // The place of the next quote, bracket or brace; the text's end behind the last one.
  size_t Next() {
    at_ = std::min(json_.find_first_of("\"{}[]", at_), json_.size());
    return at_;
  }
  // Steps over the string that begins here; its text as it is written.
  std::string_view String() {
    const size_t begin = ++at_;
    while (at_ < json_.size() && json_[at_] != '"') at_ += json_[at_] == '\\' ? 2 : 1;
    const std::string_view text = json_.substr(begin, std::min(at_, json_.size()) - begin);
    ++at_;
    return text;
  }
  // The place behind white space.
  size_t Skip() {
    at_ = std::min(json_.find_first_not_of(" \t\r\n", at_), json_.size());
    return at_;
  }
  bool Has(char c) const { return at_ < json_.size() && json_[at_] == c; }
  void Step() { ++at_; }
  // Steps over the array or object that begins here.
  void Container() {
    size_t depth = 0;
    while (Next() < json_.size()) {
      if (Has('"')) {
        (void)String();
        continue;
      }
      const bool opens = Has('{') || Has('[');
      Step();
      depth = opens ? depth + 1 : depth - 1;
      if (depth == 0) return;
    }
  }

 private:
  std::string_view json_;
  size_t at_ = 0;
};

}  // namespace

std::string WithoutVocabulary(std::string_view json) {
  std::string rest;
  size_t copied = 0;
  Scanner scanner(json);
  size_t depth = 0;
  bool in_model = false;
  while (scanner.Next() < json.size()) {
    if (!scanner.Has('"')) {
      depth = scanner.Has('{') || scanner.Has('[') ? depth + 1 : depth - 1;
      scanner.Step();
      continue;
    }
    const std::string_view text = scanner.String();
    scanner.Skip();
    if (!scanner.Has(':')) continue;  // a value
    scanner.Step();
    if (depth == 1) in_model = text == "model";
    if (depth != 2 || !in_model || (text != "vocab" && text != "merges")) continue;
    const size_t begin = scanner.Skip();
    if (!scanner.Has('{') && !scanner.Has('[')) continue;
    rest += json.substr(copied, begin - copied);
    rest += scanner.Has('{') ? "{}" : "[]";
    scanner.Container();
    copied = scanner.Skip();
  }
  return rest += json.substr(copied);
}

Result<PackedTokenizer> PackedTokenizer::Find(const std::string& cache, const Folder& folder,
                                              std::string_view tokenizer_json) {
  ENCORE_RETURN_IF_ERROR(CheckPath(cache));
  PackedTokenizer file;
  Checksum identity(tokenizer_json.size());
  identity.Add(tokenizer_json);
  for (const char* const name : kFilesBeside) {
    ENCORE_ASSIGN_OR_RETURN(const std::optional<MappedFile> beside, folder.Read(name));
    identity.Add(std::string(name) + (beside ? std::to_string(beside->bytes().size()) : "none"));
    if (beside) identity.Add(beside->bytes());
  }
  file.identity_ = identity.value();
  std::error_code ignored;  // a path that cannot be resolved is as good a name
  std::filesystem::path path = std::filesystem::weakly_canonical(ToPath(folder.path()), ignored);
  if (path.empty()) path = ToPath(folder.path());
  file.path_ =
      cache + "/" + ChecksumText(ChecksumOf(Description() + PathText(path))) + ".tokenizer";
  if (std::filesystem::is_symlink(std::filesystem::symlink_status(ToPath(file.path_), ignored))) {
    return file;  // it is replaced
  }
  Result<MappedFile> found = MappedFile::OpenOwn(file.path_);
  if (found.ok()) {
    file.found_ = *std::move(found);
  } else if (found.status().code() != ErrorCode::kNotFound) {
    file.refused_ = found.status().message();
  }
  return file;
}

std::optional<PackedTokenizer::Content> PackedTokenizer::Read() const {
  if (!found_ || found_->bytes().size() < kHead) return {};
  const std::span<const std::byte> bytes = found_->bytes();
  const std::string description = Description();
  std::array<uint64_t, 2> numbers;
  std::memcpy(numbers.data(), bytes.data() + kDescription, sizeof numbers);
  if (std::memcmp(bytes.data(), description.data(), kDescription) != 0 || numbers[0] != identity_ ||
      numbers[1] != ChecksumOf(bytes.subspan(kHead), identity_)) {
    return {};
  }
  Content content{.rest = {}, .tables = TableReader(bytes.subspan(kHead))};
  if (!content.tables.Take(&content.rest)) return {};
  return content;
}

std::string PackedTokenizer::Write(std::string_view tokenizer_json, const Model& model) const {
  const std::string not_written = "built, not written: ";
  if (!refused_.empty()) return not_written + refused_;
  TableWriter tables;
  tables.Put(WithoutVocabulary(tokenizer_json));
  if (!model.Put(&tables)) return "built";
  const std::array<uint64_t, 2> numbers = {identity_, ChecksumOf(tables.bytes(), identity_)};
  const auto write = [&]() -> Status {
    ENCORE_ASSIGN_OR_RETURN(FileWriter writer, FileWriter::CreateOwn(path_));
    const std::string description = Description();
    ENCORE_RETURN_IF_ERROR(writer.Write(std::as_bytes(std::span(description))));
    ENCORE_RETURN_IF_ERROR(writer.Write(std::as_bytes(std::span(numbers))));
    ENCORE_RETURN_IF_ERROR(writer.Write(std::as_bytes(std::span(tables.bytes()))));
    return writer.Commit();
  };
  const Status status = write();
  return status.ok() ? "built and written" : not_written + std::string(status.message());
}

}  // namespace encore::internal
