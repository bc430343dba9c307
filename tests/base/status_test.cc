// SPDX-License-Identifier: Apache-2.0
//
// Tests of encore/status.h.

#include "encore/status.h"

#include <gtest/gtest.h>

#include <memory>
#include <sstream>
#include <string>
#include <type_traits>
#include <utility>

#include "engine/base/first_failure.h"

namespace encore {
namespace {

TEST(StatusTest, DefaultIsSuccess) {
  const Status status;
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(status.code(), ErrorCode::kOk);
  EXPECT_EQ(status.message(), "");
}

TEST(StatusTest, KeepsCodeAndSentence) {
  const Status status(ErrorCode::kNotFound, "no tensor 'x'");
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(status.code(), ErrorCode::kNotFound);
  EXPECT_EQ(status.message(), "no tensor 'x'");
  EXPECT_EQ(InvalidArgument("bad").code(), ErrorCode::kInvalidArgument);
}

TEST(StatusTest, EveryCodeHasItsName) {
  EXPECT_EQ(ErrorCodeName(ErrorCode::kOk), "Ok");
  EXPECT_EQ(ErrorCodeName(ErrorCode::kInvalidArgument), "InvalidArgument");
  EXPECT_EQ(ErrorCodeName(ErrorCode::kNotFound), "NotFound");
  EXPECT_EQ(ErrorCodeName(ErrorCode::kUnsupported), "Unsupported");
  EXPECT_EQ(ErrorCodeName(ErrorCode::kCorruptData), "CorruptData");
  EXPECT_EQ(ErrorCodeName(ErrorCode::kIo), "Io");
  EXPECT_EQ(ErrorCodeName(ErrorCode::kOutOfMemory), "OutOfMemory");
  EXPECT_EQ(ErrorCodeName(static_cast<ErrorCode>(99)), "Unknown");
}

TEST(StatusTest, PrintsItsCodeAndSentence) {
  std::ostringstream out;
  out << Status() << "; " << Status(ErrorCode::kNotFound, "no tensor 'x'");
  EXPECT_EQ(out.str(), "Ok; NotFound: no tensor 'x'");
}

// What a temporary gives is a value of its own.
static_assert(std::is_same_v<decltype(std::declval<Result<int>>().status()), Status>);
static_assert(std::is_same_v<decltype(std::declval<Status>().message()), std::string>);
static_assert(std::is_same_v<decltype(std::declval<Result<int>&>().status()), const Status&>);

TEST(ResultTest, HoldsAValueOrAStatus) {
  const Result<int> value = 7;
  ASSERT_TRUE(value.ok());
  EXPECT_EQ(*value, 7);
  EXPECT_TRUE(value.status().ok());
  const Result<int> error = InvalidArgument("seven expected");
  ASSERT_FALSE(error.ok());
  EXPECT_EQ(error.status().message(), "seven expected");
}

TEST(ResultTest, ASuccessfulStatusIsNoValue) {
  const Result<int> result = Status();
  EXPECT_FALSE(result.ok());
  EXPECT_FALSE(result.status().ok());
}

TEST(ResultTest, MovesOutWhatCannotBeCopied) {
  Result<std::unique_ptr<std::string>> result = std::make_unique<std::string>("text");
  ASSERT_TRUE(result.ok());
  EXPECT_EQ((*result)->size(), 4u);
  const std::unique_ptr<std::string> text = *std::move(result);
  EXPECT_EQ(*text, "text");
}

TEST(ResultTest, GivesItsValueOrAnother) {
  const Result<std::string> value = std::string("text");
  EXPECT_EQ(value.value(), "text");
  EXPECT_EQ(value.value_or("other"), "text");
  const Result<std::string> error = InvalidArgument("seven expected");
  EXPECT_EQ(error.value_or("other"), "other");
  EXPECT_EQ(Result<std::string>(error).value_or("other"), "other");
  EXPECT_EQ(*Result<std::unique_ptr<int>>(std::make_unique<int>(7)).value_or(nullptr), 7);
  EXPECT_EQ(Result<std::unique_ptr<int>>(Status()).value_or(nullptr), nullptr);
  static_assert(std::is_same_v<decltype(std::declval<Result<int>>().value()), int&&>);
  static_assert(std::is_same_v<decltype(std::declval<const Result<int>&>().value()), const int&>);
}

// A program that forgets ok() ends with the sentence, whatever it was compiled with.
TEST(ResultDeathTest, AFailedOneEndsTheProgramWithItsSentence) {
  const std::string said = "a failed Result was used: NotFound: no tensor 'x'";
  Result<std::string> error = Status(ErrorCode::kNotFound, "no tensor 'x'");
  const Result<std::string>& constant = error;
  EXPECT_DEATH((void)error->size(), said);
  EXPECT_DEATH((void)constant->size(), said);
  EXPECT_DEATH((void)(*error).size(), said);
  EXPECT_DEATH((void)(*constant).size(), said);
  EXPECT_DEATH((void)constant.value(), said);
  EXPECT_DEATH((void)*std::move(error), said);
}

TEST(FirstFailure, IsOneOfTheTasksOwn) {
  internal::FirstFailure failure;
  failure.Keep(Status());
  EXPECT_TRUE(failure.status().ok());
  failure.Keep(Status(ErrorCode::kIo, "a"));
  failure.Keep(Status(ErrorCode::kOutOfMemory, "b"));
  failure.Keep(Status());
  EXPECT_EQ(failure.status().code(), ErrorCode::kIo);
  EXPECT_EQ(failure.status().message(), "a");
}

}  // namespace
}  // namespace encore
