#include <tenon/data/dataset.hpp>

#include "dataset_detail.hpp"

namespace tenon::data {

Result<std::shared_ptr<const StreamingIdxDataset>> StreamingIdxDataset::open(const std::string& images_path, const std::string& labels_path) {
  Result<io::File> file = io::File::open(images_path);
  if (!file) return file.status();
  std::string prefix(std::min<uint64_t>(file->size_bytes(), 4 + 4 * 8), '\0');
  Status status = file->read_at(0, prefix.data(), prefix.size());
  if (!status.ok()) return status;
  if (prefix.starts_with("\x1f\x8b"))
    return Status{io::data_error(15), images_path + ": a packed file cannot be streamed", "it is gzip; samples are read from any place in it", "unpack it first: gunzip -k " + images_path, images_path};
  IdxLimits limits;
  limits.data_bytes = UINT64_MAX;  // the file itself is the limit: checked below
  Result<IdxHeader> header = parse_idx_header(prefix, images_path, limits);
  if (!header) return header.status();
  const uint64_t have = file->size_bytes() - header->header_bytes;
  if (have != header->data_bytes)
    return Status{io::data_error(have < header->data_bytes ? 6 : 7), images_path + (have < header->data_bytes ? ": fewer bytes than its counts say" : ": bytes left over at the end"),
                  "the counts need " + std::to_string(header->data_bytes) + " bytes of data; the file has " + std::to_string(have), "copy or download it again", images_path};
  Result<ImageShape> shape = image_shape(*header, images_path);
  if (!shape) return shape.status();
  Result<IdxArray> labels = load_idx(labels_path);
  if (!labels) return labels.status();
  status = check_label_header(labels->header, labels_path);
  if (status.ok()) status = check_counts(header->dims[0], labels->bytes.size(), images_path, labels_path);
  if (!status.ok()) return status;
  auto dataset = std::shared_ptr<StreamingIdxDataset>(new StreamingIdxDataset(std::move(*file), *shape, header->header_bytes));
  dataset->labels_.assign(labels->bytes.begin(), labels->bytes.end());
  status = check_labels(dataset->labels_, &dataset->classes_, labels_path);
  if (!status.ok()) return status;
  return std::shared_ptr<const StreamingIdxDataset>(std::move(dataset));
}

Status StreamingIdxDataset::read(std::span<const uint64_t> indices, uint8_t* pixels, int64_t* labels) const {
  const uint64_t bytes = shape_.pixels();
  for (size_t i = 0; i < indices.size();) {
    size_t run = 1;  // samples that lie side by side in the file
    while (i + run < indices.size() && indices[i + run] == indices[i] + run) ++run;
    if (indices[i] >= size() || run > size() - indices[i]) return index_out_of_range(indices[i] + run - 1, size());
    Status status = file_.read_at(offset_ + indices[i] * bytes, pixels + i * bytes, run * bytes);
    if (!status.ok()) return status;
    for (size_t k = 0; k < run; ++k) labels[i + k] = labels_[indices[i + k]];
    i += run;
  }
  return {};
}

}  // namespace tenon::data
