// Real images for the tests: 2,500 of Fashion-MNIST's or MNIST's test files, as a dataset or as IDX files in a folder.
#pragma once
#include <gtest/gtest.h>
#include <tenon/data/dataset.hpp>
#include <tenon/io/file.hpp>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace tenon::test {

inline std::shared_ptr<const data::MemoryDataset> real_images() {
  static const std::shared_ptr<const data::MemoryDataset> images = [] {
    const char* given = std::getenv("TENON_TEST_DATA");
    for (const std::string& folder : {std::string("/usr/share/datasets/fashion-mnist"), std::string(given ? given : TENON_TEST_DEFAULT_DATA) + "/images/mnist"}) {
      auto pair = data::load_idx_pair(folder + "/t10k-images-idx3-ubyte.gz", folder + "/t10k-labels-idx1-ubyte.gz");
      if (pair) return *pair;
    }
    return std::shared_ptr<const data::MemoryDataset>();
  }();
  return images;
}

#define TENON_NEEDS_IMAGES() \
  if (!::tenon::test::real_images()) GTEST_SKIP() << "no real images: install dataset-fashion-mnist, or point TENON_TEST_DATA to the data folder"

// The images first, first + 1, ... as a dataset of their own.
inline std::shared_ptr<const data::MemoryDataset> some_images(uint64_t first, uint64_t count) {
  const auto all = real_images();
  const uint64_t n = all->shape().pixels();
  const auto pixels = all->pixels().subspan(first * n, count * n);
  const auto labels = all->labels().subspan(first, count);
  return *data::MemoryDataset::create(all->shape(), {pixels.begin(), pixels.end()}, {labels.begin(), labels.end()}, 10);
}

struct TempFolder {
  TempFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "tenon-train-XXXXXX").string();
    path = ::mkdtemp(name.data());
  }
  ~TempFolder() { std::filesystem::remove_all(path); }
  std::string path;
};

inline void write_idx(const std::string& path, std::initializer_list<uint32_t> dims, const std::string& bytes) {
  std::string file{0, 0, 8, static_cast<char>(dims.size())};
  for (uint32_t d : dims) for (int shift = 24; shift >= 0; shift -= 8) file += static_cast<char>(d >> shift & 255);
  ASSERT_TRUE(io::write_file(path, file + bytes).ok());
}
inline void write_split(const std::string& folder, const std::string& part, const data::MemoryDataset& d) {
  const uint32_t n = static_cast<uint32_t>(d.size());
  write_idx(folder + "/" + part + "-images-idx3-ubyte", {n, d.shape().height, d.shape().width}, {d.pixels().begin(), d.pixels().end()});
  write_idx(folder + "/" + part + "-labels-idx1-ubyte", {n}, {d.labels().begin(), d.labels().end()});
}
// A folder as `tenon train --data` takes it.
inline void write_images(const std::string& folder, uint64_t train, uint64_t test) {
  write_split(folder, "train", *some_images(0, train));
  write_split(folder, "t10k", *some_images(train, test));
}

}  // namespace tenon::test
