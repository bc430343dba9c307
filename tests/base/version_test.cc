// SPDX-License-Identifier: Apache-2.0
//
// Tests of encore/version.h.

#include "encore/version.h"

#include <gtest/gtest.h>

#include <string>

namespace encore {
namespace {

TEST(VersionTest, TheLibrarysIsTheHeaders) {
  EXPECT_STREQ(Version(), ENCORE_VERSION_STRING);
  EXPECT_EQ(Version(), std::to_string(ENCORE_VERSION_MAJOR) + "." +
                           std::to_string(ENCORE_VERSION_MINOR) + "." +
                           std::to_string(ENCORE_VERSION_PATCH));
}

}  // namespace
}  // namespace encore
