// tenon/io/tensors.hpp - tensors in and out of safetensors files.
//
//   tenon::save_safetensors("model.safetensors", {{"fc.weight", w}, {"fc.bias", b}});
//   auto tensors = tenon::load_safetensors("model.safetensors");     // name -> Tensor on the default device
//
// Both block. Failures throw tenon::Error with the ids of io/safetensors.hpp; a failed save leaves the old file.
#pragma once
#include <tenon/core/error.hpp>
#include <tenon/core/tensor.hpp>
#include <tenon/io/status.hpp>

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace tenon {

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

// Any device, any strides; values are copied out first. Same tensors give the same bytes.
void save_safetensors(const std::string& path, const NamedTensors& tensors, const std::map<std::string, std::string>& metadata = {}, Where where = here());
// All tensors of a file, with the types they were saved in.
std::map<std::string, Tensor> load_safetensors(const std::string& path, TensorOptions options = {}, Where where = here());

// Throws the Error that a failed Status stands for; returns when it is ok. For layers above.
void throw_if_failed(const io::Status& status, Where where = here());
template <class T>
T value_or_throw(io::Result<T> result, Where where = here()) {
  if (!result) throw_if_failed(result.status(), where);
  return std::move(*result);
}

}  // namespace tenon
