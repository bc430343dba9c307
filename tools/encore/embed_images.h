// SPDX-License-Identifier: Apache-2.0
//
// `encore embed --images`: a vector for each picture.

#ifndef ENCORE_TOOLS_ENCORE_EMBED_IMAGES_H_
#define ENCORE_TOOLS_ENCORE_EMBED_IMAGES_H_

#include "encore/image_encoder.h"
#include "tools/encore/resumable_output.h"
#include "tools/encore/text_input.h"

namespace encore::tool {

// The pictures of `source`, whose path is one of these: a picture; a folder, of which all PNG, JPEG
// and WebP files count, those of folders in it too, in the order of their paths; or a text file or
// "-" with a path in place of each text. A row's id is that of the input, else the path. Pictures
// are decoded while those before are computed. Goes on after the rows that the output has. Returns
// the exit status; throws Failure.
int EmbedImages(const ImageEncoder& model, const ImageOptions& options, const TextSource& source,
                ResumableOutput* output);

}  // namespace encore::tool

#endif  // ENCORE_TOOLS_ENCORE_EMBED_IMAGES_H_
