// SPDX-License-Identifier: Apache-2.0
//
// A program that loads two shared libraries, each with an encore inside: to set the SIMD target of
// one must leave the other's alone. Exits with 1 if it does not.

#include <cstdio>
#include <string>

extern "C" {
const char* first_set_target(const char* name);
const char* first_active_target();
const char* first_product();
const char* first_last_target();
const char* second_set_target(const char* name);
const char* second_active_target();
const char* second_product();
const char* second_last_target();
}

int main() {
  const std::string last = first_last_target();
  const std::string best = second_active_target();
  const std::string product = second_product();
  if (last == best) {
    std::printf("one SIMD target only (%s): nothing to compare\n", best.c_str());
    return 0;
  }
  int wrong = 0;
  const auto expect = [&](const char* what, const std::string& found, const std::string& wanted) {
    if (found == wanted) return;
    std::printf("%s is %s, wanted %s\n", what, found.c_str(), wanted.c_str());
    ++wrong;
  };
  if (const char* error = first_set_target(last.c_str())) {
    std::printf("%s\n", error);
    ++wrong;
  }
  expect("the first copy's target", first_active_target(), last);
  // The targets without FMA round the product first.
  if (last == "SSE2") expect("the first copy's product", first_product(), "0.000000");
  expect("the second copy's target", second_active_target(), best);
  expect("the second copy's product", second_product(), product);
  return wrong == 0 ? 0 : 1;
}
