// SPDX-License-Identifier: Apache-2.0
//
// Reads texts line by line.

#include "tools/encore/text_input.h"

#include <filesystem>
#include <iostream>
#include <system_error>

#include "nlohmann/json.hpp"
#include "tools/encore/failure.h"

namespace encore::tool {

TextInput::TextInput(const std::string& path, TextFormat format)
    : path_(path), format_(format), stream_(&std::cin) {
  if (path == "-") {
    std::ios::sync_with_stdio(false);
    return;
  }
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) throw Failure("--input " + path + ": there is no such file");
  if (std::filesystem::is_directory(status)) {
    throw Failure("--input " + path + ": found a folder, wanted a file of texts");
  }
  if (std::filesystem::is_regular_file(status)) {
    size_bytes_ = static_cast<size_t>(std::filesystem::file_size(path, error));
    if (error) size_bytes_.reset();
  }
  file_.open(path, std::ios::binary);
  if (!file_) throw Failure("--input " + path + ": cannot be read");
  stream_ = &file_;
}

std::string TextInput::Place(size_t line) const {
  return "--input " + path_ + ": line " + std::to_string(line);
}

std::string TextInput::ParseJson(const std::string& line) const {
  const nlohmann::json json = nlohmann::json::parse(line, nullptr, false);
  const nlohmann::json* text = &json;
  if (json.is_object()) {
    const auto member = json.find("text");
    if (member != json.end()) text = &*member;
    if (json.contains("pair")) {
      throw Failure(Place(lines_) + ": found a pair, wanted a single text");
    }
  }
  if (text->is_string()) return text->get<std::string>();
  throw Failure(Place(lines_) + (json.is_discarded() ? ": is no JSON in UTF-8" : ": found other JSON") +
                "; wanted a string, or an object with a string \"text\"");
}

std::vector<std::string> TextInput::Next(size_t most, size_t bytes) {
  std::vector<std::string> texts;
  std::string line;
  size_t held = 0;
  while (texts.size() < most && held < bytes && std::getline(*stream_, line)) {
    ++lines_;
    bytes_ += line.size() + 1;
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (format_ == TextFormat::kJsonLines) line = ParseJson(line);
    held += line.size();
    texts.push_back(std::move(line));
    line.clear();
  }
  if (stream_->bad()) throw Failure("--input " + path_ + ": cannot be read");
  return texts;
}

}  // namespace encore::tool
