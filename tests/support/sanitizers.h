// SPDX-License-Identifier: Apache-2.0
//
// What this build is checked with or emulated by, for tests that must be smaller or different
// there. ENCORE_TEST_EMULATED comes from tests/CMakeLists.txt.

#ifndef ENCORE_TESTS_SUPPORT_SANITIZERS_H_
#define ENCORE_TESTS_SUPPORT_SANITIZERS_H_

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

#ifndef ENCORE_TEST_EMULATED
#define ENCORE_TEST_EMULATED 0
#endif

namespace encore {

inline constexpr bool kSanitized = ENCORE_TEST_ASAN || ENCORE_TEST_TSAN;
inline constexpr bool kEmulated = ENCORE_TEST_EMULATED;

// Everything is several times slower: fewer sizes and rounds, chosen so that each kind remains.
inline constexpr bool kSlow = kSanitized || kEmulated;

}  // namespace encore

#endif  // ENCORE_TESTS_SUPPORT_SANITIZERS_H_
