// SPDX-License-Identifier: Apache-2.0
//
// PNG by libpng, whose errors jump: between setjmp and them no object has a destructor.

#ifdef ENCORE_HAVE_PNG

#include <png.h>

#include <algorithm>
#include <csetjmp>
#include <cstring>

#include "tools/images/decode_formats.h"

namespace encore::images {
namespace {

struct PngSource {
  std::span<const uint8_t> rest;
  Decoding* decoding;
  std::vector<png_bytep> rows = {};
};

void Read(png_structp png, png_bytep out, size_t count) {
  auto* const source = static_cast<PngSource*>(png_get_io_ptr(png));
  if (count > source->rest.size()) png_error(png, "the file ends too early");
  std::memcpy(out, source->rest.data(), count);
  source->rest = source->rest.subspan(count);
}

void Fail(png_structp png, png_const_charp sentence) {
  static_cast<PngSource*>(png_get_error_ptr(png))->decoding->fault = sentence;
  png_longjmp(png, 1);
}

void Ignore(png_structp, png_const_charp) {}

// False with a fault.
bool Prepare(png_structp png, png_infop info, bool grey16, PngSource* source) {
  const auto colour = png_get_color_type(png, info);
  if (!grey16) png_set_strip_16(png);
  png_set_packing(png);
  if (colour == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(png);
  if (colour == PNG_COLOR_TYPE_GRAY) png_set_expand_gray_1_2_4_to_8(png);
  png_set_strip_alpha(png);  // palettes may have one too
  png_set_interlace_handling(png);
  png_read_update_info(png, info);
  const size_t channels = (colour & PNG_COLOR_MASK_COLOR) != 0 ? 3 : 1;
  const size_t height = png_get_image_height(png, info);
  const size_t width = png_get_image_width(png, info) * (grey16 ? 2 : 1);
  if (!source->decoding->Allocate(height, width, channels)) return false;
  DecodedImage& image = source->decoding->image;
  if (png_get_rowbytes(png, info) != width * channels) {
    source->decoding->fault = "rows of another length than their pixels";
    return false;
  }
  source->rows.resize(height);
  for (size_t y = 0; y < height; ++y) {
    source->rows[y] = image.pixels.data() + y * width * channels;
  }
  return true;
}

void Decode(png_structp png, png_infop info, PngSource* source) {
  if (setjmp(png_jmpbuf(png)) != 0) return;
  png_set_read_fn(png, source, Read);
  png_set_user_limits(png, 1 << 20, 1 << 20);
  png_set_chunk_malloc_max(png, 1 << 24);
  png_read_info(png, info);
  const bool grey16 =
      png_get_bit_depth(png, info) == 16 && png_get_color_type(png, info) == PNG_COLOR_TYPE_GRAY;
  if (!Prepare(png, info, grey16, source)) return;
  png_read_image(png, source->rows.data());
  png_read_end(png, info);
  png_uint_32 exif_size = 0;
  png_bytep exif = nullptr;
  if (png_get_eXIf_1(png, info, &exif_size, &exif) != 0 && exif != nullptr) {
    source->decoding->exif.assign(exif, exif + exif_size);
  }
  if (!grey16) return;
  DecodedImage& image = source->decoding->image;
  image.width /= 2;
  for (size_t i = 0; i < image.width * image.height; ++i) {
    const int value = image.pixels[2 * i] << 8 | image.pixels[2 * i + 1];
    image.pixels[i] = static_cast<uint8_t>(std::min(value, 255));
  }
  image.pixels.resize(image.width * image.height);
}

}  // namespace

void DecodePng(std::span<const uint8_t> bytes, Decoding* decoding) {
  PngSource source = {.rest = bytes, .decoding = decoding};
  png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &source, Fail, Ignore);
  png_infop info = png == nullptr ? nullptr : png_create_info_struct(png);
  if (info == nullptr) {
    decoding->fault = "no memory for libpng";
  } else {
    Decode(png, info, &source);
  }
  png_destroy_read_struct(&png, &info, nullptr);
}

}  // namespace encore::images

#endif  // ENCORE_HAVE_PNG
