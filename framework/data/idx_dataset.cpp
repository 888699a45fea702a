#include <tenon/data/dataset.hpp>
#include <tenon/types.h>

#include "dataset_detail.hpp"

#include <algorithm>
#include <filesystem>

namespace tenon::data {
namespace {

namespace fs = std::filesystem;

Status wrong_kind(const std::string& where, const std::string& found, const char* wanted) {
  return {io::data_error(9), where + ": not the kind of data wanted here", "found " + found + "; wanted " + wanted,
          "check that images and labels are not swapped", where};
}

std::string header_text(const IdxHeader& header) {
  std::string text = header.dtype == TN_U8 ? "u8[" : "another type[";
  for (size_t i = 0; i < header.dims.size(); ++i) text += (i ? "," : "") + std::to_string(header.dims[i]);
  return text + "]";
}

// Every spelling under which the four files are passed around.
std::vector<std::string> spellings(const std::string& stem) {
  const size_t idx = stem.find("-idx");
  std::string dotted = stem;
  dotted[idx] = '.';
  return {stem, stem + ".gz", dotted, dotted + ".gz"};
}

std::string find_spelling(const std::string& directory, const std::string& stem) {
  std::error_code error;
  for (const std::string& name : spellings(stem))
    if (fs::exists(directory + "/" + name, error)) return directory + "/" + name;
  return "";
}

std::string folder_content(const std::string& directory) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) names.push_back(it->path().filename().string());
  if (names.empty()) return "nothing";
  std::sort(names.begin(), names.end());
  std::string text;
  for (size_t i = 0; i < names.size() && i < 12; ++i) text += (i ? ", " : "") + io::quote(names[i], 48);
  return names.size() > 12 ? text + ", and " + std::to_string(names.size() - 12) + " more" : text;
}

Status check_directory(const std::string& directory) {
  std::error_code error;
  const fs::file_status status = fs::status(directory, error);
  if (!fs::exists(status)) return io::errno_status(directory, "open", error ? error.value() : ENOENT);
  if (fs::is_directory(status)) return {};
  return {io::data_error(11), directory + ": not a folder", "four IDX files are looked for in a folder", "name the folder that holds them", directory};
}

}  // namespace

Result<ImageShape> image_shape(const IdxHeader& header, const std::string& where) {
  const size_t rank = header.dims.size();
  if (header.dtype != TN_U8 || (rank != 3 && rank != 4)) return wrong_kind(where, header_text(header), "images: u8 of rank 3 or 4");
  const ImageShape shape{rank == 4 ? header.dims[1] : 1, header.dims[rank - 2], header.dims[rank - 1]};
  if (header.dims[0] == 0 || header.data_bytes == 0)
    return Status{io::data_error(13), where + ": no samples", "it holds " + header_text(header), "name a file with samples", where};
  return shape;
}

Status check_label_header(const IdxHeader& header, const std::string& where) {
  if (header.dtype == TN_U8 && header.dims.size() == 1) return {};
  return wrong_kind(where, header_text(header), "labels: u8 of rank 1");
}

Status check_counts(uint64_t images, uint64_t labels, const std::string& images_path, const std::string& labels_path) {
  if (images == labels) return {};
  return {io::data_error(10), labels_path + ": image and label counts differ", std::to_string(images) + " images in " + images_path + "; " + std::to_string(labels) + " labels",
          "take both files from the same set", labels_path};
}

Result<std::shared_ptr<const MemoryDataset>> load_idx_pair(const std::string& images_path, const std::string& labels_path, std::string* images_known_as,
                                                           std::string* labels_known_as) {
  Result<IdxArray> labels = load_idx(labels_path);  // the small file first: a mistake shows at once
  if (!labels) return labels.status();
  Status status = check_label_header(labels->header, labels_path);
  if (!status.ok()) return status;
  Result<IdxArray> images = load_idx(images_path);
  if (!images) return images.status();
  Result<ImageShape> shape = image_shape(images->header, images_path);
  if (!shape) return shape.status();
  status = check_counts(images->header.dims[0], labels->bytes.size(), images_path, labels_path);
  if (!status.ok()) return status;
  if (images_known_as) *images_known_as = images->known_as;
  if (labels_known_as) *labels_known_as = labels->known_as;
  return MemoryDataset::create(*shape, std::move(images->bytes), {labels->bytes.begin(), labels->bytes.end()});
}

Result<IdxDataset> load_idx_dataset(const std::string& directory) {
  Status status = check_directory(directory);
  if (!status.ok()) return status;
  const std::string stems[4] = {"train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"};
  std::string paths[4], missing;
  for (int i = 0; i < 4; ++i) {
    paths[i] = find_spelling(directory, stems[i]);
    if (paths[i].empty()) missing += (missing.empty() ? "" : ", ") + stems[i] + "[.gz]";
  }
  if (!missing.empty())
    return Status{io::data_error(11), directory + ": files missing", "not found: " + missing + "; the folder has " + folder_content(directory),
                  "put the four files there, or install Debian's dataset-fashion-mnist and use /usr/share/datasets/fashion-mnist", directory};
  IdxDataset data;
  auto train = load_idx_pair(paths[0], paths[1], &data.train_images_known_as, &data.train_labels_known_as);
  if (!train) return train.status();
  auto test = load_idx_pair(paths[2], paths[3], &data.test_images_known_as, &data.test_labels_known_as);
  if (!test) return test.status();
  data.train = *train, data.test = *test;
  if (data.train->shape() != data.test->shape())
    return Status{io::data_error(9), directory + ": train and test images differ in shape",
                  std::to_string(data.train->shape().height) + "x" + std::to_string(data.train->shape().width) + " against " + std::to_string(data.test->shape().height) + "x" +
                      std::to_string(data.test->shape().width),
                  "take all four files from the same set", directory};
  return data;
}

}  // namespace tenon::data
