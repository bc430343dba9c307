// SPDX-License-Identifier: Apache-2.0
//
// The main function of every test program: GoogleTest's, with one argument more.
//   --file=softmax_test.cc   the tests of that source file alone; an error if it has none;
//                            given more than once, the tests of all those files

#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <string_view>

namespace {

// The names of a file's tests, as GoogleTest's filter has them; empty if there are none.
std::string FilterOf(std::string_view file) {
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  std::string filter;
  for (int s = 0; s < all.total_test_suite_count(); ++s) {
    const testing::TestSuite& suite = *all.GetTestSuite(s);
    for (int t = 0; t < suite.total_test_count(); ++t) {
      const testing::TestInfo& test = *suite.GetTestInfo(t);
      const std::string_view path = test.file();
      if (path.substr(path.find_last_of("/\\") + 1) != file) continue;  // npos + 1 is 0
      if (!filter.empty()) filter += ':';
      filter += suite.name();
      filter += '.';
      filter += test.name();
    }
  }
  return filter;
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  constexpr std::string_view kFile = "--file=";
  std::string filter;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument.substr(0, kFile.size()) != kFile) {
      std::fprintf(stderr, "unknown argument '%s'; wanted --file=NAME_test.cc\n", argv[i]);
      return 2;
    }
    const std::string tests = FilterOf(argument.substr(kFile.size()));
    if (tests.empty()) {
      std::fprintf(stderr, "%s: no test here is of that file\n", argv[i]);
      return 2;
    }
    filter += (filter.empty() ? "" : ":") + tests;
  }
  if (!filter.empty()) {
#ifdef GTEST_FLAG_SET
    GTEST_FLAG_SET(filter, filter);
#else
    testing::GTEST_FLAG(filter) = filter;
#endif
  }
  return RUN_ALL_TESTS();
}
