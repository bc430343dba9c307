// SPDX-License-Identifier: Apache-2.0
//
// Safetensors files that are broken by accident or on purpose: every truncation and every one-byte
// change of a small file's header, and one case for each rule of the format. Meant to run under
// AddressSanitizer too.

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "encore/safetensors.h"
#include "engine/base/quoted.h"
#include "tests/support/safetensors_bytes.h"
#include "tests/support/sanitizers.h"

namespace encore {
namespace {

// 3 tensors of different types (b unaligned), a scalar, an empty one, and metadata; 1 + 12 + 6 + 8
// + 0 bytes of data.
constexpr std::string_view kHeader =
    R"({"__metadata__":{"format":"pt","nhead":"4"},)"
    R"("a":{"dtype":"BOOL","shape":[1],"data_offsets":[0,1]},)"
    R"("b":{"dtype":"F32","shape":[3,1],"data_offsets":[1,13]},)"
    R"("c":{"dtype":"BF16","shape":[3],"data_offsets":[13,19]},)"
    R"("d":{"dtype":"I64","shape":[],"data_offsets":[19,27]},)"
    R"("e":{"dtype":"F16","shape":[0,2],"data_offsets":[27,27]}} )";
const std::string kData(27, '\1');

// Reads each byte of each tensor in every way there is; a sanitizer tells if one of them is not
// ours.
unsigned TouchEverything(const SafetensorsFile& file) {
  unsigned sum = 0;
  for (const SafetensorsEntry& entry : file.tensors()) {
    for (const std::byte b : entry.bytes) sum += std::to_integer<unsigned>(b);
    const Result<Tensor> raw = file.Read(entry.name);
    if (raw.ok()) {
      EXPECT_EQ(raw->size_bytes(), entry.bytes.size());
    }
    const Result<Tensor> converted = file.ReadAsF32(entry.name);
    if (converted.ok()) {
      EXPECT_EQ(converted->shape(), entry.shape);
    }
    const Result<TensorView<const float>> view = file.ViewF32(entry.name);
    if (view.ok() && !view->empty()) sum += view->data()[0] > 0 ? 1 : 0;
  }
  for (const auto& [key, value] : file.metadata())
    sum += static_cast<unsigned>(key.size() + value.size());
  return sum;
}

// An error that names the file, or a valid read. Returns whether it was valid.
bool ErrorOrValid(std::span<const std::byte> bytes) {
  const Result<SafetensorsFile> file = SafetensorsFile::FromBytes(bytes, "hostile");
  if (file.ok()) {
    TouchEverything(*file);
    return true;
  }
  EXPECT_TRUE(file.status().message().starts_with("hostile: ")) << file.status().message();
  return false;
}

TEST(SafetensorsHostile, TheUnchangedFileIsValid) {
  const std::vector<std::byte> bytes = SafetensorsBytes(kHeader, kData);
  const SafetensorsFile file = Taken(SafetensorsFile::FromBytes(bytes, "hostile"));
  EXPECT_EQ(file.tensors().size(), 5u);
  // 27 bytes of 1, the keys and values of the metadata; b is unaligned or its floats are positive.
  EXPECT_GE(TouchEverything(file), 27u + 6 + 2 + 5 + 1);
}

TEST(SafetensorsHostile, EveryTruncationIsAnError) {
  const std::vector<std::byte> whole = SafetensorsBytes(kHeader, kData);
  const TemporaryFolder folder;
  for (size_t size = 0; size < whole.size(); ++size) {
    const std::vector<std::byte> bytes(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(size));
    EXPECT_FALSE(ErrorOrValid(bytes)) << size;
    WriteBytes(folder.File("cut"), bytes);
    EXPECT_FALSE(SafetensorsFile::Open(folder.File("cut")).ok()) << size;
  }
}

TEST(SafetensorsHostile, EveryOneByteChangeOfTheHeaderIsAnErrorOrAValidRead) {
  std::vector<std::byte> bytes = SafetensorsBytes(kHeader, kData);
  size_t valid = 0;
  size_t errors = 0;
  // At each place others, where all take minutes.
  const unsigned step = kSlow ? 5 : 1;
  for (size_t i = 0; i < 8 + kHeader.size(); ++i) {
    const std::byte original = bytes[i];
    for (unsigned value = static_cast<unsigned>(i) % step; value < 256; value += step) {
      if (static_cast<std::byte>(value) == original) continue;
      bytes[i] = static_cast<std::byte>(value);
      (ErrorOrValid(bytes) ? valid : errors) += 1;
    }
    bytes[i] = original;
  }
  if (step > 1) return;
  EXPECT_EQ(valid + errors, 255 * (8 + kHeader.size()));
  // Other letters in the names and the metadata are fine; all else must fail.
  const size_t free_bytes = std::string_view("formatptnhead4abcde").size();
  EXPECT_GT(valid, free_bytes * 60);
  EXPECT_LT(valid, free_bytes * 100 + 100);
}

TEST(SafetensorsHostile, EveryOneByteInsertionAndRemovalIsAnErrorOrAValidRead) {
  const std::string header(kHeader);
  for (size_t i = 0; i <= header.size(); ++i) {
    for (const char c : std::string_view("\0{}[]\",:-.0e9\\ \n\xFF", 17)) {
      ErrorOrValid(SafetensorsBytes(std::string(header).insert(i, 1, c), kData));
    }
    if (i < header.size()) ErrorOrValid(SafetensorsBytes(std::string(header).erase(i, 1), kData));
  }
}

struct Case {
  const char* label;
  std::string header;
  size_t data_bytes;
  ErrorCode code;
  const char* message;  // a part of the sentence
};

std::string TensorEntry(const std::string& dtype, const std::string& shape,
                        const std::string& offsets) {
  return R"({"x":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets +
         "}}";
}

std::string Two(const std::string& first_offsets, const std::string& second_offsets) {
  return R"({"x":{"dtype":"U8","shape":[4],"data_offsets":)" + first_offsets +
         R"(},"y":{"dtype":"U8","shape":[4],"data_offsets":)" + second_offsets + "}}";
}

std::vector<Case> Cases() {
  constexpr ErrorCode kCorrupt = ErrorCode::kCorruptData;
  const std::string deep(100000, '[');
  std::string deep_objects;
  for (int i = 0; i < 100000; ++i) deep_objects += R"({"a":)";
  return {
      {"overlap", Two("[0,4]", "[3,7]"), 7, kCorrupt, "overlaps another tensor"},
      {"same bytes twice", Two("[0,4]", "[0,4]"), 4, kCorrupt, "overlaps another tensor"},
      {"gap", Two("[0,4]", "[5,9]"), 9, kCorrupt, "leaves a gap before it; wanted a begin at 4"},
      {"gap at the start", TensorEntry("U8", "[2]", "[1,3]"), 3, kCorrupt, "wanted a begin at 0"},
      {"trailing data", TensorEntry("U8", "[2]", "[0,2]"), 3, kCorrupt,
       "found 3 bytes of data, wanted the 2"},
      {"data without tensors", "{}", 1, kCorrupt, "found 1 bytes of data, wanted the 0"},
      {"end out of range", TensorEntry("U8", "[4]", "[0,4]"), 3, kCorrupt,
       "within the 3 bytes of data"},
      {"both out of range", TensorEntry("U8", "[4]", "[100,104]"), 4, kCorrupt,
       "within the 4 bytes of data"},
      {"end at 2^64-1", TensorEntry("U8", "[4]", "[0,18446744073709551615]"), 4, kCorrupt,
       "within the 4 bytes of data"},
      {"end beyond 2^64", TensorEntry("U8", "[4]", "[0,18446744073709551616]"), 4, kCorrupt,
       "18446744073709551616"},
      {"end before begin", Two("[4,0]", "[0,4]"), 4, kCorrupt, "wanted begin <= end"},
      {"too few bytes", TensorEntry("F32", "[2]", "[0,7]"), 7, kCorrupt,
       "of 7 bytes, wanted 8 for F32 [2]"},
      {"too many bytes", TensorEntry("F32", "[2]", "[0,9]"), 9, kCorrupt,
       "of 9 bytes, wanted 8 for F32 [2]"},
      {"product 2^64", TensorEntry("U8", "[4294967296,4294967296]", "[0,0]"), 0, kCorrupt,
       "more bytes than"},
      {"product with dtype 2^64", TensorEntry("F64", "[2305843009213693952]", "[0,0]"), 0, kCorrupt,
       "more bytes than"},
      {"product 2^64 + 4", TensorEntry("U8", "[3,6148914691236517207]", "[0,4]"), 4, kCorrupt,
       "more bytes than"},
      {"product above the address space", TensorEntry("U8", "[9223372036854775808]", "[0,0]"), 0,
       kCorrupt, "more bytes"},
      {"a 0 hides an overflow", TensorEntry("U8", "[0,4294967296,4294967296]", "[0,0]"), 0,
       kCorrupt, "more bytes than"},
      {"rank", TensorEntry("U8", "[1,1,1,1,1,1,1]", "[0,1]"), 1, ErrorCode::kUnsupported,
       "more than 6 extents"},
      {"endless rank",
       TensorEntry("U8", "[1" + std::string(200000, ' ') + ",1,1,1,1,1,1,1]", "[0,1]"), 1,
       ErrorCode::kUnsupported, "more than 6 extents"},
      {"unknown dtype", TensorEntry("F8_E4M3", "[1]", "[0,1]"), 1, ErrorCode::kUnsupported,
       "found dtype 'F8_E4M3', wanted"},
      {"dtype in small letters", TensorEntry("f32", "[1]", "[0,4]"), 4, ErrorCode::kUnsupported,
       "found dtype 'f32'"},
      {"dtype a number", R"({"x":{"dtype":1,"shape":[1],"data_offsets":[0,1]}})", 1, kCorrupt,
       "wanted a string"},
      {"negative extent", TensorEntry("U8", "[-1]", "[0,1]"), 1, kCorrupt, "shape: found -1"},
      {"fraction", TensorEntry("U8", "[1.0]", "[0,1]"), 1, kCorrupt, "shape: found 1.0"},
      {"exponent", TensorEntry("U8", "[1e0]", "[0,1]"), 1, kCorrupt, "shape: found 1.0"},
      {"infinite number", TensorEntry("U8", "[1e999]", "[0,1]"), 1, kCorrupt, "JSON breaks"},
      {"extent null", TensorEntry("U8", "[null]", "[0,1]"), 1, kCorrupt, "shape: found null"},
      {"extent true", TensorEntry("U8", "[true]", "[0,1]"), 1, kCorrupt, "shape: found true"},
      {"extent a string", TensorEntry("U8", R"(["1"])", "[0,1]"), 1, kCorrupt, "shape: found '1'"},
      {"shape a number", TensorEntry("U8", "1", "[0,1]"), 1, kCorrupt,
       "shape is 1; wanted an array"},
      {"shape an object", TensorEntry("U8", "{}", "[0,1]"), 1, kCorrupt,
       "shape is an object; wanted an array"},
      {"nested shape", TensorEntry("U8", "[[1]]", "[0,1]"), 1, kCorrupt, "shape: found an array"},
      {"nested offsets", TensorEntry("U8", "[1]", "[[0,1]]"), 1, kCorrupt,
       "data_offsets: found an array"},
      {"1 offset", TensorEntry("U8", "[1]", "[0]"), 1, kCorrupt, "found 1 data_offsets, wanted 2"},
      {"3 offsets", TensorEntry("U8", "[1]", "[0,1,1]"), 1, kCorrupt,
       "found 3 data_offsets, wanted 2"},
      {"no offsets", R"({"x":{"dtype":"U8","shape":[0]}})", 0, kCorrupt,
       "data_offsets is absent; wanted an array"},
      {"no dtype", R"({"x":{"shape":[1],"data_offsets":[0,1]}})", 1, kCorrupt,
       "dtype is absent; wanted a string"},
      {"no shape", R"({"x":{"dtype":"U8","data_offsets":[0,1]}})", 1, kCorrupt,
       "shape is absent; wanted an array"},
      {"a key too many", R"({"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"z":1}})", 1,
       kCorrupt, "the key 'z'"},
      {"dtype twice", R"({"x":{"dtype":"U8","dtype":"U8","shape":[1],"data_offsets":[0,1]}})", 1,
       kCorrupt, "two keys 'dtype'"},
      {"shape twice", R"({"x":{"dtype":"U8","shape":[1],"shape":[1],"data_offsets":[0,1]}})", 1,
       kCorrupt, "two keys 'shape'"},
      {"tensor twice", R"({"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"x":{}})", 1,
       kCorrupt, "two keys 'x'"},
      {"tensor twice by escape",
       R"({"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"\u0078":{}})", 1, kCorrupt,
       "two keys 'x'"},
      {"metadata twice", R"({"__metadata__":{},"__metadata__":{}})", 0, kCorrupt,
       "two keys '__metadata__'"},
      {"metadata key twice", R"({"__metadata__":{"k":"1","k":"2"}})", 0, kCorrupt, "two keys 'k'"},
      {"metadata number", R"({"__metadata__":{"nhead":4}})", 0, kCorrupt,
       "'nhead': found 4, wanted a string"},
      {"metadata object", R"({"__metadata__":{"nhead":{}}})", 0, kCorrupt,
       "'nhead': found an object"},
      {"metadata array", R"({"__metadata__":[]})", 0, kCorrupt,
       "metadata: found an array of 0, wanted an object"},
      {"tensor a string", R"({"x":"y"})", 0, kCorrupt, "'x': found 'y'; wanted an object"},
      {"array at the top", "[]", 0, kCorrupt, "found '[' at its start, wanted '{'"},
      {"space at the start", " {}", 0, kCorrupt, "found ' ' at its start, wanted '{'"},
      {"empty header", "", 0, kCorrupt, "found nothing at its start"},
      {"only spaces", "        ", 0, kCorrupt, "wanted '{'"},
      {"cut JSON", R"({"x":{"dtype":"U8")", 0, kCorrupt, "JSON breaks"},
      {"second value", "{}{}", 0, kCorrupt, "JSON breaks"},
      {"comma at the end", R"({"__metadata__":{},})", 0, kCorrupt, "JSON breaks"},
      {"comment", "{/**/}", 0, kCorrupt, "JSON breaks"},
      {"NUL after the end", std::string("{}\0\0\0\0\0\0", 8), 0, kCorrupt, "NUL"},
      {"not UTF-8", "{\"__metadata__\":{\"\xFF\":\"\"}}", 0, kCorrupt, "JSON breaks"},
      {"unpaired surrogate", R"({"__metadata__":{"\ud800":""}})", 0, kCorrupt, "JSON breaks"},
      {"100000 arrays deep", R"({"x":)" + deep, 0, kCorrupt, "nested deeper than"},
      {"100000 arrays deep in a shape", R"({"x":{"shape":)" + deep, 0, kCorrupt,
       "nested deeper than"},
      {"100000 objects deep", deep_objects, 0, kCorrupt, "nested deeper than"},
  };
}

