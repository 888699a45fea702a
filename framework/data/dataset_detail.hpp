// Checks shared by the datasets; internal to framework/data.
#pragma once
#include <tenon/data/dataset.hpp>

namespace tenon::data {

Status index_out_of_range(uint64_t index, uint64_t size);
// *classes 0: set to one more than the largest label. Refuses an empty list.
Status check_labels(const std::vector<int64_t>& labels, uint32_t* classes, const std::string& where);
// u8 of rank 3 (n, height, width) or 4 (n, channels, height, width), no empty dim.
Result<ImageShape> image_shape(const IdxHeader& header, const std::string& where);
Status check_label_header(const IdxHeader& header, const std::string& where);
Status check_counts(uint64_t images, uint64_t labels, const std::string& images_path, const std::string& labels_path);

}  // namespace tenon::data
