// SPDX-License-Identifier: Apache-2.0
//
// What this build is checked with, for tests that must be smaller or different there.

#ifndef ENCORE_TESTS_SANITIZERS_H_
#define ENCORE_TESTS_SANITIZERS_H_

#if defined(__SANITIZE_ADDRESS__)
#define ENCORE_TEST_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ENCORE_TEST_ASAN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define ENCORE_TEST_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define ENCORE_TEST_TSAN 1
#endif
#endif
#ifndef ENCORE_TEST_ASAN
#define ENCORE_TEST_ASAN 0
#endif
#ifndef ENCORE_TEST_TSAN
#define ENCORE_TEST_TSAN 0
#endif

namespace encore {

// Everything is several times slower.
inline constexpr bool kSanitized = ENCORE_TEST_ASAN || ENCORE_TEST_TSAN;

}  // namespace encore

#endif  // ENCORE_TESTS_SANITIZERS_H_
