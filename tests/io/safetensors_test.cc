// SPDX-License-Identifier: Apache-2.0
//
// Reading and writing of good safetensors files, and writes that fail.

#include "encore/safetensors.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <bit>
#include <cfenv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/bf16.h"
#include "tests/support/safetensors_bytes.h"
#include "tests/support/sanitizers.h"

namespace encore {
namespace {

template <typename T>
SafetensorsEntry Entry(std::string name, DType dtype, const Shape& shape,
                       const std::vector<T>& values) {
  return {std::move(name), dtype, shape, std::as_bytes(std::span(values))};
}

// A file in memory of one tensor [count], its data starting at a multiple of 8 plus `shift` (a U8
// tensor fills in).
std::vector<std::byte> OneTensor(DType dtype, size_t count, std::string data, size_t shift = 0) {
  std::string header = R"({"x":{"dtype":")" + std::string(DTypeName(dtype)) + R"(","shape":[)" +
                       std::to_string(count) + R"(],"data_offsets":[)" + std::to_string(shift) +
                       "," + std::to_string(shift + data.size()) +
                       R"(]},"fill":{"dtype":"U8","shape":[)" + std::to_string(shift) +
                       R"(],"data_offsets":[0,)" + std::to_string(shift) + "]}}";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  return SafetensorsBytes(header, std::string(shift, 'f') + data);
}

TEST(Safetensors, RoundTripOfEveryType) {
  const TemporaryFolder folder;
  const std::vector<uint8_t> bools = {0, 1, 1};
  const std::vector<uint8_t> u8 = {0, 255, 7, 9, 11};
  const std::vector<int8_t> i8 = {-128, 127};
  const std::vector<int32_t> i32 = {INT32_MIN, 0, INT32_MAX};
  const std::vector<int64_t> i64 = {INT64_MIN, -1, INT64_MAX};
  const std::vector<uint16_t> f16 = {0x3C00, 0x0001, 0xFC00};
  const std::vector<uint16_t> bf16 = {0x3F80};
  const std::vector<float> f32 = {1.5f,   -0.0f, std::numeric_limits<float>::infinity(),
                                  1e-45f, 2.0f,  3.0f};
  const std::vector<double> f64 = {0.1};
  const std::vector<float> none;
  const std::vector<SafetensorsEntry> entries = {
      Entry("bools", DType::kBool, {3}, bools),
      Entry("bytes \"quoted\" \u00e9\n", DType::kU8, {5, 1}, u8),
      Entry("i8", DType::kI8, {1, 2, 1, 1, 1, 1}, i8),
      Entry("i32", DType::kI32, {3}, i32),
      Entry("i64", DType::kI64, {3, 1}, i64),
      Entry("f16", DType::kF16, {3}, f16),
      Entry("bf16", DType::kBF16, {}, bf16),
      Entry("f32", DType::kF32, {2, 3}, f32),
      Entry("f64", DType::kF64, {}, f64),
      Entry("none", DType::kF32, {0, 3}, none),
      Entry("", DType::kF32, {6}, f32)};
  const SafetensorsMetadata metadata = {
      {"nhead", "4"}, {"a \"key\"", "line\nbreak \u00e9 \\"}, {"", ""}};
  const std::string path = folder.File("x.safetensors");
  Status status = WriteSafetensors(path, entries, metadata);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(folder.List(), std::vector<std::string>{"x.safetensors"});

  const SafetensorsFile file = Taken(SafetensorsFile::Open(path));
  EXPECT_EQ(file.name(), path);
  EXPECT_EQ(file.metadata(), metadata);
  ASSERT_EQ(file.tensors().size(), entries.size());
  for (size_t i = 0; i < entries.size(); ++i) {
    const SafetensorsEntry& got = file.tensors()[i];
    EXPECT_EQ(got.name, entries[i].name);
    EXPECT_EQ(got.dtype, entries[i].dtype) << got.name;
    EXPECT_EQ(got.shape, entries[i].shape) << got.name;
    ASSERT_EQ(got.bytes.size(), entries[i].bytes.size()) << got.name;
    EXPECT_TRUE(std::equal(got.bytes.begin(), got.bytes.end(), entries[i].bytes.begin()))
        << got.name;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(got.bytes.data()) % DTypeSize(got.dtype), 0u) << got.name;
    EXPECT_EQ(file.Find(entries[i].name), &got);
    const Tensor read = Taken(file.Read(entries[i].name));
    EXPECT_EQ(read.dtype(), entries[i].dtype);
    EXPECT_EQ(read.shape(), entries[i].shape);
    ASSERT_EQ(read.size_bytes(), entries[i].bytes.size());
    if (read.size_bytes() > 0) {
      EXPECT_EQ(std::memcmp(read.data(), entries[i].bytes.data(), read.size_bytes()), 0)
          << got.name;
    }
  }
  // The data of the aligned F32 tensor can be used where it lies; what Read gave can be written
  // again.
  const TensorView<const float> view = Taken(file.ViewF32("f32"));
  EXPECT_EQ((view)(0, 0), 1.5f);
  EXPECT_EQ((view)(1, 2), 3.0f);
  EXPECT_EQ(file.ViewF32("absent").status().code(), ErrorCode::kNotFound);
  EXPECT_EQ(file.ReadAsF32("absent").status().code(), ErrorCode::kNotFound);
  const Tensor again = Taken(file.Read("f32"));
  status = WriteSafetensors(folder.File("again"), std::vector{MakeSafetensorsEntry("f32", again)});
  ASSERT_TRUE(status.ok()) << status.message();
  const SafetensorsFile second = Taken(SafetensorsFile::Open(folder.File("again")));
  EXPECT_TRUE(std::equal(second.tensors()[0].bytes.begin(), second.tensors()[0].bytes.end(),
                         entries[7].bytes.begin(), entries[7].bytes.end()));
}

TEST(Safetensors, AFileWithoutTensors) {
  const TemporaryFolder folder;
  ASSERT_TRUE(WriteSafetensors(folder.File("none"), {}).ok());
  const std::vector<std::byte> bytes = ReadBytes(folder.File("none"));
  EXPECT_EQ(bytes, SafetensorsBytes("{}      "));
  const SafetensorsFile file = Taken(SafetensorsFile::Open(folder.File("none")));
  EXPECT_TRUE(file.tensors().empty());
  EXPECT_TRUE(file.metadata().empty());
  const Result<Tensor> missing = file.Read("x");
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.status().code(), ErrorCode::kNotFound);
}

