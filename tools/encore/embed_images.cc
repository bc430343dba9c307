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
#include "tools/encore/decode_image.h"
#include "tools/encore/failure.h"
#include "tools/encore/progress.h"
#include "tools/encore/stop_signal.h"
#include "tools/encore/terminal.h"
#include "tools/encore/text.h"

namespace encore::tool {
namespace {

namespace fs = std::filesystem;

// What a batch may have: few enough that memory is bounded, and enough for every thread.
constexpr size_t kMostPictures = 32;
constexpr size_t kMostBytes = size_t{128} << 20;  // of their pixels, but for the last one

struct Pictures {
  std::vector<std::string> paths;
  std::vector<std::string> ids;  // JSON
};

bool IsPicture(const fs::path& path) {
  std::string ending = path.extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return ending == ".png" || ending == ".jpg" || ending == ".jpeg" || ending == ".webp";
}

std::vector<std::string> PicturesOf(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code error;
  for (fs::recursive_directory_iterator file(folder, error), end; !error && file != end;
       file.increment(error)) {
    std::error_code unreadable;
    if (IsPicture(file->path()) && file->is_regular_file(unreadable)) {
      paths.push_back(file->path().string());
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
  const bool is_folder = source.path != "-" && fs::is_directory(source.path, error);
  if (is_folder || IsPicture(source.path)) {
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

// Of the paths from `first` on, as many as a batch may have.
std::vector<DecodedImage> DecodeBatch(const std::vector<std::string>& paths, size_t first) {
  std::vector<DecodedImage> batch;
  size_t bytes = 0;
  while (first + batch.size() < paths.size() && batch.size() < kMostPictures &&
         bytes < kMostBytes && !StopRequested()) {
    batch.push_back(ReadImage(paths[first + batch.size()]));
    bytes += batch.back().pixels.size();
  }
  return batch;
}

}  // namespace

int EmbedImages(const ImageEncoder& model, const ImageOptions& options, const TextSource& source,
                const std::string& output, const VectorLayout& layout) {
  Check(model.Encode({}, options).status());
  const auto started = std::chrono::steady_clock::now();
  const Pictures pictures = FindPictures(source);
  const std::vector<std::string>& paths = pictures.paths;
  VectorWriter writer(output, layout);
  Progress bar(StderrIsTerminal(), static_cast<double>(paths.size()));
  const auto decode = [&](size_t first) {
    return std::async(std::launch::async, [&paths, first] { return DecodeBatch(paths, first); });
  };
  auto next = decode(0);
  for (size_t done = 0; done < paths.size();) {
    const std::vector<DecodedImage> batch = next.get();
    if (StopRequested()) throw Failure("stopped; nothing was written");
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
    const size_t bad = writer.FirstUnwritable(rows);
    if (bad < rows.dim(0)) {
      throw Failure(Printable(paths[done + bad]) +
                    ": a vector with nan or inf, which JSON and integers cannot hold; .npy in f32 "
                    "can");
    }
    const auto id = pictures.ids.begin() + static_cast<ptrdiff_t>(done);
    writer.Write(rows, {id, id + static_cast<ptrdiff_t>(batch.size())});
    done = after;
  }
  bar.Clear();
  writer.Commit();
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  std::cout << Counted(paths.size(), "picture") << " in " << Number(seconds, 2) << " s ("
            << Grouped(static_cast<double>(paths.size()) / std::max(seconds, 1e-3))
            << " pictures/s)\n";
  return kExitOk;
}

}  // namespace encore::tool
