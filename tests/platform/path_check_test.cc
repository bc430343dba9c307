// SPDX-License-Identifier: Apache-2.0
//
// Tests of engine/platform/file_error.h: whoever opens a path refuses one with a zero byte, at
// which the system's calls would cut it off.

#include "engine/platform/file_error.h"

#include <gtest/gtest.h>

#include <string>

#include "encore/safetensors.h"
#include "encore/text_encoder.h"
#include "encore/tokenizer.h"
#include "encore/torch_weights.h"
#include "engine/io/folder.h"
#include "engine/platform/file_writer.h"
#include "engine/platform/mapped_file.h"
#include "tests/support/safetensors_bytes.h"

namespace encore::inline v0_1::internal {
namespace {

TEST(PathCheckTest, ZeroBytesAreRefusedByName) {
  EXPECT_TRUE(CheckPath("a/b").ok());
  const TemporaryFolder folder;
  const std::string file = folder.File("f");
  WriteBytes(file, SafetensorsBytes("{}"));
  // Without the check each of these opens what stands before the zero.
  const std::string bad_file = file + std::string("\0.old", 5);
  const std::string bad_folder = folder.path().string() + std::string("\0/x", 3);
  const auto refused = [](const Status& status, const char* what) {
    EXPECT_TRUE(FailsWith(status, {"has a zero byte at "})) << what;
    EXPECT_EQ(status.message().find('\0'), std::string::npos) << what;
  };
  refused(MappedFile::Open(bad_file).status(), "MappedFile::Open");
  refused(MappedFile::OpenCopy(bad_file).status(), "MappedFile::OpenCopy");
  refused(FileWriter::Create(bad_file).status(), "FileWriter::Create");
  refused(Folder::Open(bad_folder).status(), "Folder::Open");
  refused(SafetensorsFile::Open(bad_file).status(), "SafetensorsFile::Open");
  refused(TorchWeights::Open(bad_file).status(), "TorchWeights::Open");
  refused(WriteSafetensors(bad_file, {}), "WriteSafetensors");
  refused(Tokenizer::Open(bad_folder).status(), "Tokenizer::Open");
  refused(TextEncoder::Open(bad_folder).status(), "TextEncoder::Open");
  EXPECT_EQ(ReadBytes(file), SafetensorsBytes("{}"));
}

}  // namespace
}  // namespace encore::internal
