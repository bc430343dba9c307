// SPDX-License-Identifier: Apache-2.0
//
// Finding, comparing and writing the file of panels.

#include "engine/nn/packed_cache.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include "encore/version.h"
#include "engine/base/checksum.h"
#include "engine/base/guarded.h"
#include "engine/base/int_math.h"
#include "engine/base/status_macros.h"
#include "engine/platform/checksum_in_pieces.h"
#include "engine/platform/file_writer.h"
#include "engine/platform/path.h"
#include "engine/platform/thread_team.h"

namespace encore::inline v0_1::internal {
namespace {

// To be raised whenever packing or smoothing gives other bytes for the same weights.
constexpr int kFormat = 2;
constexpr size_t kPage = 4096;

// The vectors of a matrix that packing finds: they are in the file.
std::array<std::span<float>, 2> VectorsOf(const MatrixToPack& m) {
  return {std::span(m.packed->input_scale(), m.smoothed ? m.packed->view().k : 0),
          m.packed->columns()};
}

// All that determines the panels, except the weights.
std::string Describe(const PreparedEncoder& prepared) {
  std::string text = "encore packed weights " + std::to_string(kFormat) + ", encore " +
                     ENCORE_VERSION_STRING + "\n";
  for (const MatrixToPack& m : prepared.matrices) {
    const PackedView& view = m.packed->view();
    const GemmKernel& kernel = *view.kernel;
    text += std::string(m.name) + " " + kernel.target;
    for (const size_t number :
         {kernel.b_bytes, kernel.kr, kernel.lanes, view.nv, view.k, view.n, size_t{view.gated},
          size_t{kernel.integer}, size_t{kernel.only_block_kernel}, size_t{m.smoothed}}) {
      text += " " + std::to_string(number);
    }
    text += '\n';
  }
  text.resize(RoundUp(text.size(), 64), '\n');
  return text;
}

// A file's head, after the description.
struct HeadNumbers {
  uint64_t identity = 0;
  uint64_t panels = 0;  // checksums, as packed_cache.h says
  uint64_t head = 0;
};

// One encoder's file: its name, wanted content and offsets.
struct CacheFile {
  CacheFile(const PackedCache& cache, const PreparedEncoder& prepared, size_t panel_bytes)
      : description(Describe(prepared)),
        identity(cache.identity.empty() ? 0 : ChecksumOf(cache.identity)),
        path(cache.folder + "/" + ChecksumText(ChecksumOf(description + cache.model)) + ".packed") {
    vectors = description.size() + sizeof(HeadNumbers);
    panels = vectors;
    for (const MatrixToPack& m : prepared.matrices) {
      for (const auto& v : VectorsOf(m)) panels += v.size_bytes();
    }
    panels = RoundUp(panels, kPage);
    if (!CheckedAdd(panels, panel_bytes, &bytes)) bytes = SIZE_MAX;  // no file has that
  }

  // HeadNumbers::head of this head.
  uint64_t ChecksumOfHead(const std::byte* head) const {
    Checksum checksum;
    checksum.Add({head, vectors - sizeof(HeadNumbers::head)});
    checksum.Add({head + vectors, panels - vectors});
    return checksum.value();
  }

