// SPDX-License-Identifier: Apache-2.0
//
// Memory's bandwidth by a program of its own, to hold that of `encore bench` against: each thread,
// bound to a core, reads a buffer of so many MiB over and over. Prints GB/s of all threads
// together: of the median and of the fastest of the passes.
//
//   cc -O3 -march=native -pthread bench/read_memory.c -o build/read_memory
//   chrt -f 50 build/read_memory 2 256

#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

enum { kPasses = 40 };

static size_t words;
static pthread_barrier_t barrier;
static double seconds[kPasses];

static double Now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void* Read(void* argument) {
  const intptr_t core = (intptr_t)argument;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET((int)core, &set);
  (void)sched_setaffinity(0, sizeof(set), &set);
  uint64_t* data = aligned_alloc(1 << 21, words * sizeof(*data));
  if (data == NULL) exit(1);
  (void)madvise(data, words * sizeof(*data), MADV_HUGEPAGE);
  for (size_t i = 0; i < words; ++i) data[i] = i;
  uint64_t sums[32] = {0};
  for (int pass = 0; pass < kPasses; ++pass) {
    pthread_barrier_wait(&barrier);
    const double start = Now();
    for (size_t i = 0; i < words; i += 32) {
      for (size_t j = 0; j < 32; ++j) sums[j] ^= data[i + j];
    }
    pthread_barrier_wait(&barrier);
    if (core == 0) seconds[pass] = Now() - start;
  }
  for (size_t j = 1; j < 32; ++j) sums[0] ^= sums[j];
  return (void*)(uintptr_t)sums[0];
}

static int Compare(const void* a, const void* b) {
  return *(const double*)a < *(const double*)b ? -1 : 1;
}

int main(int argc, char** argv) {
  const intptr_t threads = argc > 1 ? atoi(argv[1]) : 1;
  const size_t bytes = (size_t)(argc > 2 ? atoi(argv[2]) : 512) << 20;
  if (threads < 1 || threads > 256 || bytes == 0) return 2;
  words = bytes / sizeof(uint64_t);
  pthread_barrier_init(&barrier, NULL, (unsigned)threads);
  pthread_t others[256];
  for (intptr_t i = 1; i < threads; ++i) pthread_create(&others[i], NULL, Read, (void*)i);
  const uintptr_t sum = (uintptr_t)Read(NULL);
  for (intptr_t i = 1; i < threads; ++i) pthread_join(others[i], NULL);
  qsort(seconds, kPasses, sizeof(seconds[0]), Compare);
  const double all = 1e-9 * (double)threads * (double)bytes;
  printf("%.1f median, %.1f fastest (sum %d)\n", all / seconds[kPasses / 2], all / seconds[0],
         (int)(sum & 1));
  return 0;
}
