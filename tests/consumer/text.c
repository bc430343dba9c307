// SPDX-License-Identifier: Apache-2.0
//
// A C program of somebody who uses encore::text: prints the vectors' similarity of two texts, or
// why there is none. With no arguments it only looks whether the library answers as its header
// says.

#include <stdio.h>
#include <string.h>

#include "encore/c_api.h"

// Whether a folder that is not there is an error with a sentence that names it.
static int answers(void) {
  encore_model* model = NULL;
  encore_open_options options = {.size = sizeof options, .threads = 1};
  const encore_status status = encore_open("no/such/folder", &options, &model);
  printf("encore %s says: %s\n", encore_version(), encore_last_error());
  return status == ENCORE_NOT_FOUND && model == NULL &&
         strstr(encore_last_error(), "no/such/folder") != NULL &&
         encore_c_api_version() == ENCORE_C_API_VERSION;
}

int main(int argc, char** argv) {
  enum { kMost = 4096 };
  static float vectors[2 * kMost];
  if (argc < 4) return answers() ? 0 : 1;

  encore_model* model = NULL;
  if (encore_open(argv[1], NULL, &model) != ENCORE_OK) {
    fprintf(stderr, "%s\n", encore_last_error());
    return 2;
  }
  const encore_text texts[2] = {{argv[2], strlen(argv[2])}, {argv[3], strlen(argv[3])}};
  const encore_status status =
      encore_encode(model, texts, 2, NULL, vectors, 2 * (size_t)kMost, NULL, NULL);
  if (status == ENCORE_OK) {
    const size_t n = encore_dimensions(model);
    double sum = 0;
    for (size_t i = 0; i < n; ++i) sum += (double)vectors[i] * (double)vectors[n + i];
    printf("%.4f\n", sum);
  } else {
    fprintf(stderr, "%s\n", encore_last_error());
  }
  encore_free(model);
  return status == ENCORE_OK ? 0 : 1;
}