TEST(SafetensorsHostile, EachRuleHasItsError) {
  for (const Case& c : Cases()) {
    const std::vector<std::byte> bytes =
        SafetensorsBytes(c.header, std::string(c.data_bytes, '\1'));
    const Result<SafetensorsFile> file = SafetensorsFile::FromBytes(bytes, "file");
    EXPECT_TRUE(FailsWith(file, {c.message}, c.code)) << c.label;
    EXPECT_LT(file.status().message().size(), 400u) << c.label;
  }
}

TEST(SafetensorsHostile, HeaderLengths) {
  const std::string header = "{}";
  for (const uint64_t length : {uint64_t{3}, uint64_t{100000000}, uint64_t{100000001},
                                uint64_t{1} << 32, uint64_t{1} << 63, UINT64_MAX - 7, UINT64_MAX}) {
    EXPECT_TRUE(FailsWith(SafetensorsFile::FromBytes(SafetensorsBytes(length, header, ""), "file"),
                          {"header length of " + std::to_string(length) +
                           (length <= 100000000 ? ", wanted at most the 2 bytes that"
                                                : ", wanted at most 100000000")},
                          ErrorCode::kCorruptData))
        << length;
  }
}

TEST(SafetensorsHostile, NamesFromTheFileAreEscapedAndCutInErrors) {
  const std::string name = "\\u001b[31m'" + std::string(100000, 'n');
  const std::string header =
      R"({")" + name + R"(":{"dtype":"U8","shape":[1],"data_offsets":[0,2]}})";
  const std::vector<std::byte> bytes = SafetensorsBytes(header, "xy");
  const Result<SafetensorsFile> file = SafetensorsFile::FromBytes(bytes, "file");
  EXPECT_TRUE(FailsWith(file, {"'\\x1b[31m\\'nnn"}, kAnyCode));
  EXPECT_LT(file.status().message().size(), 400u);
  EXPECT_EQ(internal::Quoted(std::string(80, 'n')), "'" + std::string(80, 'n') + "'");
  EXPECT_EQ(internal::Quoted(std::string(81, 'n')), "'" + std::string(80, 'n') + "'... (81 bytes)");
}

