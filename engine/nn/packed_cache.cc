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
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "encore/version.h"
#include "engine/base/int_math.h"
#include "engine/base/quoted.h"
#include "engine/base/status_macros.h"
#include "engine/platform/file_error.h"
#include "engine/platform/file_writer.h"
#include "engine/platform/thread_team.h"

namespace encore::inline v0_1::internal {
namespace {

// To be raised whenever packing or the smoothing of integers changes what it makes of the same
// weights.
constexpr int kFormat = 1;
constexpr size_t kPage = 4096;

// FNV-1a by words of 8 bytes; what is left counts as one filled up with zeros. Finds every change
// of a single word.
uint64_t Hash(std::span<const std::byte> bytes, uint64_t hash = 0xcbf29ce484222325u) {
  for (size_t i = 0; i < bytes.size(); i += sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + i, std::min(sizeof word, bytes.size() - i));
    hash = (hash ^ word) * 0x100000001b3u;
  }
  return hash ^ (hash >> 32);
}

uint64_t Hash(std::string_view text) { return Hash(std::as_bytes(std::span(text))); }

// The vectors of a matrix that packing finds: they are in the file.
std::array<std::span<float>, 2> VectorsOf(const MatrixToPack& m) {
  return {std::span(m.packed->input_scale(), m.smoothed ? m.packed->view().k : 0),
          m.packed->columns()};
}

// All that decides about panels but the weights.
std::string Describe(const PreparedEncoder& prepared) {
  std::string text = "encore packed weights " + std::to_string(kFormat) + ", encore " +
                     ENCORE_VERSION_STRING + "\n";
  for (const MatrixToPack& m : prepared.matrices) {
    const PackedView& view = m.packed->view();
    const GemmKernel& kernel = *view.kernel;
    text += std::string(m.name) + " " + kernel.target;
    for (const size_t number :
         {kernel.b_bytes, kernel.kr, kernel.lanes, view.nv, view.k, view.n, size_t{view.gated},
          size_t{kernel.integer}, size_t{kernel.only_rows}, size_t{m.smoothed}}) {
      text += " " + std::to_string(number);
    }
    text += '\n';
  }
  text.resize(RoundUp(text.size(), 64), '\n');
  return text;
}

// One encoder's file: its name, what must be in it, and where.
struct CacheFile {
  CacheFile(const PackedCache& cache, const PreparedEncoder& prepared, size_t panel_bytes)
      : description(Describe(prepared)),
        identity(cache.identity.empty() ? 0 : Hash(cache.identity)) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    std::string name;
    uint64_t hash = Hash(description + cache.model);
    for (int i = 0; i < 16; ++i, hash >>= 4) name += kDigits[hash % 16];
    path = cache.folder + "/" + name + ".packed";
    vectors = description.size() + 2 * sizeof(uint64_t);
    panels = vectors;
    for (const MatrixToPack& m : prepared.matrices) {
      for (const auto& v : VectorsOf(m)) panels += v.size_bytes();
    }
    panels = RoundUp(panels, kPage);
    if (!CheckedAdd(panels, panel_bytes, &bytes)) bytes = SIZE_MAX;  // no file has that
  }

  // Of a file with that identity and these vectors, and what follows them up to the panels.
  uint64_t Checksum(uint64_t of, const std::byte* in_file) const {
    return Hash({in_file, panels - vectors}, Hash(description) ^ of);
  }

  std::string path;
  std::string description;
  uint64_t identity;
  size_t vectors;  // where they begin
  size_t panels;   // likewise
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
  RunTeam(executor, [&](Team& team) {
    const std::byte* vectors = file + cache.vectors;
    const std::byte* panels = file + cache.panels;
    for (size_t i = 0; i < prepared->matrices.size(); ++i) {
      const MatrixToPack& m = prepared->matrices[i];
      const PackedView& view = m.packed->view();
      const auto [input_scale, columns] = VectorsOf(m);
      WeightSource source = m.source;
      if (m.smoothed) {
        source.column_factor = input_scale.data();
        if (all) FindInputScale(team, m);
        team.ForEach(1, [&, scales = input_scale](size_t /*i*/, int /*thread*/) {
          if (all) return compare(scales.data(), vectors, scales.size_bytes());
          std::memcpy(scales.data(), vectors, scales.size_bytes());
          m.packed->InputScaleIsSet();
        });
        vectors += input_scale.size_bytes();
      }
      const size_t first = all ? 0 : i % view.panels();
      team.ForEach(all ? view.panels() : 1, [&, quant = columns](size_t t, int thread) {
        if (!same) return;
        const size_t p = first + t;
        std::byte* const panel = scratch.data() + static_cast<size_t>(thread) * largest;
        if (!m.packed->PackPanel(source, p, panel)) same = false;
        compare(panel, panels + view.panel_offset(p), view.pair_bytes(p));
        for (size_t half = 0; half < view.halves() && !quant.empty(); ++half) {
          for (const size_t of : {size_t{0}, quant.size() / 2}) {  // scales, sums
            const size_t at = of + view.padded_column(p, half);
            compare(&quant[at], vectors + at * sizeof(float), view.panel_cols(p) * sizeof(float));
          }
        }
      });
      vectors += columns.size_bytes();
      panels += m.packed->data_bytes();
      if (m.ends_layer && options.layer_packed) {
        team.ForEach(1, [&](size_t /*i*/, int /*thread*/) { options.layer_packed(); });
      }
    }
  });
  return same;
}

