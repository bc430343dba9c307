// SPDX-License-Identifier: Apache-2.0
//
// Records as lines of JSON, and the files of a model.

#include "tools/encore/resume_record.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "engine/platform/mapped_file.h"
#include "engine/platform/path.h"
#include "nlohmann/json.hpp"
#include "tools/encore/failure.h"
#include "tools/encore/text.h"

namespace encore::tool {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFormatMember = "encore_resume";
constexpr int kFormatVersion = 1;

// Endings of the files that encore reads, names of those among them that are plain text, as --input
// may be, and folders with weights for other programs.
constexpr std::string_view kModelEndings[] = {".json",     ".model",       ".jinja",
                                              ".metadata", ".safetensors", ".pt"};
constexpr std::string_view kModelTexts[] = {"vocab.txt", "merges.txt"};
constexpr std::string_view kOtherFolders[] = {"onnx", "openvino", "original", "gguf", "coreml"};

bool IsListed(std::string_view name, std::span<const std::string_view> list) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

std::optional<uint64_t> ChecksumIn(const nlohmann::json& record, const char* name) {
  const auto found = record.find(name);
  if (found == record.end() || !found->is_string()) return std::nullopt;
  const auto& text = found->get_ref<const std::string&>();
  uint64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value, 16);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

std::optional<ResumeRecord> RecordOf(std::string_view line) {
  const nlohmann::json json = nlohmann::json::parse(line, nullptr, false);
  if (!json.is_object() || json.value(kFormatMember, nlohmann::json()) != kFormatVersion) {
    return std::nullopt;
  }
  const auto rows = json.find("rows");
  const auto settings = json.find("settings");
  const std::optional<uint64_t> texts = ChecksumIn(json, "texts");
  const std::optional<uint64_t> output = ChecksumIn(json, "output");
  if (rows == json.end() || !rows->is_number_unsigned() || !texts || !output ||
      settings == json.end() || !settings->is_object()) {
    return std::nullopt;
  }
  ResumeRecord record = {rows->get<size_t>(), *texts, *output, {}};
  for (const auto& [name, value] : settings->items()) {
    if (!value.is_string()) return std::nullopt;
    record.settings[name] = value.get<std::string>();
  }
  return record;
}

std::string LineOf(const ResumeRecord& record) {
  ResumeSettings given = record.settings;
  std::erase_if(given, [](const auto& setting) { return setting.second.empty(); });
  const nlohmann::ordered_json json = {{kFormatMember, kFormatVersion},
                                       {"rows", record.rows},
                                       {"texts", internal::ChecksumText(record.texts)},
                                       {"output", internal::ChecksumText(record.output)},
                                       {"settings", given}};
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

// All of a file; empty if there is none.
std::vector<ResumeRecord> ReadRecords(const std::string& path) {
  Result<internal::MappedFile> file = internal::MappedFile::Open(path);
  if (file.status().code() == ErrorCode::kNotFound) return {};
  const internal::MappedFile found = Take(std::move(file), "--output");
  std::string_view text(reinterpret_cast<const char*>(found.bytes().data()), found.bytes().size());
  std::vector<ResumeRecord> records;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size() - 1);
    std::optional<ResumeRecord> record = RecordOf(text.substr(0, end));
    if (!record) {
      throw Failure("--output: " + path +
                    " is no record that this command wrote (--resume), wanted one or none");
    }
    records.push_back(*std::move(record));
    text.remove_prefix(end + 1);
  }
  return records;
}

Status WriteLines(const std::string& lines, internal::FileWriter* file) {
  const Status status = file->Write(std::as_bytes(std::span(lines)));
  return status.ok() ? file->Commit() : status;
}

}  // namespace

void TextsChecksum::Add(const std::string& text) {
  const uint64_t size = text.size();
  checksum_.Add(std::as_bytes(std::span(&size, 1)));
  checksum_.Add(text);
}

