// SPDX-License-Identifier: Apache-2.0
//
// For programs whose tests ask for sizes that no machine has: the sanitizers refuse them as malloc
// does, and do not end the program.

extern "C" {
const char* __asan_default_options();
const char* __tsan_default_options();

const char* __asan_default_options() { return "allocator_may_return_null=1"; }
const char* __tsan_default_options() { return "allocator_may_return_null=1"; }
}
