// SPDX-License-Identifier: Apache-2.0
//
// Texts to vectors in C99: prints how close two texts are, as the cosine between their vectors.
//
//   text_to_vectors FOLDER TEXT TEXT

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "encore/c_api.h"

static int Fail(void) {
  fprintf(stderr, "text_to_vectors: %s\n", encore_last_error());
  return 1;
}

int main(int argc, char** argv) {
  if (argc != 4) {
    fprintf(stderr, "usage: text_to_vectors FOLDER TEXT TEXT\n");
    return 2;
  }
  encore_open_options open_options = {.size = sizeof open_options};
  open_options.threads = 0;  // as many as there are usable cores
  encore_model* model;
  if (encore_open(argv[1], &open_options, &model) != ENCORE_OK) return Fail();

  const encore_text texts[] = {{argv[2], strlen(argv[2])}, {argv[3], strlen(argv[3])}};
  const size_t dimensions = encore_dimensions(model);
  if (dimensions == 0 || dimensions > SIZE_MAX / sizeof(float) / 2) {
    fprintf(stderr, "text_to_vectors: %s has no vectors of texts\n", argv[1]);
    encore_free(model);
    return 1;
  }
  float* vectors = malloc(2 * dimensions * sizeof *vectors);
  if (vectors == NULL) {
    fprintf(stderr, "text_to_vectors: out of memory\n");
    encore_free(model);
    return 1;
  }
  encore_encode_options encode_options = {.size = sizeof encode_options};
  encode_options.normalize = ENCORE_YES;
  size_t cut[2];
  int result = 0;
  if (encore_encode(model, texts, 2, &encode_options, vectors, 2 * dimensions, NULL, cut) !=
      ENCORE_OK) {
    result = Fail();
  } else {
    double cosine = 0;
    for (size_t i = 0; i < dimensions; ++i) {
      cosine += (double)vectors[i] * (double)vectors[dimensions + i];
    }
    printf("%.4f\n", cosine);
    if (cut[0] + cut[1] > 0) {
      printf("%zu tokens beyond the first %zu were left out\n", cut[0] + cut[1],
             encore_max_length(model));
    }
  }
  free(vectors);
  encore_free(model);
  return result;
}
