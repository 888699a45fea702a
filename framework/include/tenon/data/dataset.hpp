// tenon/data/dataset.hpp - labelled images: in memory, or read from files larger than memory.
//
//   auto data = tenon::data::load_idx_dataset("/usr/share/datasets/fashion-mnist");
//   if (!data) std::cerr << data.status().text();
//   else std::cout << data->train->size() << " images, " << data->train_images_known_as << "\n";
//
// Pixels are u8, channels x height x width, row-major; labels are i64. Datasets do not change after they are made: any
// thread may read, several at once.
// Errors: TN-FILE-*, TN-DATA-001..009 of the files, and
//   TN-DATA-009 images or labels have the wrong type or rank   010 image and label counts differ   011 files missing in a folder
//   TN-DATA-012 label out of range   013 no samples   014 index out of range   015 packed file cannot be streamed
#pragma once
#include <tenon/data/idx.hpp>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace tenon::data {

struct ImageShape {
  uint32_t channels = 1, height = 0, width = 0;
  uint64_t pixels() const { return uint64_t{channels} * height * width; }
  bool operator==(const ImageShape&) const = default;
};

// What a loader needs from data; derive from it to bring your own.
class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual uint64_t size() const = 0;           // samples
  virtual ImageShape shape() const = 0;        // the same for all samples
  virtual uint32_t classes() const = 0;        // labels are 0..classes-1
  // Copies samples into the caller's buffers: indices.size() x shape().pixels() bytes, and as many labels. May throw;
  // a loader hands the exception on to whoever waits for the batch.
  virtual Status read(std::span<const uint64_t> indices, uint8_t* pixels, int64_t* labels) const = 0;
};

// Everything in memory. Owns its bytes.
class MemoryDataset final : public Dataset {
 public:
  // pixels: n x shape.pixels(), labels: n. classes 0: one more than the largest label.
  static Result<std::shared_ptr<const MemoryDataset>> create(ImageShape shape, std::vector<uint8_t> pixels, std::vector<int64_t> labels, uint32_t classes = 0);
  uint64_t size() const override { return labels_.size(); }
  ImageShape shape() const override { return shape_; }
  uint32_t classes() const override { return classes_; }
  Status read(std::span<const uint64_t> indices, uint8_t* pixels, int64_t* labels) const override;
  std::span<const uint8_t> pixels() const { return pixels_; }    // borrowed
  std::span<const int64_t> labels() const { return labels_; }    // borrowed

 private:
  MemoryDataset() = default;
  ImageShape shape_;
  uint32_t classes_ = 0;
  std::vector<uint8_t> pixels_;
  std::vector<int64_t> labels_;
};

// Reads pixels from an unpacked IDX file when they are asked for; only labels are held in memory (8 bytes a sample).
// Neighbouring indices are read at once. Any order works, so shuffling does too.
class StreamingIdxDataset final : public Dataset {
 public:
  static Result<std::shared_ptr<const StreamingIdxDataset>> open(const std::string& images_path, const std::string& labels_path);
  uint64_t size() const override { return labels_.size(); }
  ImageShape shape() const override { return shape_; }
  uint32_t classes() const override { return classes_; }
  Status read(std::span<const uint64_t> indices, uint8_t* pixels, int64_t* labels) const override;

 private:
  StreamingIdxDataset(io::File file, ImageShape shape, uint64_t offset) : file_(std::move(file)), shape_(shape), offset_(offset) {}
  io::File file_;
  ImageShape shape_;
  uint64_t offset_ = 0;
  uint32_t classes_ = 0;
  std::vector<int64_t> labels_;
};

// The first `count` samples of another dataset, which is kept alive. count 0 or larger than the dataset: all of it.
std::shared_ptr<const Dataset> first_samples(std::shared_ptr<const Dataset> dataset, uint64_t count);

struct IdxDataset {
  std::shared_ptr<const MemoryDataset> train, test;
  // Published content, or "" when unknown; in the order train images, train labels, test images, test labels.
  std::string train_images_known_as, train_labels_known_as, test_images_known_as, test_labels_known_as;
  bool verified() const { return !train_images_known_as.empty() && !train_labels_known_as.empty() && !test_images_known_as.empty() && !test_labels_known_as.empty(); }
};
// Finds {train,t10k}-{images-idx3,labels-idx1}-ubyte in a folder, also with '.' for the second '-' and with .gz, and
// loads all four. Something missing: TN-DATA-011 names what, and what the folder has.
Result<IdxDataset> load_idx_dataset(const std::string& directory);
// One pair of files.
Result<std::shared_ptr<const MemoryDataset>> load_idx_pair(const std::string& images_path, const std::string& labels_path,
                                                           std::string* images_known_as = nullptr, std::string* labels_known_as = nullptr);

}  // namespace tenon::data
