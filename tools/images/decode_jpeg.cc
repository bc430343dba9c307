// SPDX-License-Identifier: Apache-2.0
//
// JPEG by libjpeg-turbo, whose errors jump: between setjmp and them no object has a destructor.

#ifdef ENCORE_HAVE_JPEG

#include <csetjmp>
#include <cstdio>
#include <cstring>

// After <cstdio>, which it wants.
#include <jerror.h>
#include <jpeglib.h>

#include "tools/images/decode_formats.h"

namespace encore::images {
namespace {

// Scans of a progressive file: a small one may have any number, each of which takes as long as the
// whole picture.
constexpr int kMaxScans = 500;

struct JpegErrors {
  jpeg_error_mgr manager;  // first: libjpeg knows this alone
  std::jmp_buf place;
  char sentence[JMSG_LENGTH_MAX];
};

void Fail(j_common_ptr info) {
  auto* const errors = reinterpret_cast<JpegErrors*>(info->err);
  (*info->err->format_message)(info, errors->sentence);
  std::longjmp(errors->place, 1);
}

// Warnings are of damage that Pillow lets pass too, but for files that end too early.
void Warn(j_common_ptr info, int level) {
  if (level < 0 && info->err->msg_code == JWRN_JPEG_EOF) Fail(info);
}

void WatchScans(j_common_ptr info) {
  if (reinterpret_cast<j_decompress_ptr>(info)->input_scan_number > kMaxScans) {
    info->err->msg_code = JERR_BAD_PROGRESSION;
    Fail(info);
  }
}

// a b / 255, rounded.
int Scaled(int a, int b) {
  const int product = a * b + 128;
  return ((product >> 8) + product) >> 8;
}

// As Pillow, of the inverted values that Adobe's files have.
void CmykToRgb(const uint8_t* cmyk, size_t pixels, bool inverted, uint8_t* rgb) {
  for (size_t i = 0; i < pixels; ++i, cmyk += 4) {
    const auto ink = [&](size_t c) { return inverted ? 255 - cmyk[c] : int{cmyk[c]}; };
    const int light = 255 - ink(3);
    for (size_t c = 0; c < 3; ++c) *rgb++ = static_cast<uint8_t>(light - Scaled(ink(c), light));
  }
}

// Before the end of decoding, which frees the markers.
void KeepExif(const jpeg_decompress_struct& info, Decoding* decoding) {
  constexpr char kExif[] = "Exif\0";  // and another zero
  for (const jpeg_marker_struct* marker = info.marker_list; marker != nullptr;
       marker = marker->next) {
    if (marker->data_length < sizeof(kExif) ||
        std::memcmp(marker->data, kExif, sizeof(kExif)) != 0) {
      continue;
    }
    decoding->exif.assign(marker->data, marker->data + marker->data_length);
    break;
  }
}

void Decode(std::span<const uint8_t> bytes, jpeg_decompress_struct* info, JpegErrors* errors,
            std::vector<uint8_t>* row, Decoding* decoding) {
  if (setjmp(errors->place) != 0) {
    decoding->fault = errors->sentence;
    return;
  }
  jpeg_create_decompress(info);
  jpeg_progress_mgr progress = {};
  progress.progress_monitor = WatchScans;
  info->progress = &progress;
  jpeg_mem_src(info, bytes.data(), static_cast<unsigned long>(bytes.size()));
  jpeg_save_markers(info, JPEG_APP0 + 1, 0xFFFF);
  jpeg_read_header(info, TRUE);
  KeepExif(*info, decoding);
  const bool grey = info->jpeg_color_space == JCS_GRAYSCALE;
  const bool cmyk = info->num_components == 4;
  info->out_color_space = grey ? JCS_GRAYSCALE : cmyk ? JCS_CMYK : JCS_RGB;
  if (!decoding->Allocate(info->image_height, info->image_width, grey ? 1 : 3)) return;
  DecodedImage& image = decoding->image;
  jpeg_start_decompress(info);
  const size_t stride = image.width * image.channels;
  if (cmyk) row->resize(image.width * 4);
  while (info->output_scanline < info->output_height) {
    uint8_t* const out = image.pixels.data() + info->output_scanline * stride;
    uint8_t* line = cmyk ? row->data() : out;
    if (jpeg_read_scanlines(info, &line, 1) != 1) break;
    if (cmyk) CmykToRgb(line, image.width, info->saw_Adobe_marker != 0, out);
  }
  jpeg_finish_decompress(info);
}

}  // namespace

void DecodeJpeg(std::span<const uint8_t> bytes, Decoding* decoding) {
  jpeg_decompress_struct info = {};
  JpegErrors errors = {};
  std::vector<uint8_t> row;
  info.err = jpeg_std_error(&errors.manager);
  errors.manager.error_exit = Fail;
  errors.manager.emit_message = Warn;
  Decode(bytes, &info, &errors, &row, decoding);
  jpeg_destroy_decompress(&info);
}

}  // namespace encore::images

#endif  // ENCORE_HAVE_JPEG
