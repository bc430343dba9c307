// SPDX-License-Identifier: Apache-2.0
//
// The classes of image processors, and the reading of their files.

#include "engine/images/processor_config.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "engine/base/quoted.h"
#include "engine/base/status_macros.h"
#include "engine/io/json_members.h"

namespace encore::inline v0_1::internal {
namespace {

// An output of 64 M pixels is 200 times what published models take.
constexpr size_t kMaxModelEdge = 8192;
constexpr double kMaxResizedEdge = 1 << 30;

using Kind = ResizeRule::Kind;
using Numbers = std::array<double, 3>;

constexpr Numbers kHalf = {0.5, 0.5, 0.5};
constexpr Numbers kClipMean = {0.48145466, 0.4578275, 0.40821073};
constexpr Numbers kClipStd = {0.26862954, 0.26130258, 0.27577711};
constexpr Numbers kImagenetMean = {0.485, 0.456, 0.406};
constexpr Numbers kImagenetStd = {0.229, 0.224, 0.225};

// A class of transformers with its defaults.
struct ClassRow {
  std::string_view name;
  std::string_view model_type;  // whose class it is where the files name none
  ResizeFilter filter;
  const Numbers& mean;
  const Numbers& std;
  ResizeRule size;
  bool size_is_square;  // a size of one number is that of both edges
  size_t crop = 0;      // both edges; 0: none unless do_center_crop says so
  double crop_pct = 0;  // below 384, the part of the edge that a crop keeps; 0: has no such key
  bool floats = false;
};

// CLIP's, whose defaults BiT's has too.
constexpr ClassRow ClipRow(std::string_view name, std::string_view model_type) {
  return {.name = name,
          .model_type = model_type,
          .filter = ResizeFilter::kBicubic,
          .mean = kClipMean,
          .std = kClipStd,
          .size = {Kind::kShortestEdge, 224},
          .size_is_square = false,
          .crop = 224};
}

constexpr ClassRow kClasses[] = {
    ClipRow("BitImageProcessor", "dinov2"),
    ClipRow("CLIPImageProcessor", "clip"),
    {"ConvNextImageProcessor",
     "convnext",
     ResizeFilter::kBicubic,
     kHalf,
     kHalf,
     {Kind::kShortestEdge, 384},
     false,
     0,
     0.875},
    {"DeiTImageProcessor",
     "deit",
     ResizeFilter::kBicubic,
     kHalf,
     kHalf,
     {Kind::kExact, 256, 256},
     true,
     224},
    {.name = "DINOv3ViTImageProcessor",
     .model_type = "dinov3_vit",
     .filter = ResizeFilter::kBilinear,
     .mean = kImagenetMean,
     .std = kImagenetStd,
     .size = {Kind::kExact, 224, 224},
     .size_is_square = true,
     .floats = true},
    {"SiglipImageProcessor",
     "siglip",
     ResizeFilter::kBicubic,
     kHalf,
     kHalf,
     {Kind::kExact, 224, 224},
     false},
    {"ViTImageProcessor",
     "vit",
     ResizeFilter::kBilinear,
     kHalf,
     kHalf,
     {Kind::kExact, 224, 224},
     true},
};

// Known, and nothing that bytes of one size could give.
struct OtherClass {
  std::string_view name, model_type, why;
};
constexpr OtherClass kOthers[] = {
    {"Siglip2ImageProcessor", "siglip2", "makes patches of pictures of any size (NaFlex)"},
};

// Keys that files have and that change nothing here: names, and what callers may ask for.
constexpr const char* kNoEffect[] = {
    "processor_class",       "image_processor_type", "feature_extractor_type", "auto_map",
    "_valid_processor_keys", "data_format",          "input_data_format",      "device",
    "disable_grouping",      "return_tensors",       "image_seq_length",       "use_fast",
    "transformers_version",  "do_convert_rgb"};  // pictures become RGB in any case

std::string ClassNames() {
  std::string names;
  for (const ClassRow& row : kClasses) {
    names += (names.empty() ? "" : ", ") + std::string(row.name);
  }
  return names;
}

// "CLIPImageProcessor" of "CLIPFeatureExtractor", "CLIPImageProcessorFast" and ...Pil.
std::string BaseName(std::string name) {
  constexpr std::string_view kOld = "FeatureExtractor";
  const size_t old = name.find(kOld);
  if (old != std::string::npos) name.replace(old, kOld.size(), "ImageProcessor");
  for (const std::string_view suffix : {"Fast", "Pil"}) {
    if (name.ends_with(suffix)) name.resize(name.size() - suffix.size());
  }
  return name;
}

// The class by name or, if that is empty, by type of model. `where` names what said so.
Result<const ClassRow*> FindClass(const std::string& name, const std::string& model_type,
                                  const std::string& where) {
  const auto is_it = [&](const auto& row) {
    return name.empty() ? row.model_type == model_type : row.name == name;
  };
  for (const ClassRow& row : kClasses) {
    if (is_it(row)) return &row;
  }
  std::string sentence = where + " is " + Quoted(name.empty() ? model_type : name);
  for (const OtherClass& other : kOthers) {
    if (is_it(other)) sentence += ", which " + std::string(other.why);
  }
  return Status(ErrorCode::kUnsupported,
                sentence + "; wanted an image processor of " + ClassNames());
}

// The object {"height", "width"} or one of the others.
ResizeRule ReadSizeObject(JsonMembers& size) {
  size_t given = 0;
  // At least 1 pixel, or 0 where the member is absent.
  const auto edge = [&](std::string_view key) {
    const std::optional<size_t> found = size.OptionalSize(key);
    if (found && (*found == 0 || *found > kMaxModelEdge)) {
      size.Refuse(key, "1 .. " + std::to_string(kMaxModelEdge));
    }
    given += found ? 1 : 0;
    return found.value_or(0);
  };
  const size_t height = edge("height"), width = edge("width");
  const size_t shortest = edge("shortest_edge"), longest = edge("longest_edge");
  const size_t max_height = edge("max_height"), max_width = edge("max_width");
  if (given == 1 && shortest > 0) return {Kind::kShortestEdge, shortest};
  if (given != 2) return {};
  if (height > 0 && width > 0) return {Kind::kExact, height, width};
  if (shortest > 0 && longest > 0) return {Kind::kLimitedEdges, shortest, longest};
  if (max_height > 0 && max_width > 0) return {Kind::kWithin, max_height, max_width};
  return {};
}

// A size as get_size_dict of transformers takes it: a number, [height, width] or an object.
// kKeep after a refusal.
ResizeRule ReadSize(JsonMembers& members, const char* key, bool is_square) {
  const auto refuse = [&] {
    members.Refuse(key, "a number of 1 .. " + std::to_string(kMaxModelEdge) +
                            ", or an object with height and width, shortest_edge, shortest_edge "
                            "and longest_edge, or max_height and max_width");
    return ResizeRule();
  };
  const JsonValue& value = *members.Find(key);
  if (value.is_object()) {
    JsonMembers size(value, members.where() + ": " + key);
    const ResizeRule rule = ReadSizeObject(size);
    if (rule.kind == Kind::kKeep || !size.ok() || !size.Unread().empty()) return refuse();
    return rule;
  }
  const std::vector<JsonValue> items = value.is_array() ? value.items() : std::vector{value, value};
  size_t edges[2] = {};
  if (items.size() != 2) return refuse();
  for (size_t i = 0; i < 2; ++i) {
    uint64_t edge = 0;
    if (!items[i].AsUnsigned(&edge) || edge == 0 || edge > kMaxModelEdge) return refuse();
    edges[i] = static_cast<size_t>(edge);
  }
  if (value.is_number() && !is_square) return {Kind::kShortestEdge, edges[0]};
  return {Kind::kExact, edges[0], edges[1]};
}

// A number for all channels, or one for each.
void ReadNumbers(JsonMembers& members, const char* key, bool may_be_zero, Numbers* numbers) {
  if (!members.Has(key)) return;
  const JsonValue& value = *members.Find(key);
  const std::vector<JsonValue> items =
      value.is_array() ? value.items() : std::vector<JsonValue>(3, value);
  bool fits = items.size() == 3;
  for (size_t c = 0; fits && c < 3; ++c) {
    (*numbers)[c] = items[c].number();
    // As a float, which is what computes with it.
    const float number = static_cast<float>((*numbers)[c]);
    fits = items[c].is_number() && std::isfinite(number) && (may_be_zero || number != 0);
  }
  if (!fits) members.Refuse(key, may_be_zero ? "3 numbers" : "3 numbers other than 0");
}

// Resize and crop of ConvNextImageProcessor, which has one size for both.
void ReadCropPct(JsonMembers& members, const ClassRow& row, ProcessorConfig* config) {
  const double crop_pct = members.Number("crop_pct", row.crop_pct);
  if (config->resize.kind == Kind::kKeep || !members.ok()) return;
  if (config->resize.kind != Kind::kShortestEdge) {
    return members.Refuse("size", "an object with shortest_edge");
  }
  const size_t edge = config->resize.first;
  if (edge >= 384) {
    config->resize = {Kind::kExact, edge, edge};
    return;
  }
  const double resized = std::trunc(static_cast<double>(edge) / crop_pct);
  if (!(resized >= 1 && resized <= kMaxModelEdge)) return members.Refuse("crop_pct", "about 0.9");
  config->resize.first = static_cast<size_t>(resized);
  if (config->crop) return members.Refuse("do_center_crop", "false beside crop_pct");
  config->crop = ImageSize{edge, edge};
}

void ReadGeometry(JsonMembers& members, const ClassRow& row, ProcessorConfig* config) {
  const bool is_square = members.Bool("default_to_square", row.size_is_square);
  config->resize = row.size;
  if (members.Has("size")) config->resize = ReadSize(members, "size", is_square);
  if (row.name == "CLIPImageProcessor" && members.Bool("use_square_size", false)) {
    config->resize = {Kind::kExact, row.size.first, row.size.first};
  }
  if (!members.Bool("do_resize", true)) config->resize = {};

  ResizeRule crop = {Kind::kExact, row.crop, row.crop};
  if (members.Has("crop_size")) crop = ReadSize(members, "crop_size", true);
  if (members.Bool("do_center_crop", row.crop != 0)) {
    if (crop.kind != Kind::kExact || crop.first == 0) {
      members.Refuse("crop_size", "a number, or an object with height and width");
    }
    config->crop = ImageSize{crop.first, crop.second};
  }
  if (row.crop_pct != 0) ReadCropPct(members, row, config);

  const size_t filter = members.Size("resample", static_cast<size_t>(row.filter));
  if (filter > static_cast<size_t>(ResizeFilter::kHamming)) {
    members.Refuse("resample", "0 nearest, 1 Lanczos, 2 bilinear, 3 bicubic, 4 box or 5 Hamming");
  }
  config->filter = static_cast<ResizeFilter>(filter);
  if (row.floats) {
    if (config->filter != ResizeFilter::kBilinear && config->filter != ResizeFilter::kBicubic) {
      members.Refuse("resample", "2 bilinear or 3 bicubic, as floats are resized");
    }
    if (config->crop) members.Refuse("do_center_crop", "false, as floats are resized");
  }
  if (members.Bool("do_pad", false)) members.Refuse("do_pad", "false");
  members.Ignore("pad_size");

  if (config->crop) {
    config->output = *config->crop;
  } else if (config->resize.kind == Kind::kExact) {
    config->output = {config->resize.first, config->resize.second};
  } else {
    members.Refuse(config->resize.kind == Kind::kKeep ? "do_resize" : "size",
                   "an output of one size: height and width, or a centre crop");
  }
}

void ReadValues(JsonMembers& members, const ClassRow& row, ProcessorConfig* config) {
  const double factor = members.Number("rescale_factor", 1.0 / 255);
  if (!std::isfinite(static_cast<float>(255 * factor))) {
    members.Refuse("rescale_factor", "a number like 1 / 255");
  }
  if (members.Bool("do_rescale", true)) {
    config->rescale = factor;
  } else if (row.floats) {
    members.Refuse("do_rescale", "true, as floats are resized");
  }
  config->floats = row.floats;
  config->normalize = members.Bool("do_normalize", true);
  config->mean = row.mean;
  config->std = row.std;
  ReadNumbers(members, "image_mean", true, &config->mean);
  ReadNumbers(members, "image_std", false, &config->std);
}

}  // namespace

Result<ImageSize> ResizeRule::SizeOf(ImageSize picture) const {
  const auto height = static_cast<double>(picture.height);
  const auto width = static_cast<double>(picture.width);
  const double shorter = std::min(height, width);
  const double longer = std::max(height, width);
  const auto edge = static_cast<double>(first);
  // Each as transformers orders the operations, which rounds in double precision.
  double to_height = height;
  double to_width = width;
  switch (kind) {
    case Kind::kKeep:
      break;
    case Kind::kExact:
      to_height = edge;
      to_width = static_cast<double>(second);
      break;
    case Kind::kShortestEdge: {
      const double other = edge * longer / shorter;
      to_height = width <= height ? other : edge;
      to_width = width <= height ? edge : other;
      break;
    }
    case Kind::kLimitedEdges: {
      const auto most = static_cast<double>(second);
      double exact = edge;
      if (longer / shorter * edge > most) exact = most * shorter / longer;
      const double rounded = std::nearbyint(exact);
      if (shorter == rounded) break;
      const double other = (width < height ? exact * height / width : exact * width / height);
      to_height = width < height ? other : rounded;
      to_width = width < height ? rounded : other;
      break;
    }
    case Kind::kWithin: {
      const double scale = std::min(edge / height, static_cast<double>(second) / width);
      to_height = height * scale;
      to_width = width * scale;
      break;
    }
  }
  to_height = std::trunc(to_height);
  to_width = std::trunc(to_width);
  if (!(std::min(to_height, to_width) >= 1 && std::max(to_height, to_width) <= kMaxResizedEdge)) {
    return InvalidArgument("image: " + std::to_string(picture.width) + " x " +
                           std::to_string(picture.height) +
                           " pixels; wanted a ratio of edges that resizing leaves edges of 1 .. "
                           "2^30 pixels");
  }
  return ImageSize{static_cast<size_t>(to_height), static_cast<size_t>(to_width)};
}

Result<ProcessorConfig> ReadProcessorConfig(const Folder& folder, bool ignore_unknown_keys) {
  std::string where = "processor_config.json";
  ENCORE_ASSIGN_OR_RETURN(const std::optional<JsonValue> both, folder.ReadJson(where));
  const JsonValue* json = both ? both->Find("image_processor") : nullptr;
  std::optional<JsonValue> own;
  if (json != nullptr) {
    where += ": image_processor";
  } else {
    where = "preprocessor_config.json";
    ENCORE_ASSIGN_OR_RETURN(own, folder.ReadJson(where));
    if (!own) {
      return Status(ErrorCode::kNotFound,
                    QuotedPath(folder.path()) +
                        ": found no image processor; wanted "
                        "preprocessor_config.json, or image_processor in processor_config.json");
    }
    json = &*own;
  }

  JsonMembers members(*json, where);
  std::string key = "image_processor_type";
  std::string name = members.String(key, "");
  if (name.empty()) {
    key = "feature_extractor_type";
    name = members.String(key, "");
  }
  if (!members.ok()) return members.status();
  std::string model_type;
  std::string source = where + ": " + key;
  if (name.empty()) {
    ENCORE_ASSIGN_OR_RETURN(const std::optional<JsonValue> model, folder.ReadJson("config.json"));
    if (model) model_type = (*model)["model_type"].text();
    source = where + " names no class, and config.json: model_type";
  }
  ENCORE_ASSIGN_OR_RETURN(const ClassRow* const row, FindClass(BaseName(name), model_type, source));

  ProcessorConfig config;
  config.source = where + ": " + std::string(row->name);
  ReadGeometry(members, *row, &config);
  ReadValues(members, *row, &config);
  for (const char* const ignored : kNoEffect) members.Ignore(ignored);
  if (!members.ok()) return members.status();
  config.ignored = members.Unread();
  if (!config.ignored.empty() && !ignore_unknown_keys) {
    return InvalidArgument(where + ": unknown key " + Quoted(config.ignored[0]) +
                           "; it may change the result (ignore_unknown_keys lets it pass)");
  }
  return config;
}

}  // namespace encore::internal
