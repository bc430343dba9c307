// SPDX-License-Identifier: Apache-2.0
//
// A plugin's host: loads the shared encore::text, opens a model with two threads, embeds, lets a
// call fail, frees the model and unloads the library, many times over. The library must really be
// gone each time, and memory, descriptors and threads must not grow.
//
//   load_unload LIBRARY FOLDER TIMES

#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "encore/c_api.h"

static int fail(const char* what, const char* why) {
  fprintf(stderr, "load_unload: %s: %s\n", what, why);
  return 1;
}

// Entries of a folder of /proc, without . and .. and what opendir takes itself.
static long entries(const char* folder) {
  DIR* dir = opendir(folder);
  long count = 0;
  if (dir == NULL) return -1;
  while (readdir(dir) != NULL) ++count;
  closedir(dir);
  return count;
}

static long resident_kilobytes(void) {
  char line[256];
  long kilobytes = -1;
  FILE* file = fopen("/proc/self/status", "r");
  if (file == NULL) return -1;
  while (fgets(line, sizeof line, file) != NULL) sscanf(line, "VmRSS: %ld", &kilobytes);
  fclose(file);
  return kilobytes;
}

// Whether a mapping of this process has that in its name.
static int is_mapped(const char* name) {
  char line[4096];
  int found = 0;
  FILE* file = fopen("/proc/self/maps", "r");
  if (file == NULL) return 1;
  while (fgets(line, sizeof line, file) != NULL) found = found || strstr(line, name) != NULL;
  fclose(file);
  return found;
}

// A function of the library; ISO C has no cast from void* to one.
#define FIND(type, name)                                        \
  type name;                                                    \
  do {                                                          \
    void* found = dlsym(library, "encore_" #name);              \
    if (found == NULL) return fail("encore_" #name, dlerror()); \
    memcpy(&name, &found, sizeof name);                         \
  } while (0)

static int use(void* library, const char* folder) {
  typedef encore_status (*open_fn)(const char*, const encore_open_options*, encore_model**);
  typedef encore_status (*encode_fn)(const encore_model*, const encore_text*, size_t,
                                     const encore_encode_options*, float*, size_t, size_t*,
                                     size_t*);
  typedef const char* (*last_error_fn)(void);
  typedef void (*free_fn)(encore_model*);
  encore_open_options options = {0};
  encore_model* model = NULL;
  encore_text texts[40];
  static float vectors[40 * 32];
  size_t i;
  FIND(open_fn, open);
  FIND(encode_fn, encode);
  FIND(last_error_fn, last_error);
  FIND(free_fn, free);
  options.size = sizeof options;
  options.threads = 2;
  if (open(folder, &options, &model) != ENCORE_OK) return fail("encore_open", last_error());
  for (i = 0; i < 40; ++i) {
    texts[i].data = "The c\xC3\xA4t sat on the mat and looked at all the other mats.";
    texts[i].size = strlen(texts[i].data);
  }
  if (encode(model, texts, 40, NULL, vectors, 40 * 32, NULL, NULL) != ENCORE_OK) {
    return fail("encore_encode", last_error());
  }
  if (encode(model, texts, 40, NULL, vectors, 1, NULL, NULL) == ENCORE_OK || *last_error() == 0) {
    return fail("encore_encode", "an array that is too small passed");
  }
  free(model);
  return 0;
}

int main(int argc, char** argv) {
  long times, time, kilobytes = 0, threads = 0, descriptors = 0;
  if (argc != 4) return fail("arguments", "wanted LIBRARY FOLDER TIMES");
  times = atol(argv[3]);
  for (time = 1; time <= times; ++time) {
    void* library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) return fail(argv[1], dlerror());
    if (use(library, argv[2]) != 0) return 1;
    if (dlclose(library) != 0) return fail("dlclose", dlerror());
    if (dlopen(argv[1], RTLD_NOW | RTLD_NOLOAD) != NULL || is_mapped("libencore")) {
      return fail(argv[1], "is still there after dlclose");
    }
    // The first ones load what else there is, and warm the allocator up.
    if (time == times / 10) {
      kilobytes = resident_kilobytes();
      threads = entries("/proc/self/task");
      descriptors = entries("/proc/self/fd");
    }
  }
  printf("%ld times; memory %ld KiB, then %ld; threads %ld, then %ld; descriptors %ld, then %ld\n",
         times, kilobytes, resident_kilobytes(), threads, entries("/proc/self/task"), descriptors,
         entries("/proc/self/fd"));
  if (entries("/proc/self/task") > threads) return fail("threads", "there are more and more");
  if (entries("/proc/self/fd") > descriptors) return fail("descriptors", "more and more");
  if (resident_kilobytes() > kilobytes + 2048) return fail("memory", "it grows");
  return 0;
}
