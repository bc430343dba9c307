// SPDX-License-Identifier: Apache-2.0
//
// Finds lines in a buffer, and names what is no text by its first bytes.

#include "tools/encore/line_reader.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "engine/platform/file_handle.h"
#include "engine/platform/path.h"
#include "tools/encore/failure.h"
#include "tools/encore/stop_signal.h"

namespace encore::tool {
namespace {

using std::string_view_literals::operator""sv;

constexpr size_t kFirstBuffer = size_t{1} << 18;

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

// The first bytes of files that are no text in UTF-8, and how to get at their text.
struct Signature {
  std::string_view bytes;
  std::string_view found;
  std::string_view wanted;
};
constexpr Signature kSignatures[] = {
    {"\x1F\x8B", "gzip-compressed bytes", "text: zcat FILE | encore ... --input -"},
    {"\x28\xB5\x2F\xFD", "zstd-compressed bytes", "text: zstdcat FILE | encore ... --input -"},
    {"BZh", "bzip2-compressed bytes", "text: bzcat FILE | encore ... --input -"},
    {"\xFD"
     "7zXZ",
     "xz-compressed bytes", "text: xzcat FILE | encore ... --input -"},
    {"PK\x03\x04", "a zip archive", "text: unzip -p FILE | encore ... --input -"},
    {"PAR1", "a Parquet file", "text, JSON lines or CSV"},
    {"\xFF\xFE", "UTF-16", "UTF-8: iconv -f UTF-16 -t UTF-8 FILE | encore ... --input -"},
    {"\xFE\xFF", "UTF-16", "UTF-8: iconv -f UTF-16 -t UTF-8 FILE | encore ... --input -"},
};

}  // namespace

void LineReader::CloseFile::operator()(std::FILE* file) const {
  if (file != stdin) std::fclose(file);
}

LineReader::LineReader(const std::string& file)
    : name_(file == "-" ? "standard input" : file), buffer_(kFirstBuffer) {
  std::error_code error;
  if (file != "-" && std::filesystem::is_directory(internal::ToPath(file), error)) {
    throw Failure("--input " + file + ": found a folder, wanted a file of texts");
  }
  file_.reset(file == "-" ? stdin : internal::OpenStream(internal::ToPath(file), "rb"));
  if (file_ == nullptr) throw Failure("--input " + file + ": " + std::strerror(errno));
}

void LineReader::CheckStart() {
  const std::string_view start(buffer_.data(), end_);
  for (const Signature& signature : kSignatures) {
    if (!start.starts_with(signature.bytes)) continue;
    throw Failure("--input " + name_ + ": found " + std::string(signature.found) + ", wanted " +
                  std::string(signature.wanted));
  }
  if (!start.starts_with(kByteOrderMark)) return;
  begin_ = kByteOrderMark.size();
  bytes_ = begin_;
}

bool LineReader::Fill() {
  std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
  if (end_ == buffer_.size()) buffer_.resize(buffer_.size() * 2);
  const size_t read = std::fread(buffer_.data() + end_, 1, buffer_.size() - end_, file_.get());
  end_ += read;
  if (StopRequested()) return false;  // which may have cut this read short
  if (read == 0) {
    if (std::ferror(file_.get()) != 0) throw Failure(name_ + ": " + std::strerror(errno));
    at_end_ = true;
  }
  return true;
}

bool LineReader::Next(std::string_view* line) {
  if (!started_) {
    started_ = true;
    if (!Fill()) return false;
    CheckStart();
  }
  size_t searched = begin_;
  for (;;) {
    const void* const found = std::memchr(buffer_.data() + searched, '\n', end_ - searched);
    if (found != nullptr || (at_end_ && begin_ < end_)) {
      const size_t end =
          found == nullptr ? end_
                           : static_cast<size_t>(static_cast<const char*>(found) - buffer_.data());
      *line = {buffer_.data() + begin_, end - begin_};
      line_end_ = found == nullptr ? ""sv : "\n"sv;
      if (line->ends_with('\r')) {
        line->remove_suffix(1);
        line_end_ = found == nullptr ? "\r"sv : "\r\n"sv;
      }
      const size_t next = found == nullptr ? end_ : end + 1;
      bytes_ += next - begin_;
      begin_ = next;
      ++lines_;
      return true;
    }
    if (at_end_) return false;
    const size_t rest = end_ - begin_;
    if (!Fill()) return false;
    searched = begin_ + rest;
  }
}

}  // namespace encore::tool
