#include <tenon/data/dataset.hpp>

#include "dataset_detail.hpp"

#include <algorithm>
#include <cstring>

namespace tenon::data {

Status index_out_of_range(uint64_t index, uint64_t size) {
  return {io::data_error(14), "dataset: index out of range", "index " + std::to_string(index) + "; the dataset has " + std::to_string(size) + " samples",
          "use indices below size()", ""};
}

Status check_labels(const std::vector<int64_t>& labels, uint32_t* classes, const std::string& where) {
  if (labels.empty()) return {io::data_error(13), where + ": no samples", "the count is 0", "name a file with samples", where};
  const auto [low, high] = std::minmax_element(labels.begin(), labels.end());
  const int64_t limit = *classes > 0 ? *classes : int64_t{1} << 24;
  if (*low < 0 || *high >= limit) {
    const auto at = *low < 0 ? low : high;
    return {io::data_error(12), where + ": label out of range",
            "sample " + std::to_string(at - labels.begin()) + " has label " + std::to_string(*at) + "; allowed are 0 to " + std::to_string(limit - 1),
            "check that images and labels belong together, or raise the number of classes", where};
  }
  if (*classes == 0) *classes = static_cast<uint32_t>(*high + 1);
  return {};
}

Result<std::shared_ptr<const MemoryDataset>> MemoryDataset::create(ImageShape shape, std::vector<uint8_t> pixels, std::vector<int64_t> labels, uint32_t classes) {
  Status status = check_labels(labels, &classes, "dataset");
  if (!status.ok()) return status;
  uint64_t need = 0;
  if (__builtin_mul_overflow(shape.pixels(), uint64_t{labels.size()}, &need) || need != pixels.size() || need == 0)
    return Status{io::data_error(10), "dataset: image and label counts differ",
                  std::to_string(pixels.size()) + " bytes of pixels; " + std::to_string(labels.size()) + " labels x " + std::to_string(shape.pixels()) + " pixels need another number",
                  "pass as many images as labels", ""};
  auto dataset = std::shared_ptr<MemoryDataset>(new MemoryDataset);
  dataset->shape_ = shape;
  dataset->classes_ = classes;
  dataset->pixels_ = std::move(pixels);
  dataset->labels_ = std::move(labels);
  return std::shared_ptr<const MemoryDataset>(std::move(dataset));
}

Status MemoryDataset::read(std::span<const uint64_t> indices, uint8_t* pixels, int64_t* labels) const {
  const uint64_t bytes = shape_.pixels();
  for (size_t i = 0; i < indices.size(); ++i) {
    if (indices[i] >= size()) return index_out_of_range(indices[i], size());
    std::memcpy(pixels + i * bytes, pixels_.data() + indices[i] * bytes, bytes);
    labels[i] = labels_[indices[i]];
  }
  return {};
}

namespace {

class Prefix final : public Dataset {
 public:
  Prefix(std::shared_ptr<const Dataset> whole, uint64_t count) : whole_(std::move(whole)), count_(count) {}
  uint64_t size() const override { return count_; }
  ImageShape shape() const override { return whole_->shape(); }
  uint32_t classes() const override { return whole_->classes(); }
  Status read(std::span<const uint64_t> indices, uint8_t* pixels, int64_t* labels) const override {
    for (uint64_t index : indices)
      if (index >= count_) return index_out_of_range(index, count_);
    return whole_->read(indices, pixels, labels);
  }

 private:
  std::shared_ptr<const Dataset> whole_;
  uint64_t count_;
};

}  // namespace

std::shared_ptr<const Dataset> first_samples(std::shared_ptr<const Dataset> dataset, uint64_t count) {
  if (count == 0 || count >= dataset->size()) return dataset;
  return std::make_shared<Prefix>(std::move(dataset), count);
}

}  // namespace tenon::data
