// SPDX-License-Identifier: Apache-2.0
//
// Reads the cases; attend_case_check.cc compares their results.

#include "tools/encore/attend_case.h"

#include <cmath>
#include <cstdio>
#include <limits>
#include <utility>

#include "engine/platform/mapped_file.h"
#include "tools/encore/failure.h"
#include "tools/encore/text.h"

namespace encore::tool {
namespace {

using CaseJson = nlohmann::json;

// The deepest of a case, a matrix of the file's list, has five levels. To copy or compare values
// takes stack for every level.
constexpr int kMaxDepth = 32;

std::string Quoted(const std::string& name) { return "'" + Printable(name) + "'"; }

// A list of rows of numbers, at least one of each.
Tensor CaseMatrix(const CaseJson& spec, const char* key) {
  const std::string where = CaseLabel(spec) + ": " + key;
  if (!spec.contains(key)) throw Failure(where + " is missing");
  const CaseJson& rows = spec[key];
  if (!rows.is_array() || rows.empty() || !rows[0].is_array() || rows[0].empty()) {
    throw Failure(where + " is not a matrix, wanted a list of rows of numbers");
  }
  const size_t width = rows[0].size();
  Tensor matrix = NewTensor({rows.size(), width});
  const TensorView<float> view = matrix.View<float>();
  for (size_t r = 0; r < rows.size(); ++r) {
    const std::string row = where + " row " + std::to_string(r);
    if (!rows[r].is_array() || rows[r].size() != width) {
      throw Failure(row + " has not the " + std::to_string(width) + " numbers of row 0");
    }
    for (size_t c = 0; c < width; ++c) {
      if (!rows[r][c].is_number()) throw Failure(row + " has something other than numbers");
      const double value = rows[r][c].get<double>();
      if (!(std::fabs(value) <= static_cast<double>(std::numeric_limits<float>::max()))) {
        throw Failure(row + " has a number that f32 cannot hold");
      }
      view(r, c) = static_cast<float>(value);
    }
  }
  return matrix;
}

void WantShape(const CaseJson& spec, const char* key, const Tensor& found, const Shape& wanted) {
  if (found.shape() == wanted) return;
  throw Failure(CaseLabel(spec) + ": " + key + " is " + found.shape().ToString() + ", wanted " +
                wanted.ToString());
}

// The case's tokens, or the words of its sentence, or none.
std::vector<std::string> CaseTokens(const CaseJson& spec) {
  std::vector<std::string> tokens;
  if (spec.contains("tokens")) {
    if (!spec["tokens"].is_array()) throw Failure(CaseLabel(spec) + ": tokens is not a list");
    for (const CaseJson& token : spec["tokens"]) {
      if (!token.is_string())
        throw Failure(CaseLabel(spec) + ": tokens has something other than strings");
      tokens.push_back(Printable(token.get<std::string>()));
    }
  } else if (spec.contains("sentence") && spec["sentence"].is_string()) {
    tokens = SplitWords(spec["sentence"].get<std::string>());
  }
  return tokens;
}

// `given` if there are any, else "q0", "q1" ...
std::vector<std::string> CaseLabels(const CaseJson& spec, std::vector<std::string> given,
                                    const std::string& prefix, size_t count) {
  if (given.empty()) {
    for (size_t i = 0; i < count; ++i) given.push_back(prefix + std::to_string(i));
  }
  if (given.size() != count) {
    throw Failure(CaseLabel(spec) + ": there are " + std::to_string(given.size()) + " tokens for " +
                  std::to_string(count) + " rows");
  }
  return given;
}

AttentionExample FromX(const CaseJson& spec) {
  AttentionExample example;
  example.x = CaseMatrix(spec, "X");
  example.w_q = CaseMatrix(spec, "W_q");
  example.w_k = CaseMatrix(spec, "W_k");
  example.w_v = CaseMatrix(spec, "W_v");
  const size_t dim = example.x.shape()[1];
  WantShape(spec, "W_q", example.w_q, {dim, example.w_q.shape()[1]});
  WantShape(spec, "W_k", example.w_k, {dim, example.w_q.shape()[1]});
  WantShape(spec, "W_v", example.w_v, {dim, example.w_v.shape()[1]});
  example.tokens = CaseLabels(spec, CaseTokens(spec), "x", example.x.shape()[0]);
  example.keys = example.tokens;
  return example;
}

AttentionExample FromQkv(const CaseJson& spec) {
  AttentionExample example;
  example.q = CaseMatrix(spec, "Q");
  example.k = CaseMatrix(spec, "K");
  example.v = CaseMatrix(spec, "V");
  const size_t keys = example.k.shape()[0];
  WantShape(spec, "K", example.k, {keys, example.q.shape()[1]});
  WantShape(spec, "V", example.v, {keys, example.v.shape()[1]});
  example.tokens = CaseLabels(spec, CaseTokens(spec), "q", example.q.shape()[0]);
  example.keys = CaseLabels(spec, {}, "k", keys);
  return example;
}

// "attention_4x8" gives {4, 8}; anything else {0, 0}.
std::pair<size_t, size_t> SizesInName(const std::string& name) {
  size_t rows = 0;
  size_t columns = 0;
  int length = 0;
  // At most four digits each: no overflow.
  if (std::sscanf(name.c_str(), "attention_%4zux%4zu%n", &rows, &columns, &length) != 2 ||
      static_cast<size_t>(length) != name.size()) {
    return {0, 0};
  }
  return {rows, columns};
}

AttentionExample FromName(const CaseJson& spec, size_t rows, size_t columns, uint32_t seed) {
  if (rows > kMaxExampleTokens || columns > kMaxExampleDim) {
    throw Failure(CaseLabel(spec) + " is too large: at most attention_" +
                  std::to_string(kMaxExampleTokens) + "x" + std::to_string(kMaxExampleDim));
  }
  AttentionExample example;
  NumpyRandom random(seed);
  example.q = random.Rand({rows, columns});
  example.k = random.Rand({rows, columns});
  example.v = random.Rand({rows, columns});
  example.seed = seed;
  example.tokens = CaseLabels(spec, CaseTokens(spec), "q", rows);
  example.keys = CaseLabels(spec, {}, "k", rows);
  return example;
}

AttentionExample FromAny(const CaseJson& spec, uint32_t seed) {
  if (spec.contains("X")) return FromX(spec);
  if (spec.contains("Q")) return FromQkv(spec);
  if (spec.contains("embedding_dim")) {
    const size_t dim = SizeFromCase(spec, "embedding_dim");
    const std::vector<std::string> tokens = CaseTokens(spec);
    try {
      return SeededExample(tokens, dim, 1, seed);
    } catch (const Failure& failure) {
      throw Failure(CaseLabel(spec) + ": " + failure.what());
    }
  }
  const auto [rows, columns] = SizesInName(spec["name"].get<std::string>());
  if (rows > 0 && columns > 0) return FromName(spec, rows, columns, seed);
  throw Failure(CaseLabel(spec) +
                " has nothing to compute: wanted Q, K, V, or X, W_q, W_k, W_v, or embedding_dim");
}

}  // namespace

CaseJson LoadCase(const std::string& path, const std::string& name) {
  const internal::MappedFile file = Take(internal::MappedFile::Open(path));
  const auto* text = reinterpret_cast<const char*>(file.bytes().data());
  const auto shallow = [&path](int depth, CaseJson::parse_event_t, const CaseJson&) {
    if (depth <= kMaxDepth) return true;
    throw Failure(path + ": found more than " + std::to_string(kMaxDepth) +
                  " levels of lists and objects, wanted at most that");
  };
  CaseJson all;
  try {
    all = CaseJson::parse(text, text + file.bytes().size(), shallow);
  } catch (const CaseJson::parse_error& error) {
    throw Failure(path + ": no JSON, the error is at byte " + std::to_string(error.byte));
  } catch (const CaseJson::exception&) {
    throw Failure(path + ": has a number too large for JSON");
  }
  if (!all.is_object() || !all.contains("cases") || !all["cases"].is_array()) {
    throw Failure(path + ": found no list \"cases\", wanted {\"cases\": [{\"name\": ...}]}");
  }
  std::string names;
  for (const CaseJson& spec : all["cases"]) {
    if (!spec.is_object() || !spec.contains("name") || !spec["name"].is_string()) {
      throw Failure(path + ": a case has no name");
    }
    const std::string found = spec["name"].get<std::string>();
    if (found == name || (name.empty() && all["cases"].size() == 1)) return spec;
    names += (names.empty() ? "" : ", ") + Printable(found);
  }
  throw Failure(path + ": " +
                (name.empty() ? "--case is wanted" : "found no case " + Quoted(name)) +
                "; there are: " + (names.empty() ? "none" : names));
}

bool IsBlockCase(const CaseJson& spec) { return spec.contains("d_model"); }

std::string CaseLabel(const CaseJson& spec) {
  return "case " + Quoted(spec["name"].get<std::string>());
}

AttentionExample ExampleFromCase(const CaseJson& spec, uint32_t seed) {
  AttentionExample example = FromAny(spec, seed);
  example.title = CaseLabel(spec);
  if (spec.contains("what") && spec["what"].is_string()) {
    example.title += ", " + Printable(spec["what"].get<std::string>());
  }
  return example;
}

std::vector<size_t> ExtentsFromCase(const CaseJson& spec, const std::string& key) {
  std::vector<size_t> extents;
  const CaseJson& list = spec.contains(key) ? spec[key] : CaseJson();
  bool ok = list.is_array();
  for (size_t i = 0; ok && i < list.size(); ++i) {
    ok = list[i].is_number_unsigned();
    if (ok) extents.push_back(list[i].get<size_t>());
  }
  if (!ok) throw Failure(CaseLabel(spec) + ": " + key + " is not a list of extents");
  return extents;
}

size_t SizeFromCase(const CaseJson& spec, const std::string& key) {
  if (!spec.contains(key) || !spec[key].is_number_unsigned()) {
    throw Failure(CaseLabel(spec) + ": " + key + " is missing or no whole number");
  }
  return spec[key].get<size_t>();
}

}  // namespace encore::tool
