// SPDX-License-Identifier: Apache-2.0
//
// Locales that spell numbers differently, for tests: made by localedef in a temporary folder, or
// those of the machine where nothing makes them.

#ifndef ENCORE_TESTS_CLI_LOCALES_H_
#define ENCORE_TESTS_CLI_LOCALES_H_

#include <locale.h>

#include <clocale>
#include <cstdlib>
#include <locale>
#include <map>
#include <string>

#include "tests/support/safetensors_bytes.h"

namespace encore {

// "de_DE" as the locale of UTF-8, or null where the machine has neither what makes it nor, if it
// can make none at all, the locale itself. Lives as long as the process. Those of the machine are
// out of sight as soon as LOCPATH names a folder, so that the two are never mixed.
inline locale_t LocaleOf(const std::string& name) {
  static auto& known = *new std::map<std::string, locale_t>;  // never freed, nor are the locales
  const auto [place, is_new] = known.emplace(name, nullptr);
  if (!is_new) return place->second;
  const std::string full = name + ".UTF-8";
  static const TemporaryFolder made;
  const std::string command =
      "localedef -i " + name + " -f UTF-8 '" + made.File(full) + "' > /dev/null 2>&1";
  if (std::system(command.c_str()) == 0) ::setenv("LOCPATH", made.path().c_str(), 1);
  return place->second = ::newlocale(LC_ALL_MASK, full.c_str(), nullptr);
}

// How a host program chooses a locale.
enum class LocaleWay { kProcess, kThread, kCppGlobal };

// The locale is chosen for the time of a scope; LocaleOf(name) has found it.
class LocaleScope {
 public:
  LocaleScope(const std::string& name, LocaleWay way)
      : process_(std::setlocale(LC_ALL, nullptr)), thread_(::uselocale(nullptr)) {
    const std::string full = name + ".UTF-8";
    if (way == LocaleWay::kProcess) std::setlocale(LC_ALL, full.c_str());
    if (way == LocaleWay::kThread) ::uselocale(LocaleOf(name));
    if (way == LocaleWay::kCppGlobal) std::locale::global(std::locale(full));
  }
  LocaleScope(const LocaleScope&) = delete;
  LocaleScope& operator=(const LocaleScope&) = delete;
  ~LocaleScope() {
    std::locale::global(cpp_);
    std::setlocale(LC_ALL, process_.c_str());
    ::uselocale(thread_);
  }

 private:
  const std::locale cpp_;  // the global one
  const std::string process_;
  const locale_t thread_;
};

}  // namespace encore

#endif  // ENCORE_TESTS_CLI_LOCALES_H_
