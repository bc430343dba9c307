// SPDX-License-Identifier: Apache-2.0
//
// Reads texts, one a line, and collects some thousand of them.

#include "tools/encore/text_input.h"

#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "nlohmann/json.hpp"
#include "tools/encore/failure.h"

namespace encore::tool {
namespace {

constexpr size_t kFirstBuffer = size_t{1} << 18;

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

void TextReader::CloseFile::operator()(std::FILE* file) const {
  if (file != stdin) std::fclose(file);
}

TextReader::TextReader(const std::string& file, bool jsonl)
    : name_(file == "-" ? "standard input" : file), jsonl_(jsonl), buffer_(kFirstBuffer) {
  file_.reset(file == "-" ? stdin : std::fopen(file.c_str(), "rb"));
  if (file_ == nullptr) throw Failure("--input " + file + ": " + std::strerror(errno));
}

std::string TextReader::Where() const { return name_ + ": line " + std::to_string(lines_); }

bool TextReader::NextLine(std::string_view* line) {
  size_t searched = begin_;
  for (;;) {
    const void* const found = std::memchr(buffer_.data() + searched, '\n', end_ - searched);
    if (found != nullptr || (at_end_ && begin_ < end_)) {
      const size_t end =
          found == nullptr ? end_
                           : static_cast<size_t>(static_cast<const char*>(found) - buffer_.data());
      *line = {buffer_.data() + begin_, end - begin_};
      if (line->ends_with('\r')) line->remove_suffix(1);
      const size_t next = found == nullptr ? end_ : end + 1;
      bytes_ += next - begin_;
      begin_ = next;
      ++lines_;
      return true;
    }
    if (at_end_) return false;
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
    searched = end_;
    if (end_ == buffer_.size()) buffer_.resize(buffer_.size() * 2);
    const size_t read = std::fread(buffer_.data() + end_, 1, buffer_.size() - end_, file_.get());
    end_ += read;
    if (read != 0) continue;
    if (std::ferror(file_.get()) != 0) throw Failure(name_ + ": " + std::strerror(errno));
    at_end_ = true;
  }
}

void TextReader::ParseJson(std::string_view line, TextInput* input) const {
  nlohmann::json json = nlohmann::json::parse(line, nullptr, false);
  if (json.is_string()) {
    input->text = std::move(json.get_ref<std::string&>());
    return;
  }
  const bool fits = json.is_object() && json.contains("text") && json["text"].is_string() &&
                    (!json.contains("pair") || json["pair"].is_string());
  if (!fits) {
    throw Failure(Where() + ": wanted a JSON string, or an object with \"text\" and perhaps " +
                  "\"pair\", both strings");
  }
  input->text = std::move(json["text"].get_ref<std::string&>());
  if (json.contains("pair")) input->pair = std::move(json["pair"].get_ref<std::string&>());
}

bool TextReader::Next(TextInput* input) {
  std::string_view line;
  if (!NextLine(&line)) return false;
  input->pair.reset();
  if (jsonl_) {
    ParseJson(line, input);
  } else {
    input->text.assign(line);
  }
  return true;
}

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
