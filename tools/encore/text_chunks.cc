// SPDX-License-Identifier: Apache-2.0
//
// Collects texts from lines.

#include "tools/encore/text_chunks.h"

#include <charconv>
#include <filesystem>
#include <system_error>

#include "tools/encore/failure.h"

namespace encore::tool {
namespace {

// Held at once.
constexpr size_t kTexts = 8192;
constexpr size_t kBytes = size_t{16} << 20;

std::string WantFile(const std::string& path) {
  std::error_code error;
  if (path != "-" && std::filesystem::is_directory(path, error)) {
    throw Failure("--input " + path + ": found a folder, wanted a file of texts");
  }
  return path;
}

}  // namespace

TextChunks::TextChunks(const std::string& path, bool jsonl)
    : path_(path), reader_(WantFile(path), jsonl) {
  std::error_code error;
  if (path == "-" || !std::filesystem::is_regular_file(path, error)) return;
  const auto size = std::filesystem::file_size(path, error);
  if (!error) size_bytes_ = static_cast<size_t>(size);
}

bool TextChunks::Next() {
  lines_before_ += texts_.size();
  texts_.clear();
  size_t bytes = 0;
  TextInput input;
  while (texts_.size() < kTexts && bytes < kBytes && reader_.Next(&input)) {
    if (input.pair) throw Failure(reader_.Where() + ": found a pair, wanted a single text");
    bytes += input.text.size();
    texts_.push_back(std::move(input.text));
  }
  return !texts_.empty();
}

void TextChunks::Check(const Status& status) const {
  if (status.ok()) return;
  const std::string& message = status.message();
  const size_t open = message.find('[');
  const size_t close = message.find("]: ");
  const std::string name = message.substr(0, std::min(open, message.size()));
  size_t index = 0;
  if ((name == "texts" || name == "documents") && close != std::string::npos &&
      std::from_chars(message.data() + open + 1, message.data() + close, index).ec == std::errc()) {
    throw Failure((path_ == "-" ? "standard input" : path_) + ": line " +
                  std::to_string(lines_before_ + index + 1) + message.substr(close + 1));
  }
  throw Failure(message);
}

}  // namespace encore::tool
