// SPDX-License-Identifier: Apache-2.0
//
// `encore embed --images`: a vector for each picture.

#ifndef ENCORE_TOOLS_ENCORE_EMBED_IMAGES_H_
#define ENCORE_TOOLS_ENCORE_EMBED_IMAGES_H_

#include <string>

#include "encore/image_encoder.h"
#include "tools/encore/text_input.h"
#include "tools/encore/vector_file.h"

namespace encore::tool {

// The pictures of `source`, whose path is one of these: a picture; a folder, of which all PNG, JPEG
// and WebP files count, those of folders in it too, in the order of their paths; or a text file or
// "-" with a path in place of each text. A row's id is that of the input, else the path. Pictures
// are decoded while those before are computed. Returns the exit status; throws Failure.
int EmbedImages(const ImageEncoder& model, const ImageOptions& options, const TextSource& source,
                const std::string& output, const VectorLayout& layout);

}  // namespace encore::tool

#endif  // ENCORE_TOOLS_ENCORE_EMBED_IMAGES_H_