TEST(SafetensorsHostile, ABoolThatIsNeither0Nor1IsAnError) {
  const std::vector<std::byte> bytes =
      SafetensorsBytes(TensorEntry("BOOL", "[3]", "[0,3]"), std::string("\0\1\2", 3));
  const SafetensorsFile file = Taken(SafetensorsFile::FromBytes(bytes, "file"));
  EXPECT_TRUE(
      FailsWith(file.Read("x"), {"found the byte 2 at element 2"}, ErrorCode::kCorruptData));
}

TEST(SafetensorsHostile, ThingsThatAreNoFiles) {
  const TemporaryFolder folder;
  Result<SafetensorsFile> file = SafetensorsFile::Open(folder.File("missing"));
  EXPECT_TRUE(FailsWith(file, {folder.File("missing")}, ErrorCode::kNotFound));

  file = SafetensorsFile::Open(folder.path().string());
  EXPECT_TRUE(FailsWith(file, {"found a folder, wanted a regular file"}, ErrorCode::kIo));

  file = SafetensorsFile::Open("/dev/null");
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.status().code(), ErrorCode::kIo);

  file = SafetensorsFile::Open("");
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.status().code(), ErrorCode::kNotFound);

  WriteBytes(folder.File("empty"), {});
  file = SafetensorsFile::Open(folder.File("empty"));
  EXPECT_TRUE(FailsWith(file, {"found 0 bytes"}, ErrorCode::kCorruptData));
  EXPECT_FALSE(SafetensorsFile::Open(folder.File("empty") + "/below").ok());
}

}  // namespace
}  // namespace encore