  std::string description;
  uint64_t identity;
  std::string path;
  size_t vectors;  // offset
  size_t panels;   // offset
  size_t bytes;    // of the file
};

// Packs one panel of each matrix, or all, and compares them and their vectors with the file's.
bool SamePanels(const EncoderOptions& options, const CacheFile& cache, const std::byte* file,
                PreparedEncoder* prepared, bool all) {
  size_t largest = 64;
  for (const MatrixToPack& m : prepared->matrices) {
    largest = std::max(largest, RoundUp(m.packed->view().pair_bytes(0), 64));
  }
  const Executor executor = all ? options.executor : Executor::Inline();
  AlignedBuffer<std::byte> scratch;
  size_t scratch_bytes = 0;
  if (!CheckedMul(largest, static_cast<size_t>(executor.threads()), &scratch_bytes) ||
      !scratch.Allocate(scratch_bytes)) {
    return false;
  }
  std::atomic<bool> same = true;
  const auto compare = [&](const void* found, const std::byte* wanted, size_t bytes) {
    if (bytes != 0 && std::memcmp(found, wanted, bytes) != 0) same = false;
  };
  const std::byte* vectors = nullptr;  // of the matrix at hand, behind its input scales
  const std::byte* panels = nullptr;
  const std::byte* next_vectors = file + cache.vectors;
  const std::byte* next_panels = file + cache.panels;
  const auto begin = [&](Team& team, size_t i) -> PanelRange {
    const MatrixToPack& m = prepared->matrices[i];
    const auto [input_scale, columns] = VectorsOf(m);
    if (m.smoothed && all) {
      FindInputScale(team, m);
      compare(input_scale.data(), next_vectors, input_scale.size_bytes());
    } else if (m.smoothed) {
      std::memcpy(input_scale.data(), next_vectors, input_scale.size_bytes());
      m.packed->InputScaleIsSet();
    }
    vectors = next_vectors + input_scale.size_bytes();
    next_vectors = vectors + columns.size_bytes();
    panels = std::exchange(next_panels, next_panels + m.packed->data_bytes());
    const size_t count = m.packed->view().panels();
    if (all || count == 0) return {0, count};
    return {i % count, i % count + 1};
  };
  const auto pack = [&](size_t i, const WeightSource& source, size_t p, int thread) {
    if (!same) return;
    const MatrixToPack& m = prepared->matrices[i];
    const PackedView& view = m.packed->view();
    std::byte* const panel = scratch.data() + static_cast<size_t>(thread) * largest;
    if (!m.packed->PackPanel(source, p, panel)) same = false;
    compare(panel, panels + view.panel_offset(p), view.pair_bytes(p));
    const std::span<const float> columns = m.packed->columns();
    for (size_t half = 0; half < view.halves() && !columns.empty(); ++half) {
      for (const size_t of : {size_t{0}, columns.size() / 2}) {  // scales, sums
        const size_t at = of + view.padded_column(p, half);
        compare(&columns[at], vectors + at * sizeof(float), view.panel_cols(p) * sizeof(float));
      }
    }
  };
  return PackMatrices(options, executor, prepared->matrices, begin, pack).ok() && same;
}

enum class Check {
  kOwn,       // that it is the file just written
  kIdentity,  // one panel of each matrix, if the identity is known and the file's; else all
  kAll,
};
struct Found {
  std::optional<MappedFile> file = {};  // a valid one
  std::function<Result<bool>(const Executor&)> same_bytes = {};
  std::string why_not = {};  // why the file there is not used; it may be replaced
  std::string refused = {};  // why it is neither used nor replaced
  bool same_identity = false;
  bool compared = false;  // all panels
};

// At opening, which is not stopped.
uint64_t ChecksumOfAll(const EncoderOptions& options, std::span<const std::byte> panels) {
  return *ChecksumInPieces(options.executor.WithoutStop(), panels);
}

// If there is a valid file, reads the matrices' vectors from it. own: for kOwn, HeadNumbers::head
// of the file written.
Found FindFile(const EncoderOptions& options, const CacheFile& cache, PreparedEncoder* prepared,
               Check check, const uint64_t* own = nullptr) {
  std::error_code ignored;
  if (std::filesystem::is_symlink(std::filesystem::symlink_status(ToPath(cache.path), ignored))) {
    return {.why_not = "was a symbolic link"};
  }
  Result<MappedFile> file = MappedFile::OpenOwn(cache.path);
  if (!file.ok()) {
    if (file.status().code() == ErrorCode::kNotFound) return {};
    return {.refused = std::string(file.status().message())};
  }
  const auto damaged = [] { return Found{.why_not = "was damaged"}; };
  if (file->bytes().size() != cache.bytes) return damaged();
  file->PreferLargePages();
  const std::byte* const data = file->bytes().data();
  if (std::memcmp(data, cache.description.data(), cache.description.size()) != 0) return damaged();
  HeadNumbers numbers;
  std::memcpy(&numbers, data + cache.description.size(), sizeof numbers);
  if (numbers.head != cache.ChecksumOfHead(data)) return damaged();
  const bool same_identity = numbers.identity != 0 && numbers.identity == cache.identity;
  // Another process may have written other vectors since then: they must not replace ours.
  if (check == Check::kOwn && (!same_identity || numbers.head != *own)) return {};
  const std::span<const std::byte> panels = file->bytes().subspan(cache.panels);
  if (!options.cache.trust && numbers.panels != ChecksumOfAll(options, panels)) {
    return damaged();
  }
  const bool all = check == Check::kAll || (check == Check::kIdentity && !same_identity);
  if (check != Check::kOwn && !SamePanels(options, cache, data, prepared, all)) {
    return {.why_not = "was of other weights"};
  }
  const std::byte* vectors = data + cache.vectors;
  for (const MatrixToPack& m : prepared->matrices) {
    for (const auto& v : VectorsOf(m)) {
      if (!v.empty()) std::memcpy(v.data(), vectors, v.size_bytes());
      vectors += v.size_bytes();
    }
  }
  const auto same_bytes = [cache, data, panels,
                           head = numbers.head](const Executor& executor) -> Result<bool> {
    HeadNumbers now;
    std::memcpy(&now, data + cache.description.size(), sizeof now);
    if (now.head != head || head != cache.ChecksumOfHead(data)) return false;
    ENCORE_ASSIGN_OR_RETURN(const uint64_t sum, ChecksumInPieces(executor, panels));
    return now.panels == sum;
  };
  return {.file = *std::move(file),
          .same_bytes = same_bytes,
          .same_identity = same_identity,
          .compared = all};
}

// Panels as PreparedEncoder::Pack lays them out. Returns HeadNumbers::head.
Result<uint64_t> WriteFile(const CacheFile& cache, const EncoderOptions& options,
                           const PreparedEncoder& prepared, std::span<const std::byte> panels) {
  ENCORE_ASSIGN_OR_RETURN(FileWriter writer, FileWriter::CreateOwn(cache.path));
  std::vector<std::byte> head(cache.panels);
  std::byte* vectors = head.data() + cache.vectors;
  for (const MatrixToPack& m : prepared.matrices) {
    for (const auto& v : VectorsOf(m)) {
      if (!v.empty()) std::memcpy(vectors, v.data(), v.size_bytes());
      vectors += v.size_bytes();
    }
  }
  HeadNumbers numbers = {.identity = cache.identity, .panels = ChecksumOfAll(options, panels)};
  std::byte* const numbers_place = head.data() + cache.description.size();
  std::memcpy(head.data(), cache.description.data(), cache.description.size());
  std::memcpy(numbers_place, &numbers, sizeof numbers);
  numbers.head = cache.ChecksumOfHead(head.data());
  std::memcpy(numbers_place, &numbers, sizeof numbers);
  ENCORE_RETURN_IF_ERROR(writer.Write(head));
  // In one piece: Linux then keeps most of it in large pages, on file systems that have them.
  ENCORE_RETURN_IF_ERROR(writer.Write(panels));
  ENCORE_RETURN_IF_ERROR(writer.Commit());
  return numbers.head;
}

}  // namespace

Status PackedPanels::CheckUnchanged(const Executor& executor) const {
  if (!file) return {};
  return Guarded("the packed weights' checksums",
                 [&] { return file->CheckUnchanged(path, [&] { return same_bytes(executor); }); });
}

Result<PackedPanels> PackOrMap(const EncoderOptions& options, PreparedEncoder* prepared) {
  PackedPanels panels;
  if (options.cache.folder.empty() || !prepared->relative.empty()) {
    ENCORE_RETURN_IF_ERROR(prepared->Pack(options, &panels.own));
    panels.bytes = panels.own.size();
    if (!options.cache.folder.empty()) {
      panels.cache_use = "packed, not written: layers have relative embeddings";
    }
    return panels;
  }
  ENCORE_ASSIGN_OR_RETURN(panels.bytes, prepared->PanelBytes());
  const CacheFile cache(options.cache, *prepared, panels.bytes);
  Found found =
      FindFile(options, cache, prepared, options.cache.compare ? Check::kAll : Check::kIdentity);
  panels.file = std::move(found.file);
  panels.same_bytes = std::move(found.same_bytes);
  panels.path = cache.path;
  panels.cache_use = found.compared        ? "mapped, all panels compared"
                     : options.cache.trust ? "mapped, not checked"
                                           : "mapped";
  if (!panels.file) {
    ENCORE_RETURN_IF_ERROR(prepared->Pack(options, &panels.own));
    panels.cache_use = "packed";
  }
  const auto data = [&] {
    return panels.file ? panels.file->bytes().data() + cache.panels : panels.own.data();
  };
  if (!found.refused.empty()) {
    panels.cache_use += ", not written: " + found.refused;
  } else if (!panels.file || (!found.same_identity && cache.identity != 0)) {
    // A file compared because its identity differs is written again with the present identity.
    const Result<uint64_t> written = WriteFile(cache, options, *prepared, {data(), panels.bytes});
    panels.cache_use +=
        written.ok() ? " and written" : ", not written: " + std::string(written.status().message());
    if (!found.why_not.empty()) panels.cache_use += "; the file there " + found.why_not;
    if (written.ok() && cache.identity != 0) {
      // Map the file at once, to share it. Panels are freed first: a model may fill most memory.
      panels.own = {};
      if (panels.file) panels.file->ReleasePages();
      Found mine = FindFile(options, cache, prepared, Check::kOwn, &*written);
      if (mine.file) {
        panels.file = std::move(mine.file);
        panels.same_bytes = std::move(mine.same_bytes);
      } else if (!panels.file) {  // another process was faster, or the file cannot be mapped
        ENCORE_RETURN_IF_ERROR(prepared->Pack(options, &panels.own));
      }
    }
  }
  const std::byte* next = data();
  for (const MatrixToPack& m : prepared->matrices) {
    m.packed->SetData(next);
    next += m.packed->data_bytes();
  }
  return panels;
}

}  // namespace encore::internal
