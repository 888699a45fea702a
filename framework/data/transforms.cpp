#include <tenon/data/transforms.hpp>

#include <cmath>
#include <cstring>
#include <utility>

namespace tenon::data {

void RandomCrop::apply(uint8_t* image, uint8_t* scratch, ImageShape shape, RandomStream& random) const {
  const int64_t dy = int64_t{random.below(2 * padding_ + 1)} - padding_, dx = int64_t{random.below(2 * padding_ + 1)} - padding_;
  const int64_t height = shape.height, width = shape.width;
  std::memcpy(scratch, image, shape.pixels());
  std::memset(image, fill_, shape.pixels());
  const int64_t x0 = std::max<int64_t>(0, -dx), x1 = std::min(width, width - dx);  // target columns that have a source
  if (x1 <= x0) return;
  for (uint32_t c = 0; c < shape.channels; ++c) {
    for (int64_t y = std::max<int64_t>(0, -dy); y < std::min(height, height - dy); ++y) {
      const int64_t target = (int64_t{c} * height + y) * width, source = (int64_t{c} * height + y + dy) * width;
      std::memcpy(image + target + x0, scratch + source + x0 + dx, static_cast<size_t>(x1 - x0));
    }
  }
}

void HorizontalFlip::apply(uint8_t* image, uint8_t*, ImageShape shape, RandomStream& random) const {
  if (random.uniform() >= probability_) return;
  for (uint64_t row = 0; row < uint64_t{shape.channels} * shape.height; ++row) {
    uint8_t* first = image + row * shape.width;
    for (uint32_t a = 0, b = shape.width; a + 1 < b; ++a, --b) std::swap(first[a], first[b - 1]);
  }
}

Status Normalise::check(ImageShape shape) const {
  const auto fits = [&](size_t n) { return n == 1 || n == shape.channels; };
  if (!fits(mean.size()) || !fits(stddev.size()))
    return {io::data_error(16), "normalise: wrong number of entries",
            std::to_string(mean.size()) + " means, " + std::to_string(stddev.size()) + " deviations; the images have " + std::to_string(shape.channels) + " channels",
            "give one entry, or one a channel", ""};
  for (float s : stddev)
    if (!(s > 0) || !std::isfinite(s)) return {io::data_error(16), "normalise: deviation not above 0", "it is " + std::to_string(s), "use the standard deviation of the data", ""};
  for (float m : mean)
    if (!std::isfinite(m)) return {io::data_error(16), "normalise: mean not finite", "it is " + std::to_string(m), "use the mean of the data", ""};
  return {};
}

Normalise measure_normalisation(const MemoryDataset& dataset) {
  const ImageShape shape = dataset.shape();
  const uint64_t plane = uint64_t{shape.height} * shape.width, count = dataset.size() * plane;
  Normalise result{{}, {}};
  for (uint32_t c = 0; c < shape.channels; ++c) {
    uint64_t sum = 0, squares = 0;
    for (uint64_t i = 0; i < dataset.size(); ++i) {
      const uint8_t* p = dataset.pixels().data() + (i * shape.channels + c) * plane;
      for (uint64_t k = 0; k < plane; ++k) sum += p[k], squares += uint64_t{p[k]} * p[k];
    }
    const double mean = static_cast<double>(sum) / static_cast<double>(count);
    const double variance = static_cast<double>(squares) / static_cast<double>(count) - mean * mean;
    result.mean.push_back(static_cast<float>(mean / 255));
    result.stddev.push_back(variance > 0 ? static_cast<float>(std::sqrt(variance) / 255) : 1.0f);  // constant images stay finite
  }
  return result;
}

}  // namespace tenon::data
