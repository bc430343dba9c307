// SPDX-License-Identifier: Apache-2.0
//
// JSON files as trees with typed members, and folders: values, order, sentences of errors, hostile
// texts.

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "engine/io/folder.h"
#include "engine/io/json_members.h"
#include "engine/io/json_value.h"
#include "tests/support/results.h"

namespace encore::inline v0_1::internal {
namespace {

JsonValue Parsed(std::string_view text) {
  Result<JsonValue> value = JsonValue::Parse(text);
  EXPECT_TRUE(value.ok()) << value.status().message();
  return value.ok() ? *std::move(value) : JsonValue();
}

std::string ErrorOf(std::string_view text) {
  const Result<JsonValue> value = JsonValue::Parse(text);
  EXPECT_FALSE(value.ok()) << text;
  EXPECT_EQ(value.status().code(), ErrorCode::kCorruptData);
  return value.status().message();
}

TEST(JsonValue, KeepsKindsTextsAndOrder) {
  const JsonValue v = Parsed(
      R"({"z": [1, -2.5, "a\u00e9", true, false, null, {}], "a": {"k": 18446744073709551615}})");
  ASSERT_TRUE(v.is_object());
  ASSERT_EQ(v.members().size(), 2u);
  EXPECT_EQ(v.members()[0].first, "z");
  EXPECT_EQ(v.members()[1].first, "a");
  const std::vector<JsonValue>& z = v.Find("z")->items();
  ASSERT_EQ(z.size(), 7u);
  EXPECT_EQ(z[0].number(), 1);
  EXPECT_EQ(z[1].number(), -2.5);
  EXPECT_EQ(z[1].Described(), "-2.5");
  EXPECT_EQ(z[2].text(), "a\xC3\xA9");
  EXPECT_TRUE(z[3].is_bool() && z[3].boolean());
  EXPECT_TRUE(z[4].is_bool() && !z[4].boolean());
  EXPECT_TRUE(z[5].is_null());
  EXPECT_TRUE(z[6].is_object() && z[6].members().empty());
  uint64_t number = 0;
  EXPECT_TRUE(v.Find("a")->Find("k")->AsUnsigned(&number));
  EXPECT_EQ(number, std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(v.Find("absent"), nullptr);
  EXPECT_EQ(z[0].Find("of a number"), nullptr);
}

TEST(JsonValue, WholeNumbersAreNoFractionsAndNotNegative) {
  for (const char* text : {"3.0", "-1", "1e2", "18446744073709551616", "\"3\"", "true"}) {
    uint64_t number = 0;
    EXPECT_FALSE(Parsed(text).AsUnsigned(&number)) << text;
  }
}

TEST(JsonValue, DescribesNumbersAsTheyAre) {
  for (const char* text : {"0", "18446744073709551615", "-9223372036854775808", "0.5", "3.0",
                           "-0.0", "1e-12", "1e+300"}) {
    EXPECT_EQ(Parsed(text).Described(), text);
  }
}

// Every kind has an answer to every question.
TEST(JsonValue, OfAnotherKindIsEmpty) {
  for (const char* text : {"null", "true", "1", "-1", "0.5", "\"s\"", "[1]", "{\"a\": 1}"}) {
    const JsonValue v = Parsed(text);
    EXPECT_EQ(v.boolean(), v.is_bool()) << text;
    EXPECT_EQ(v.number() != 0, v.is_number()) << text;
    EXPECT_EQ(!v.text().empty(), v.is_string()) << text;
    EXPECT_EQ(!v.items().empty(), v.is_array()) << text;
    EXPECT_EQ(!v.members().empty(), v.is_object()) << text;
  }
}

TEST(JsonValue, NumbersAreRoundedToNearest) {
  EXPECT_EQ(Parsed("0.1").number(), 0.1);
  EXPECT_EQ(Parsed("-8.206492424011230469").number(), -8.206492424011230469);
  EXPECT_EQ(Parsed("1e-12").number(), 1e-12);
  EXPECT_EQ(Parsed("5e-324").number(), std::numeric_limits<double>::denorm_min());
  EXPECT_EQ(Parsed("1e-400").number(), 0);
}

TEST(JsonValue, RefusesWhatIsNoJson) {
  EXPECT_NE(ErrorOf("{\"a\": 1").find("byte"), std::string::npos);
  EXPECT_NE(ErrorOf("").find("byte"), std::string::npos);
  EXPECT_NE(ErrorOf("{} {}").find("byte 4"), std::string::npos);
  EXPECT_NE(ErrorOf(std::string_view("{}\0", 3)).find("NUL"), std::string::npos);
  EXPECT_NE(ErrorOf("\"\xFF\"").find("byte"), std::string::npos);
  ErrorOf("1e999");  // larger than any double
}

TEST(JsonValue, RefusesTwoKeysOfOneName) {
  EXPECT_EQ(ErrorOf(R"({"b": 1, "a": 2, "b": 3})"), "JSON has an object with two keys 'b'");
  Parsed(R"({"b": {"b": 1}, "a": {"b": 1}})");
}

TEST(JsonValue, KeepsAsManyAsAVocabularyHas) {
  constexpr uint64_t kCount = 70000;
  std::string object = "{";
  std::string array = "[";
  for (uint64_t i = 0; i < kCount; ++i) {
    const std::string end = i + 1 == kCount ? "" : ",";
    object += "\"" + std::to_string(i) + "\":" + std::to_string(i) + end;
    array += "\"" + std::to_string(i) + "\"" + end;
  }
  const JsonValue members = Parsed(object + "}");
  const JsonValue items = Parsed(array + "]");
  ASSERT_EQ(members.members().size(), kCount);
  ASSERT_EQ(items.items().size(), kCount);
  for (uint64_t i = 0; i < kCount; ++i) {
    const auto& [key, value] = members.members()[i];
    uint64_t number = 0;
    ASSERT_TRUE(value.AsUnsigned(&number));
    ASSERT_EQ(number, i);
    ASSERT_EQ(key, std::to_string(i));
    ASSERT_EQ(items.items()[i].text(), key);
  }
}

// More of them than room is made for ahead.
TEST(JsonValue, KeepsManyLargeArrays) {
  constexpr size_t kArrays = 40;
  constexpr size_t kItems = 4097;
  std::string array = "[0";
  for (size_t i = 1; i < kItems; ++i) array += ",0";
  std::string text = "[" + array + "]";
  for (size_t i = 1; i < kArrays; ++i) text += "," + array + "]";
  const JsonValue parsed = Parsed(text + "]");
  ASSERT_EQ(parsed.items().size(), kArrays);
  for (const JsonValue& one : parsed.items()) EXPECT_EQ(one.items().size(), kItems);
}

// Many members, as a vocabulary has, and keys of one hash, as somebody may choose them.
TEST(JsonValue, RefusesTwoKeysAmongMany) {
  for (const size_t hashes : {size_t{1}, size_t{1} << 13}) {
    std::vector<std::string> keys;
    for (size_t i = 0; keys.size() < 130; ++i) {
      const std::string key = "key" + std::to_string(i);
      if (std::hash<std::string_view>()(key) % hashes == 0) keys.push_back(key);
    }
    std::string text = "{";
    for (const std::string& key : keys) text += "\"" + key + "\": 1, ";
    EXPECT_EQ(Parsed(text + "\"last\": 1}").members().size(), keys.size() + 1);
    for (const size_t i : {size_t{0}, keys.size() / 2, keys.size() - 1}) {
      EXPECT_EQ(ErrorOf(text + "\"" + keys[i] + "\": 1}"),
                "JSON has an object with two keys '" + keys[i] + "'");
    }
  }
}

TEST(JsonValue, RefusesDepth) {
  const auto nested = [](size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  Parsed(nested(JsonValue::kMaxDepth));
  EXPECT_EQ(ErrorOf(nested(JsonValue::kMaxDepth + 1)), "JSON is nested deeper than 64 levels");
  ErrorOf(nested(1000000));
  ErrorOf(std::string(1000000, '['));
}

TEST(JsonValue, RefusesMoreValuesThanItsCallerTakes) {
  EXPECT_TRUE(JsonValue::Parse("[1, {\"a\": []}]", 4).ok());
  const Result<JsonValue> refused = JsonValue::Parse("[1, {\"a\": []}]", 3);
  EXPECT_EQ(refused.status().code(), ErrorCode::kCorruptData);
  EXPECT_EQ(refused.status().message(), "JSON has more than 3 values; wanted at most that");
}

TEST(JsonMembers, ReadsTypes) {
  const JsonValue v = Parsed(R"({"n": 3, "x": 0.5, "s": "t", "b": true, "null": null, "left": 1})");
  JsonMembers m(v, "config.json");
  EXPECT_EQ(m.Size("n", 7), 3u);
  EXPECT_EQ(m.Size("absent", 7), 7u);
  EXPECT_EQ(m.Size("null", 7), 7u);
  EXPECT_EQ(m.Number("x", 1), 0.5);
  EXPECT_EQ(m.String("s", "d"), "t");
  EXPECT_EQ(m.String("absent", "d"), "d");
  EXPECT_TRUE(m.Bool("b", false));
  EXPECT_FALSE(m.OptionalBool("null").has_value());
  EXPECT_TRUE(m.Has("n"));
  EXPECT_FALSE(m.Has("null"));
  EXPECT_TRUE(m.ok()) << m.status().message();
  EXPECT_EQ(m.Unread(), std::vector<std::string>{"left"});
  m.Ignore("left");
  EXPECT_TRUE(m.Unread().empty());
}

TEST(JsonMembers, NamesFileKeyFoundAndWanted) {
  const JsonValue v = Parsed(R"({"n": "three", "o": [1, 2], "p": -1})");
  const auto error = [&](auto read) {
    JsonMembers m(v, "config.json");
    read(m);
    EXPECT_FALSE(m.ok());
    return m.status().message();
  };
  EXPECT_EQ(error([](JsonMembers& m) { m.Size("n", 0); }),
            "config.json: n is 'three'; wanted a whole number of at least 0");
  EXPECT_EQ(error([](JsonMembers& m) { m.Size("p", 0); }),
            "config.json: p is -1; wanted a whole number of at least 0");
  EXPECT_EQ(error([](JsonMembers& m) { m.RequiredString("absent"); }),
            "config.json: absent is absent; wanted a string");
  EXPECT_EQ(error([](JsonMembers& m) { m.RequiredObject("o"); }),
            "config.json: o is an array of 2; wanted an object");
  EXPECT_EQ(error([](JsonMembers& m) { m.Bool("n", false); }),
            "config.json: n is 'three'; wanted true or false");
  // The first error stays.
  EXPECT_EQ(error([](JsonMembers& m) {
              m.Bool("n", false);
              m.RequiredArray("absent");
            }),
            "config.json: n is 'three'; wanted true or false");
}

TEST(JsonMembers, OfNoObject) {
  const JsonValue v = Parsed("[1]");
  JsonMembers m(v, "config.json");
  EXPECT_EQ(m.status().message(), "config.json: found an array of 1; wanted an object");
  EXPECT_EQ(m.Size("n", 5), 5u);
  EXPECT_TRUE(m.Unread().empty());
}

class FolderTest : public testing::Test {
 protected:
  FolderTest()
      : path_(std::filesystem::path(testing::TempDir()) /
              ("encore_folder_" +
               std::string(testing::UnitTest::GetInstance()->current_test_info()->name()))) {
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  ~FolderTest() override { std::filesystem::remove_all(path_); }
  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(path_ / name, std::ios::binary) << text;
  }
  const std::filesystem::path path_;
};

TEST_F(FolderTest, ReadsItsFiles) {
  Write("a.json", R"({"k": 1})");
  const Folder folder = Taken(Folder::Open(path_.string()));
  const Result<std::optional<JsonValue>> json = folder.ReadJson("a.json");
  ASSERT_TRUE(json.ok() && json->has_value());
  EXPECT_EQ((*json)->Find("k")->number(), 1);
  const std::optional<JsonValue> absent = Taken(folder.ReadJson("b.json"));
  EXPECT_FALSE(absent.has_value());
}

TEST_F(FolderTest, NamesWhatIsWrong) {
  Write("cut.json", R"({"k": )");
  std::filesystem::create_directory(path_ / "folder.json");
  const Folder folder = Taken(Folder::Open(path_.string()));
  const Result<std::optional<JsonValue>> cut = folder.ReadJson("cut.json");
  EXPECT_TRUE(FailsWith(cut, {"cut.json"}, ErrorCode::kCorruptData));
  EXPECT_EQ(folder.Read("folder.json").status().code(), ErrorCode::kIo);
  EXPECT_EQ(Folder::Open((path_ / "absent").string()).status().code(), ErrorCode::kNotFound);
  EXPECT_EQ(Folder::Open((path_ / "cut.json").string()).status().code(),
            ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace encore::internal
