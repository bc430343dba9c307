// SPDX-License-Identifier: Apache-2.0
//
// Reads texts, one a line.

#include "tools/encore/text_input.h"

#include <cerrno>
#include <cstring>

#include "nlohmann/json.hpp"
#include "tools/encore/failure.h"

namespace encore::tool {
namespace {

constexpr size_t kFirstBuffer = size_t{1} << 18;

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

}  // namespace encore::tool
