// SPDX-License-Identifier: Apache-2.0
//
// CLocaleScope: the calling thread has the C locale for the time of a scope, whatever the process
// or the thread has chosen. For libraries that read numbers with strtod.

#ifndef ENCORE_ENGINE_PLATFORM_C_LOCALE_H_
#define ENCORE_ENGINE_PLATFORM_C_LOCALE_H_

#if defined(__unix__)
#include <locale.h>
#define ENCORE_HAVE_USELOCALE 1
#elif defined(__APPLE__)
#include <xlocale.h>
#define ENCORE_HAVE_USELOCALE 1
#else
#if defined(_WIN32)
#include <locale.h>

#include <string>
#endif
#define ENCORE_HAVE_USELOCALE 0
#endif

namespace encore::inline v0_1::internal {

// Other threads keep their locale, and a setlocale of theirs does not reach this one meanwhile.
// Does nothing where the system has no locales of threads, or no memory for one.
class CLocaleScope {
 public:
  CLocaleScope(const CLocaleScope&) = delete;
  CLocaleScope& operator=(const CLocaleScope&) = delete;

#if ENCORE_HAVE_USELOCALE
  CLocaleScope() : c_(::newlocale(LC_ALL_MASK, "C", nullptr)) {
    if (c_ != nullptr) before_ = ::uselocale(c_);
  }
  ~CLocaleScope() {
    if (c_ == nullptr) return;
    (void)::uselocale(before_);
    ::freelocale(c_);
  }

 private:
  locale_t c_;
  locale_t before_ = nullptr;
#elif defined(_WIN32)
  CLocaleScope() : mode_(::_configthreadlocale(_ENABLE_PER_THREAD_LOCALE)) {
    if (const char* before = ::setlocale(LC_ALL, nullptr)) before_ = before;
    (void)::setlocale(LC_ALL, "C");
  }
  ~CLocaleScope() {
    (void)::setlocale(LC_ALL, before_.c_str());
    (void)::_configthreadlocale(mode_);
  }

 private:
  int mode_;
  std::string before_;
#else
  CLocaleScope() {}  // not the compiler's own, whose objects it takes for unused
#endif
};

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_PLATFORM_C_LOCALE_H_
