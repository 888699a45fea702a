// tenon/data/transforms.hpp - what happens to an image between dataset and batch.
//
//   LoaderOptions o;
//   o.transforms = {std::make_shared<RandomCrop>(2), std::make_shared<HorizontalFlip>()};
//   o.normalise = {{0.2860f}, {0.3530f}};               // per channel, of pixels scaled to 0..1
//
// Pixel transforms change u8 images in place, each with a random stream of its own named by (seed, epoch, sample index,
// place in the list): the result depends on nothing else, in particular not on threads or batch size.
#pragma once
#include <tenon/data/dataset.hpp>
#include <tenon/data/philox.hpp>

#include <vector>

namespace tenon::data {

// Derive from it to bring your own. Objects are shared by threads, so apply is const.
class PixelTransform {
 public:
  virtual ~PixelTransform() = default;
  // image: channels x height x width, changed in place; scratch: as many bytes, content undefined.
  virtual void apply(uint8_t* image, uint8_t* scratch, ImageShape shape, RandomStream& random) const = 0;
};

// Shifts by -padding..+padding in both directions, each of the (2 padding + 1)^2 shifts equally likely; what comes in
// from outside is `fill`. The same as padding and cropping to the old size.
class RandomCrop final : public PixelTransform {
 public:
  explicit RandomCrop(uint32_t padding, uint8_t fill = 0) : padding_(padding), fill_(fill) {}
  void apply(uint8_t* image, uint8_t* scratch, ImageShape shape, RandomStream& random) const override;

 private:
  uint32_t padding_;
  uint8_t fill_;
};

// Mirrors left and right with the given probability.
class HorizontalFlip final : public PixelTransform {
 public:
  explicit HorizontalFlip(float probability = 0.5f) : probability_(probability) {}
  void apply(uint8_t* image, uint8_t* scratch, ImageShape shape, RandomStream& random) const override;

 private:
  float probability_;
};

// y = (pixel / 255 - mean) / stddev per channel. One entry serves all channels. Computed as pixel * scale + bias in f32 with
// scale = 1 / (255 stddev), bias = -mean / stddev rounded once from f64.
struct Normalise {
  std::vector<float> mean{0.0f}, stddev{1.0f};
  Status check(ImageShape shape) const;  // TN-DATA-016: wrong number of entries, or stddev not above 0
  void apply(const uint8_t* image, ImageShape shape, float* out) const;
};

// Mean and standard deviation of all pixels / 255 per channel, from exact integer sums.
Normalise measure_normalisation(const MemoryDataset& dataset);

}  // namespace tenon::data
