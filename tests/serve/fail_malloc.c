// SPDX-License-Identifier: Apache-2.0
//
// For LD_PRELOAD: malloc and the like without memory, each ENCORE_FAIL_EVERY-th time that they are
// called in the process. SIGUSR2 begins and ends it.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

extern void* __libc_malloc(size_t size);
extern void* __libc_calloc(size_t count, size_t size);
extern void* __libc_realloc(void* memory, size_t size);
extern void* __libc_memalign(size_t alignment, size_t size);

static atomic_bool on;
static atomic_ulong calls;
static unsigned long every = 1000;

static void Switch(int number) {
  (void)number;
  atomic_store(&on, !atomic_load(&on));
}

__attribute__((constructor)) static void Start(void) {
  const char* const text = getenv("ENCORE_FAIL_EVERY");
  if (text != NULL) every = strtoul(text, NULL, 10);
  struct sigaction action;
  memset(&action, 0, sizeof(action));
  action.sa_handler = Switch;
  action.sa_flags = SA_RESTART;
  sigaction(SIGUSR2, &action, NULL);
}

static int Fails(void) {
  if (!atomic_load(&on) || (atomic_fetch_add(&calls, 1) + 1) % every != 0) return 0;
  errno = ENOMEM;
  return 1;
}

void* malloc(size_t size) { return Fails() ? NULL : __libc_malloc(size); }
void* calloc(size_t count, size_t size) { return Fails() ? NULL : __libc_calloc(count, size); }
void* realloc(void* memory, size_t size) { return Fails() ? NULL : __libc_realloc(memory, size); }
void* aligned_alloc(size_t alignment, size_t size) {
  return Fails() ? NULL : __libc_memalign(alignment, size);
}