// The exact bytes that the format's description asks for.
TEST(Safetensors, TheWriterKeepsTheOrderInTheHeaderAndAlignsTheData) {
  const TemporaryFolder folder;
  const std::vector<uint8_t> small = {'s'};
  const std::vector<uint64_t> large = {0x6C6C6C6C6C6C6C6Cu};
  const std::vector<SafetensorsEntry> entries = {Entry("s", DType::kU8, {1}, small),
                                                 Entry("l", DType::kI64, {}, large)};
  ASSERT_TRUE(WriteSafetensors(folder.File("x"), entries, {{"k", "v"}}).ok());
  const std::string header =
      R"({"__metadata__":{"k":"v"},"s":{"dtype":"U8","shape":[1],"data_offsets":[8,9]},)"
      R"("l":{"dtype":"I64","shape":[],"data_offsets":[0,8]}})";
  std::string padded = header;
  padded.resize((header.size() + 7) / 8 * 8, ' ');
  EXPECT_EQ(ReadBytes(folder.File("x")), SafetensorsBytes(padded, "lllllllls"));
}

TEST(Safetensors, UnalignedDataReadsTheSame) {
  std::string data(12, '\0');
  const float values[] = {1.25f, -3.0f, 1e30f};
  std::memcpy(data.data(), values, 12);
  for (size_t shift = 0; shift < 8; ++shift) {
    const std::vector<std::byte> bytes = OneTensor(DType::kF32, 3, data, shift);
    const SafetensorsFile file = Taken(SafetensorsFile::FromBytes(bytes));
    const Tensor read = Taken(file.ReadAsF32("x"));
    EXPECT_EQ(std::memcmp(read.data(), values, 12), 0) << shift;
    const Result<TensorView<const float>> view = file.ViewF32("x");
    EXPECT_EQ(view.ok(), shift % 4 == 0) << shift;
    if (!view.ok()) {
      EXPECT_EQ(view.status().code(), ErrorCode::kUnsupported);
    }
  }
}

// Every 16-bit pattern arrives as encore's own conversion has it (which bf16_test.cc checks against
// the definition).
TEST(Safetensors, SixteenBitTypesConvertExactly) {
  std::string data(2 * 65536, '\0');
  for (size_t i = 0; i < 65536; ++i) {
    data[2 * i] = static_cast<char>(i & 0xFF);
    data[2 * i + 1] = static_cast<char>(i >> 8);
  }
  for (const DType dtype : {DType::kF16, DType::kBF16}) {
    const std::vector<std::byte> bytes = OneTensor(dtype, 65536, data, 1);
    const SafetensorsFile file = Taken(SafetensorsFile::FromBytes(bytes));
    const Tensor read = Taken(file.ReadAsF32("x"));
    const TensorView<const float> view = read.View<float>();
    for (size_t i = 0; i < 65536; ++i) {
      const uint16_t half = static_cast<uint16_t>(i);
      const float want =
          dtype == DType::kF16 ? internal::F16ToF32(half) : internal::Bf16ToF32(half);
      ASSERT_EQ(std::bit_cast<uint32_t>(view(i)), std::bit_cast<uint32_t>(want)) << i;
    }
  }
}

