# SPDX-License-Identifier: Apache-2.0
#
# The C++ header that mutate.py writes into its copy of the sources.

NAME = "tests/mutation/mutants.h"
TEXT = r"""// SPDX-License-Identifier: Apache-2.0
//
// What mutate.py writes into its copy of the sources: expressions that are those of the original,
// unless the mutant with their number is active. Constant expressions are never mutated.
//
//   ENCORE_MUTANT          the number of the active mutant; none, and the code is the original
//   ENCORE_MUTANT_REACHED  a file in which byte N becomes 1 where mutant N is evaluated

#ifndef ENCORE_TESTS_MUTATION_MUTANTS_H_
#define ENCORE_TESTS_MUTATION_MUTANTS_H_

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <type_traits>

namespace mutants {

inline constexpr long kMost = 1 << 16;  // bytes of the file
inline int active = 0;
inline unsigned char here[kMost];
inline unsigned char* reached = here;

// Before all static objects. The file is mapped by a system call of its own, since tests put
// functions of theirs in the place of mmap; a mapping is kept by processes that end in any way.
__attribute__((constructor(101))) inline void Start() {
  if (const char* id = std::getenv("ENCORE_MUTANT")) active = std::atoi(id);
  const char* path = std::getenv("ENCORE_MUTANT_REACHED");
  if (path == nullptr || reached != here) return;
  const int file = open(path, O_RDWR | O_CLOEXEC);
  const long at = syscall(SYS_mmap, nullptr, kMost, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0L);
  if (at > 0) reached = reinterpret_cast<unsigned char*>(at);
  close(file);
}

constexpr bool Active(int id) {
  if (std::is_constant_evaluated()) return false;
  reached[id] = 1;
  return active == id;
}

// x, or its opposite.
template <typename T>
constexpr bool Not(int id, T&& x) {
  return Active(id) != static_cast<bool>(x);
}

template <typename T>
constexpr T PlusOne(int id, T x) {
  return Active(id) ? x + 1 : x;
}

template <typename T>
constexpr T Min(int id, const T& a, const T& b) {
  return Active(id) ? std::max(a, b) : std::min(a, b);
}
template <typename T>
constexpr T Min(int id, std::initializer_list<T> list) {
  return Active(id) ? std::max(list) : std::min(list);
}
template <typename T>
constexpr T Max(int id, const T& a, const T& b) {
  return Active(id) ? std::min(a, b) : std::max(a, b);
}
template <typename T>
constexpr T Max(int id, std::initializer_list<T> list) {
  return Active(id) ? std::min(list) : std::max(list);
}

// `a < Less{7} < b` is a < b, or a <= b where mutant 7 is active: an operator between two of its
// own kind keeps its place in the order of operations, and nobody has to find where a and b begin.
#define ENCORE_MUTANT_OPERATOR(Name, op, other)                                      \
  struct Name {                                                                      \
    int id;                                                                          \
  };                                                                                 \
  template <typename L>                                                              \
  struct Name##Left {                                                                \
    const L& left;                                                                   \
    int id;                                                                          \
  };                                                                                 \
  template <typename L>                                                              \
  constexpr Name##Left<L> operator op(const L& left, Name name) {                    \
    return {left, name.id};                                                          \
  }                                                                                  \
  template <typename L, typename R>                                                  \
  constexpr auto operator op(Name##Left<L> l, const R& right)                        \
      ->std::decay_t<decltype(true ? l.left other right : l.left op right)> {        \
    return Active(l.id) ? l.left other right : l.left op right;                      \
  }
ENCORE_MUTANT_OPERATOR(Less, <, <=)
ENCORE_MUTANT_OPERATOR(LessEqual, <=, <)
ENCORE_MUTANT_OPERATOR(Greater, >, >=)
ENCORE_MUTANT_OPERATOR(GreaterEqual, >=, >)
ENCORE_MUTANT_OPERATOR(Equal, ==, !=)
ENCORE_MUTANT_OPERATOR(NotEqual, !=, ==)
ENCORE_MUTANT_OPERATOR(Plus, +, -)
ENCORE_MUTANT_OPERATOR(Minus, -, +)
ENCORE_MUTANT_OPERATOR(Times, *, +)
ENCORE_MUTANT_OPERATOR(Divided, /, *)
ENCORE_MUTANT_OPERATOR(Modulo, %, /)
#undef ENCORE_MUTANT_OPERATOR

}  // namespace mutants

#endif  // ENCORE_TESTS_MUTATION_MUTANTS_H_
"""
