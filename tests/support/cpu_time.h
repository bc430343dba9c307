// SPDX-License-Identifier: Apache-2.0
//
// CPU time of this process.

#ifndef ENCORE_TESTS_SUPPORT_CPU_TIME_H_
#define ENCORE_TESTS_SUPPORT_CPU_TIME_H_

#include <ctime>

namespace encore {

#if defined(CLOCK_PROCESS_CPUTIME_ID)
inline double ProcessCpuMilliseconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) * 1e-6;
}
#endif

}  // namespace encore

#endif  // ENCORE_TESTS_SUPPORT_CPU_TIME_H_