TEST(Safetensors, DoublesRoundToNearestAndOverflowToInfinity) {
  const std::vector<double> values = {0.1,    1.0 + 0x1p-24, 1.0 + 0x1p-24 + 0x1p-50, 1e300, -1e300,
                                      1e-300, -0.0};
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> wanted = {0.1f, 1.0f, 1.0f + 0x1p-23f, infinity, -infinity, 0.0f, -0.0f};
  std::string data(values.size() * 8, '\0');
  std::memcpy(data.data(), values.data(), data.size());
  const std::vector<std::byte> bytes = OneTensor(DType::kF64, values.size(), data, 3);
  const SafetensorsFile file = Taken(SafetensorsFile::FromBytes(bytes));
  for (const int mode : {FE_TONEAREST, FE_UPWARD, FE_TOWARDZERO}) {  // of the caller
    ASSERT_EQ(std::fesetround(mode), 0);
    const Result<Tensor> read = file.ReadAsF32("x");
    std::fesetround(FE_TONEAREST);
    ASSERT_TRUE(read.ok()) << read.status().message();
    for (size_t i = 0; i < wanted.size(); ++i) {
      EXPECT_EQ(std::bit_cast<uint32_t>(read->View<float>()(i)), std::bit_cast<uint32_t>(wanted[i]))
          << i << " in mode " << mode;
    }
  }
}

TEST(Safetensors, ErrorsNameFileTensorFoundAndWanted) {
  const std::vector<std::byte> bytes = OneTensor(DType::kI64, 1, std::string(8, '\1'));
  const SafetensorsFile file = Taken(SafetensorsFile::FromBytes(bytes, "my file"));
  const Result<Tensor> integers = file.ReadAsF32("x");
  ASSERT_FALSE(integers.ok());
  EXPECT_EQ(integers.status().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(integers.status().message(),
            "my file: tensor 'x': found dtype I64, wanted F32, F64, F16 or BF16");
  const Result<Tensor> missing = file.Read("y");
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.status().code(), ErrorCode::kNotFound);
  EXPECT_EQ(missing.status().message(), "my file: no tensor 'y' among its 2: 'x', 'fill'");
}

TEST(Safetensors, CopiesKeepTheMappingAlive) {
  const TemporaryFolder folder;
  const std::vector<float> values = {1.0f, 2.0f};
  ASSERT_TRUE(
      WriteSafetensors(folder.File("x"), std::vector{Entry("x", DType::kF32, {2}, values)}).ok());
  std::optional<SafetensorsFile> copy;
  {
    const SafetensorsFile file = Taken(SafetensorsFile::Open(folder.File("x")));
    copy = file;
  }
  // Replacing the file leaves what is mapped as it was.
  const std::vector<float> others = {3.0f, 4.0f};
  ASSERT_TRUE(
      WriteSafetensors(folder.File("x"), std::vector{Entry("x", DType::kF32, {2}, others)}).ok());
  const TensorView<const float> view = Taken(copy->ViewF32("x"));
  EXPECT_EQ((view)(1), 2.0f);
}

