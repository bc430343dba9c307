// SPDX-License-Identifier: Apache-2.0
//
// Pictures by their paths, some at a time: one batch is decoded while another is computed.

#include "tools/encore/embed_images.h"

#include <algorithm>
#include <cctype>
#include <chrono>
#include <filesystem>
#include <future>
#include <iostream>
#include <system_error>
#include <vector>

#include "engine/io/json_value.h"
#include "engine/platform/path.h"
#include "tools/encore/failure.h"
#include "tools/encore/progress.h"
#include "tools/encore/stop_signal.h"
#include "tools/encore/terminal.h"
#include "tools/encore/text.h"
#include "tools/images/decode_image.h"

namespace encore::tool {
namespace {

namespace fs = std::filesystem;
using images::DecodedImage;

// What a batch may have: few enough that memory is bounded, and enough for every thread.
constexpr size_t kMostPictures = 32;
constexpr size_t kMostBytes = size_t{128} << 20;  // of their pixels, but for the last one

struct Pictures {
  std::vector<std::string> paths;
  std::vector<std::string> ids;  // JSON
};

bool IsPicture(const fs::path& path) {
  std::string ending = internal::PathText(path.extension());
  std::transform(ending.begin(), ending.end(), ending.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return ending == ".png" || ending == ".jpg" || ending == ".jpeg" || ending == ".webp";
}

std::vector<std::string> PicturesOf(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code error;
  for (fs::recursive_directory_iterator file(internal::ToPath(folder), error), end;
       !error && file != end; file.increment(error)) {
    std::error_code unreadable;
    if (IsPicture(file->path()) && file->is_regular_file(unreadable)) {
      paths.push_back(internal::PathText(file->path()));
    }
  }
  if (error) throw Failure("--input " + Printable(folder) + ": " + error.message());
  if (paths.empty()) {
    throw Failure("--input " + Printable(folder) +
                  ": found no file whose name ends in .png, .jpg, .jpeg or .webp; wanted one");
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

Pictures FindPictures(const TextSource& source) {
  Pictures found;
  std::error_code error;
  const auto add = [&](std::string path, std::string id) {
    if (id.empty()) id = internal::JsonString(path).value_or(std::string());
    found.paths.push_back(std::move(path));
    found.ids.push_back(std::move(id));
  };
  const bool is_folder =
      source.path != "-" && fs::is_directory(internal::ToPath(source.path), error);
  if (is_folder || IsPicture(internal::ToPath(source.path))) {
    const std::vector<std::string> all =
        is_folder ? PicturesOf(source.path) : std::vector{source.path};
    for (size_t i = source.shard; i < all.size(); i += source.shards) add(all[i], "");
    return found;
  }
  TextChunks lines(source);
  while (lines.Next()) {
    for (size_t i = 0; i < lines.texts().size(); ++i) add(lines.texts()[i], lines.ids()[i]);
  }
  return found;
}

DecodedImage Decode(const std::string& path) {
  Result<DecodedImage> image = images::ReadImage(path);
  if (!image.ok()) throw Failure(Printable(image.status().message()));
  return *std::move(image);
}

// Of the paths from `first` on, as many as a batch may have.
std::vector<DecodedImage> DecodeBatch(const std::vector<std::string>& paths, size_t first) {
  std::vector<DecodedImage> batch;
  size_t bytes = 0;
  while (first + batch.size() < paths.size() && batch.size() < kMostPictures &&
         bytes < kMostBytes && !StopRequested()) {
    batch.push_back(Decode(paths[first + batch.size()]));
    bytes += batch.back().pixels.size();
  }
  return batch;
}

// Computes one picture of those that an earlier run has done in some, and compares all files.
void SkipWritten(const ImageEncoder& model, const ImageOptions& options, const Pictures& pictures,
                 ResumableOutput* output) {
  const size_t written = output->written();
  if (pictures.paths.size() < written) {
    throw Failure("--resume: --output has " + Counted(written, "row") + ", --input only " +
                  Counted(pictures.paths.size(), "picture"));
  }
  for (size_t row = 0; row < written; ++row) {
    if (StopRequested()) return;
    const std::string& path = pictures.paths[row];
    output->Add(path + FileState(path), pictures.ids[row]);
  }
  output->WantSameInputs();
  for (size_t row = 0; row < written && !StopRequested(); ++row) {
    if (!output->IsSample(row)) continue;
    const std::string& path = pictures.paths[row];
    const DecodedImage image = Decode(path);
    const ImageView view = image.View();
    const Tensor vector = Take(model.Encode({&view, 1}, options), Printable(path));
    output->WantVector(row, vector.View<float>(), pictures.ids[row], Printable(path));
  }
  std::cout << Counted(written, "picture") << " had been done before\n";
}

}  // namespace

int EmbedImages(const ImageEncoder& model, const ImageOptions& options, const TextSource& source,
                ResumableOutput* output) {
  const Pictures pictures = FindPictures(source);
  const std::vector<std::string>& paths = pictures.paths;
  if (output->written() > 0) SkipWritten(model, options, pictures, output);
  const auto started = std::chrono::steady_clock::now();
  const size_t before = output->written();
  size_t done = before;
  Progress bar(StderrIsTerminal(), static_cast<double>(paths.size() - done));
  const auto decode = [&](size_t first) {
    return std::async(std::launch::async, [&paths, first] { return DecodeBatch(paths, first); });
  };
  auto next = decode(done);
  while (done < paths.size()) {
    const std::vector<DecodedImage> batch = next.get();
    if (StopRequested()) break;
    const size_t after = done + batch.size();
    if (after < paths.size()) next = decode(after);
    bar.Begin(Grouped(static_cast<double>(done)) + " of " +
                  Grouped(static_cast<double>(paths.size())) + " pictures",
              static_cast<double>(batch.size()));
    std::vector<ImageView> views;
    for (const DecodedImage& image : batch) views.push_back(image.View());
    const Tensor vectors =
        Take(model.Encode(views, options), "pictures from " + Printable(paths[done]) + " on");
    const ConstView rows = vectors.View<float>();
    const size_t bad = output->FirstUnwritable(rows);
    if (bad < rows.dim(0)) {
      throw Failure(Printable(paths[done + bad]) +
                    ": a vector with nan or inf, which JSON and integers cannot hold; .npy in f32 "
                    "can");
    }
    const auto id = pictures.ids.begin() + static_cast<ptrdiff_t>(done);
    output->Write(rows, {id, id + static_cast<ptrdiff_t>(batch.size())});
    for (; done < after; ++done) {
      output->Add(paths[done] + FileState(paths[done]), pictures.ids[done]);
    }
  }
  bar.Clear();
  output->Commit();
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  std::cout << Counted(done - before, "picture") << " in " << Number(seconds, 2) << " s ("
            << Grouped(static_cast<double>(done - before) / std::max(seconds, 1e-3))
            << " pictures/s)\n";
  return output->ExitStatus();
}

}  // namespace encore::tool
