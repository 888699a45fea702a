#include <tenon/io/safetensors.hpp>
#include <tenon/io/tensors.hpp>

namespace tenon {
namespace {

tn_status status_of(uint32_t id) {
  if (id == io::file_error(1)) return TN_E_NOT_FOUND;
  if (id == io::file_error(2)) return TN_E_DENIED;
  return id >> 16 == io::kFileFamily ? TN_E_IO : TN_E_ARG;
}

// Does Tensor have this element type of the format? (C64 it has not.)
bool has_dtype(uint32_t dtype) { return dtype != TN_C64; }

}  // namespace

void throw_if_failed(const io::Status& s, Where where) {
  if (!s.ok()) throw Error(status_of(s.id), s.id, s.what, where, s.where, s.why, s.fix);
}

void save_safetensors(const std::string& path, const NamedTensors& tensors, const std::map<std::string, std::string>& metadata, Where where) {
  std::vector<std::vector<char>> bytes;
  std::vector<io::SafetensorsView> views;
  bytes.reserve(tensors.size());
  for (const auto& [name, tensor] : tensors) {
    bytes.emplace_back(static_cast<size_t>(tensor.numel() * size_bytes(tensor.dtype())));
    if (!bytes.back().empty()) tensor.read(bytes.back().data(), bytes.back().size(), where);
    views.push_back({name, static_cast<uint32_t>(tensor.dtype()), {tensor.dims().begin(), tensor.dims().end()}, bytes.back().data(), bytes.back().size()});
  }
  throw_if_failed(io::write_safetensors(path, views, metadata), where);
}

std::map<std::string, Tensor> load_safetensors(const std::string& path, TensorOptions options, Where where) {
  const io::SafetensorsFile file = value_or_throw(io::SafetensorsFile::open(path), where);
  std::map<std::string, Tensor> tensors;
  std::vector<char> bytes;
  for (const io::SafetensorsEntry& t : file.tensors()) {
    if (!has_dtype(t.dtype) || t.shape.size() > TN_MAX_RANK)
      throw_if_failed({io::file_error(18), path + ": tensor not supported", io::quote(t.name) + " has dtype " + io::safetensors_dtype_name(t.dtype) + " and rank " + std::to_string(t.shape.size()),
                       "convert it to a real type of rank 8 or less", path}, where);
    bytes.resize(t.size_bytes());
    throw_if_failed(file.read(t, bytes.data(), bytes.size()), where);
    const std::vector<int64_t> dims(t.shape.begin(), t.shape.end());
    tensors.emplace(t.name, from_host(bytes.data(), static_cast<DType>(t.dtype), Shape(dims), options, where));
  }
  return tensors;
}

}  // namespace tenon