// Of small files a checksum. Weights are not read for it: with a cache of packed weights nobody
// else reads all of them. A file that cannot be read is none of the model's, which was opened.
std::string FileState(const std::string& path) {
  constexpr uintmax_t kSmall = uintmax_t{1} << 20;
  std::error_code error;
  const uintmax_t size = fs::file_size(internal::ToPath(path), error);
  const fs::file_time_type modified = fs::last_write_time(internal::ToPath(path), error);
  if (!error && size > kSmall) {
    return std::to_string(size) + " bytes, modified " +
           std::to_string(static_cast<int64_t>(modified.time_since_epoch().count()));
  }
  const Result<internal::MappedFile> file = internal::MappedFile::Open(path);
  return file.ok() ? internal::ChecksumText(internal::ChecksumOf(file->bytes())) : "unreadable";
}

ResumeSettings ModelFiles(const std::string& folder) {
  ResumeSettings files;
  std::error_code error;
  fs::recursive_directory_iterator entry(internal::ToPath(folder),
                                         fs::directory_options::follow_directory_symlink |
                                             fs::directory_options::skip_permission_denied,
                                         error);
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    const fs::path& path = entry->path();
    const std::string name = internal::PathText(path.filename());
    std::error_code unreadable;
    if (entry->is_directory(unreadable)) {
      constexpr int kDeepest = 3;  // modules of modules; and links may lead in a circle
      if (name.starts_with('.') || name.starts_with("checkpoint-") ||
          IsListed(name, kOtherFolders) || entry.depth() >= kDeepest) {
        entry.disable_recursion_pending();
      }
    } else if (entry->is_regular_file(unreadable) &&
               (IsListed(internal::PathText(path.extension()), kModelEndings) ||
                IsListed(name, kModelTexts))) {
      const std::u8string place =
          path.lexically_relative(internal::ToPath(folder)).generic_u8string();
      files["file " + std::string(place.begin(), place.end())] =
          FileState(internal::PathText(path));
    }
  }
  if (error) throw Failure("--model " + folder + ": cannot be read: " + error.message());
  return files;
}

void WantSameSettings(const ResumeSettings& then, const ResumeSettings& now,
                      const std::string& output) {
  const auto value = [](const ResumeSettings& settings, const std::string& name) {
    const auto found = settings.find(name);
    return found == settings.end() ? std::string() : found->second;
  };
  ResumeSettings all = then;
  all.insert(now.begin(), now.end());
  for (const auto& setting : all) {
    const std::string& name = setting.first;
    const std::string was = value(then, name);
    const std::string is = value(now, name);
    if (was == is) continue;
    const std::string sentence = "--resume: " + output + " was made ";
    if (name.starts_with("file ")) {
      throw Failure(sentence + "with another " + Printable(name.substr(5)) + " in --model");
    }
    const auto with = [&](const std::string& it) {
      return it.empty() ? "without " + name : "with " + name + " " + Shortened(Printable(it), 40);
    };
    throw Failure(sentence + with(was) + ", this command is " + with(is));
  }
}

ResumeFile::ResumeFile(const std::string& output)
    : path_(output + ".resume"),
      records_(ReadRecords(path_)),
      file_(Take(internal::FileWriter::Create(path_), "--output")) {}

std::optional<ResumeRecord> ResumeFile::Find(size_t rows, uint64_t output) const {
  for (size_t i = records_.size(); i-- > 0;) {
    if (records_[i].rows == rows && records_[i].output == output) return records_[i];
  }
  return std::nullopt;
}

Status ResumeFile::Write(const ResumeRecord& record, const std::optional<ResumeRecord>& before) {
  std::string lines;
  if (before) {
    lines = LineOf(*before);
  } else {
    for (const ResumeRecord& old : records_) lines += LineOf(old);
  }
  return WriteLines(lines + LineOf(record), &file_);
}

void ResumeFile::DropOthers(const ResumeRecord& record) const {
  Result<internal::FileWriter> file = internal::FileWriter::Create(path_);
  if (file.ok()) (void)WriteLines(LineOf(record), &*file);
}

}  // namespace encore::tool
