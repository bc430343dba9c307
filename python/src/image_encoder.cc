// SPDX-License-Identifier: Apache-2.0
//
// encore::ImageEncoder with its threads: pixels in numpy's arrays to vectors in others.

#include "encore/image_encoder.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <utility>

#include "encore/resize.h"
#include "python/src/bindings.h"
#include "python/src/model_options.h"
#include "python/src/watch.h"

namespace pyencore {
namespace {

// [height, width, channels], without gaps.
using Pixels = nb::ndarray<const uint8_t, nb::ndim<3>, nb::c_contig, nb::device::cpu>;

encore::ImageView ImageOf(const Pixels& pixels) {
  return {.pixels = pixels.data(),
          .width = pixels.shape(1),
          .height = pixels.shape(0),
          .stride = pixels.shape(1) * pixels.shape(2),
          .channels = pixels.shape(2)};
}

std::vector<encore::ImageView> ImagesOf(const std::vector<Pixels>& images) {
  std::vector<encore::ImageView> views;
  for (const Pixels& pixels : images) views.push_back(ImageOf(pixels));
  return views;
}

class ImageModel : public Opened<encore::ImageEncoder> {
 public:
  using Opened::Opened;

  // [images, dimensions].
  Array Encode(const std::vector<Pixels>& images, std::optional<bool> normalize, size_t dimensions,
               Watch* watch) const {
    const std::vector<encore::ImageView> views = ImagesOf(images);
    encore::ImageOptions options{
        .executor = executor(), .normalize = normalize, .dimensions = dimensions};
    return ArrayOf(Take(Watched(watch, &options, [&] { return model().Encode(views, options); })));
  }

  // What the head says of them: [images, labels].
  Array Classify(const std::vector<Pixels>& images, const std::string& activation,
                 Watch* watch) const {
    const std::vector<encore::ImageView> views = ImagesOf(images);
    encore::ImageOptions options{.executor = executor(),
                                 .activation = Take(encore::ScoreActivationFromName(activation))};
    return ArrayOf(
        Take(Watched(watch, &options, [&] { return model().Classify(views, options); })));
  }

  // [tokens, d_model], the first patch among them, and rows and columns of patches.
  nb::tuple EncodePatches(const Pixels& image, Watch* watch) const {
    encore::ImageOptions options{.executor = executor()};
    auto found = Take(
        Watched(watch, &options, [&] { return model().EncodePatches(ImageOf(image), options); }));
    return nb::make_tuple(ArrayOf(std::move(found.vectors)), found.first_patch, found.rows,
                          found.columns);
  }
};

}  // namespace

void BindImageEncoder(nb::module_& module) {
  // ValueError with `name` for pixels that ImageView's rules refuse.
  module.def(
      "check_image",
      [](const Pixels& pixels, const std::string& name) {
        const encore::Status status = encore::CheckImageView(ImageOf(pixels));
        if (!status.ok()) Raise({status.code(), name + ": " + std::string(status.message())});
      },
      nb::arg("pixels"), nb::arg("name"));
  nb::class_<ImageModel> bound(module, "ImageModel", nb::is_weak_referenceable());
  BindOpened(bound);
  bound
      .def("encode", &ImageModel::Encode, nb::arg("images"), nb::arg("normalize").none(),
           nb::arg("dimensions"), nb::arg("watch").none())
      .def("classify", &ImageModel::Classify, nb::arg("images"), nb::arg("activation"),
           nb::arg("watch").none())
      .def("encode_patches", &ImageModel::EncodePatches, nb::arg("image"), nb::arg("watch").none())
      .def_prop_ro("labels", [](const ImageModel& model) { return model.model().labels(); })
      // Scale and bias, which SigLIP has, of whole models; of others None.
      .def_prop_ro("text_scale",
                   [](const ImageModel& model) -> std::optional<nb::tuple> {
                     const std::optional<encore::TextScale> found = model.model().text_scale();
                     if (!found) return std::nullopt;
                     return nb::make_tuple(found->scale, found->bias);
                   })
      .def_prop_ro("max_dimensions",
                   [](const ImageModel& model) { return model.model().max_dimensions(); })
      .def_prop_ro("size", [](const ImageModel& model) {
        return nb::make_tuple(model.model().height(), model.model().width());
      });
}

}  // namespace pyencore