enum class Check {
  kOwn,       // that it is the one that was just written, and one panel of each matrix
  kIdentity,  // the same, if the identity is known and the file's; else all
  kAll,
};
struct Found {
  std::optional<MappedFile> file;  // nothing: there is none that is right
  bool same_identity = false;
  bool compared = false;  // all panels
};

// Where there is a file, the vectors of the matrices are its own afterwards. own: of kOwn, the
// checksum of what was written.
Found FindFile(const EncoderOptions& options, const CacheFile& cache, PreparedEncoder* prepared,
               Check check, const uint64_t* own = nullptr) {
  Result<MappedFile> file = MappedFile::Open(cache.path);
  if (!file.ok() || file->bytes().size() != cache.bytes) return {};
  file->PreferLargePages();
  const std::byte* const data = file->bytes().data();
  if (std::memcmp(data, cache.description.data(), cache.description.size()) != 0) return {};
  uint64_t identity = 0;
  uint64_t checksum = 0;
  const std::byte* const numbers = data + cache.description.size();
  std::memcpy(&identity, numbers, sizeof identity);
  std::memcpy(&checksum, numbers + sizeof identity, sizeof checksum);
  const std::byte* vectors = data + cache.vectors;
  if (checksum != cache.Checksum(identity, vectors)) return {};
  const bool same_identity = identity != 0 && identity == cache.identity;
  // What another process wrote since then may have other vectors, which would replace ours.
  if (check == Check::kOwn && (!same_identity || checksum != *own)) return {};
  const bool all = check == Check::kAll || (check == Check::kIdentity && !same_identity);
  if (!SamePanels(options, cache, data, prepared, all)) return {};
  for (const MatrixToPack& m : prepared->matrices) {
    for (const auto& v : VectorsOf(m)) {
      if (!v.empty()) std::memcpy(v.data(), vectors, v.size_bytes());
      vectors += v.size_bytes();
    }
  }
  return {*std::move(file), same_identity, all};
}

// Panels as PreparedEncoder::Pack lays them out. Returns the file's checksum.
Result<uint64_t> WriteFile(const CacheFile& cache, const std::string& folder,
                           const PreparedEncoder& prepared, std::span<const std::byte> panels) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);  // an error of it is found when writing
  ENCORE_ASSIGN_OR_RETURN(FileWriter writer, FileWriter::Create(cache.path));
  std::vector<std::byte> head(cache.panels);
  std::byte* vectors = head.data() + cache.vectors;
  for (const MatrixToPack& m : prepared.matrices) {
    for (const auto& v : VectorsOf(m)) {
      if (!v.empty()) std::memcpy(vectors, v.data(), v.size_bytes());
      vectors += v.size_bytes();
    }
  }
  const uint64_t numbers[] = {cache.identity,
                              cache.Checksum(cache.identity, head.data() + cache.vectors)};
  std::memcpy(head.data(), cache.description.data(), cache.description.size());
  std::memcpy(head.data() + cache.description.size(), numbers, sizeof numbers);
  ENCORE_RETURN_IF_ERROR(writer.Write(head));
  // In one piece: Linux then keeps most of it in large pages, on file systems that have them.
  // Matrix by matrix, the sizes of pages depended on where each began.
  ENCORE_RETURN_IF_ERROR(writer.Write(panels));
  ENCORE_RETURN_IF_ERROR(writer.Commit());
  return numbers[1];
}

}  // namespace

Status PackedPanels::CheckUnchanged() const {
  if (!file || file->Unchanged()) return {};
  return Status(ErrorCode::kIo,
                "the file of packed weights was changed since it was opened; wanted one that stays "
                "as it is (EncoderOptions::cache)");
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
  panels.cache_use = found.compared ? "mapped, all panels compared" : "mapped";
  if (!panels.file) {
    ENCORE_RETURN_IF_ERROR(prepared->Pack(options, &panels.own));
    panels.cache_use = "packed";
  }
  const auto data = [&] {
    return panels.file ? panels.file->bytes().data() + cache.panels : panels.own.data();
  };
  // What was compared for want of an identity is written again, so that it has the one of now.
  if (!panels.file || (!found.same_identity && cache.identity != 0)) {
    const Result<uint64_t> written =
        WriteFile(cache, options.cache.folder, *prepared, {data(), panels.bytes});
    panels.cache_use +=
        written.ok() ? " and written" : ", not written: " + std::string(written.status().message());
    if (written.ok() && cache.identity != 0) {
      // To share the file from the start. Never both at once: a model may take most of the memory.
      panels.own = {};
      if (panels.file) panels.file->ReleasePages();
      Found mine = FindFile(options, cache, prepared, Check::kOwn, &*written);
      if (mine.file) {
        panels.file = std::move(mine.file);
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