// Each of these fails before anything is written.
TEST(SafetensorsWrite, BadEntriesAreRefused) {
  const TemporaryFolder folder;
  const std::vector<float> values = {1.0f, 2.0f};
  const SafetensorsEntry good = Entry("x", DType::kF32, {2}, values);
  SafetensorsEntry short_bytes = good;
  short_bytes.shape = Shape(3);
  SafetensorsEntry overflow = good;
  overflow.shape = Shape(size_t{1} << 32, size_t{1} << 32);
  SafetensorsEntry reserved = good;
  reserved.name = "__metadata__";
  SafetensorsEntry no_utf8 = good;
  no_utf8.name = "\xFF";
  const std::vector<std::vector<SafetensorsEntry>> bad = {
      {good, good}, {short_bytes}, {overflow}, {reserved}, {no_utf8}};
  for (const std::vector<SafetensorsEntry>& entries : bad) {
    EXPECT_TRUE(FailsWith(WriteSafetensors(folder.File("out"), entries), {"out: tensor "}));
  }
  EXPECT_EQ(WriteSafetensors(folder.File("out"), {}, {{"\xFF", ""}}).code(),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(WriteSafetensors(folder.File("out"), {}, {{"", "\xFF"}}).code(),
            ErrorCode::kInvalidArgument);
  EXPECT_TRUE(folder.List().empty());
  if (kSanitized) return;  // takes a minute
  EXPECT_EQ(WriteSafetensors(folder.File("out"), {}, {{"k", std::string(100000000, 'v')}}).code(),
            ErrorCode::kUnsupported);
  EXPECT_TRUE(folder.List().empty());
}

TEST(SafetensorsWrite, PlacesThatCannotBeWrittenTo) {
  const TemporaryFolder folder;
  EXPECT_EQ(WriteSafetensors(folder.File("no/such/folder"), {}).code(), ErrorCode::kNotFound);
  EXPECT_EQ(WriteSafetensors(folder.path().string(), {}).code(), ErrorCode::kIo);
  EXPECT_EQ(WriteSafetensors(folder.File(""), {}).code(), ErrorCode::kIo);
  EXPECT_EQ(WriteSafetensors("", {}).code(), ErrorCode::kIo);
  EXPECT_EQ(WriteSafetensors("/dev/null", {}).code(), ErrorCode::kIo);
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
  EXPECT_TRUE(folder.List().empty());
  std::filesystem::create_symlink("nowhere", folder.File("dangling"));
  EXPECT_EQ(WriteSafetensors(folder.File("dangling"), {}).code(), ErrorCode::kNotFound);
}

TEST(SafetensorsWrite, AnUnwritableFolderGivesAnErrorAndNoFile) {
  const TemporaryFolder folder;
  std::filesystem::permissions(
      folder.path(), std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec);
  // Root may write anywhere, so become somebody else for the moment.
  const bool root = ::geteuid() == 0;
  if (root) {
    std::filesystem::permissions(folder.path(), std::filesystem::perms(0555));
    ASSERT_EQ(::seteuid(65534), 0);
  }
  const Status status = WriteSafetensors(folder.File("out"), {});
  if (root) {
    ASSERT_EQ(::seteuid(0), 0);
  }
  std::filesystem::permissions(folder.path(), std::filesystem::perms::owner_all);
  EXPECT_TRUE(FailsWith(status, {folder.File("out")}, ErrorCode::kIo));
  EXPECT_TRUE(folder.List().empty());
}

// The disk is full half-way: here, the process may not write files of more than 64 KiB.
TEST(SafetensorsWrite, AWriteThatBreaksOffLeavesTheOldFileAndNothingElse) {
  const TemporaryFolder folder;
  const std::vector<float> old_values = {1.0f};
  const std::vector<float> new_values(1000000, 2.0f);
  ASSERT_TRUE(
      WriteSafetensors(folder.File("x"), std::vector{Entry("x", DType::kF32, {1}, old_values)})
          .ok());

  struct rlimit limit = {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &limit), 0);
  const struct rlimit small = {.rlim_cur = 65536, .rlim_max = limit.rlim_max};
  const auto old_handler = ::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const Status status = WriteSafetensors(
      folder.File("x"), std::vector{Entry("x", DType::kF32, {1000000}, new_values)});
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  ::signal(SIGXFSZ, old_handler);

  EXPECT_EQ(status.code(), ErrorCode::kIo) << status.message();
  EXPECT_EQ(folder.List(), std::vector<std::string>{"x"});
  const SafetensorsFile file = Taken(SafetensorsFile::Open(folder.File("x")));
  EXPECT_EQ((*file.ViewF32("x"))(0), 1.0f);
}

TEST(SafetensorsWrite, LinksAndPermissionsStay) {
  const TemporaryFolder folder;
  ASSERT_TRUE(WriteSafetensors(folder.File("real"), {}).ok());
  std::filesystem::permissions(folder.File("real"), std::filesystem::perms(0640));
  std::filesystem::create_symlink("real", folder.File("link"));
  ASSERT_TRUE(WriteSafetensors(folder.File("link"), {}, {{"k", "v"}}).ok());
  EXPECT_TRUE(std::filesystem::is_symlink(folder.File("link")));
  EXPECT_EQ(std::filesystem::status(folder.File("real")).permissions(),
            std::filesystem::perms(0640));
  const SafetensorsFile file = Taken(SafetensorsFile::Open(folder.File("real")));
  EXPECT_EQ(file.metadata().at("k"), "v");
  EXPECT_EQ(folder.List().size(), 2u);
}

}  // namespace
}  // namespace encore
