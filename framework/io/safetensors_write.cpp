#include <tenon/io/safetensors.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <set>

namespace tenon::io {
namespace {

constexpr uint64_t kDataAlignment = 64;  // bytes; a reader that maps the file gets vectors on cache lines

Status refuse(const std::string& path, std::string why, std::string fix) {
  return {file_error(19), path + ": cannot be written as safetensors", std::move(why), std::move(fix), path};
}

Status check_view(const std::string& path, const SafetensorsView& v, std::set<std::string>* names) {
  if (v.name == "__metadata__") return refuse(path, "a tensor is named __metadata__, which the format keeps for itself", "rename the tensor");
  if (!names->insert(v.name).second) return refuse(path, "two tensors are named " + quote(v.name), "give each tensor its own name");
  if (safetensors_dtype_name(v.dtype) == nullptr)
    return refuse(path, "tensor " + quote(v.name) + " has dtype number " + std::to_string(v.dtype) + ", which the format has no name for", "cast it first");
  uint64_t size = 0;
  if (!checked_size_bytes(v.shape, safetensors_element_bytes(v.dtype), &size) || size != v.size_bytes)
    return refuse(path, "tensor " + quote(v.name) + " has " + std::to_string(v.size_bytes) + " bytes; its shape needs " + std::to_string(size), "pass dense bytes of the whole tensor");
  if (v.data == nullptr && v.size_bytes > 0) return refuse(path, "tensor " + quote(v.name) + " has no data", "pass a pointer to its bytes");
  return {};
}

// Large elements first: then every offset is a multiple of the element size without padding, which the format forbids.
std::vector<const SafetensorsView*> order(const std::vector<SafetensorsView>& tensors) {
  std::vector<const SafetensorsView*> sorted;
  for (const SafetensorsView& v : tensors) sorted.push_back(&v);
  std::sort(sorted.begin(), sorted.end(), [](const SafetensorsView* a, const SafetensorsView* b) {
    const uint32_t left = safetensors_element_bytes(a->dtype), right = safetensors_element_bytes(b->dtype);
    return left != right ? left > right : a->name < b->name;
  });
  return sorted;
}

// Throws nlohmann::json::type_error when a name or a metadata text is not UTF-8.
std::string header_text(const std::vector<const SafetensorsView*>& sorted, const std::map<std::string, std::string>& metadata) {
  const auto quoted = [](const std::string& text) { return nlohmann::json(text).dump(); };
  std::string text = "{", comma;
  if (!metadata.empty()) text += "\"__metadata__\":" + nlohmann::json(metadata).dump(), comma = ",";
  uint64_t begin = 0;
  for (const SafetensorsView* v : sorted) {
    text += comma + quoted(v->name) + ":{\"dtype\":\"" + safetensors_dtype_name(v->dtype) + "\",\"shape\":" + nlohmann::json(v->shape).dump() +
            ",\"data_offsets\":[" + std::to_string(begin) + "," + std::to_string(begin + v->size_bytes) + "]}";
    begin += v->size_bytes, comma = ",";
  }
  text += "}";
  text.append((kDataAlignment - (8 + text.size()) % kDataAlignment) % kDataAlignment, ' ');
  return text;
}

Status write_all(AtomicFile& file, const std::string& header, const std::vector<const SafetensorsView*>& sorted) {
  unsigned char length[8];
  for (int i = 0; i < 8; ++i) length[i] = static_cast<unsigned char>(static_cast<uint64_t>(header.size()) >> (8 * i));
  Status status = file.write(length, 8);
  if (status.ok()) status = file.write(header.data(), header.size());
  for (const SafetensorsView* v : sorted)
    if (status.ok()) status = file.write(v->data, v->size_bytes);
  return status;
}

}  // namespace

Status write_safetensors(const std::string& path, const std::vector<SafetensorsView>& tensors, const std::map<std::string, std::string>& metadata) {
  std::set<std::string> names;
  uint64_t data_size = 0;
  for (const SafetensorsView& v : tensors) {
    Status status = check_view(path, v, &names);
    if (!status.ok()) return status;
    if (__builtin_add_overflow(data_size, v.size_bytes, &data_size)) return refuse(path, "all tensors together exceed 2^64 bytes", "write several files");
  }
  const std::vector<const SafetensorsView*> sorted = order(tensors);
  std::string header;
  try {
    header = header_text(sorted, metadata);
  } catch (const nlohmann::json::exception&) {
    return refuse(path, "a tensor name or a metadata text is not valid UTF-8", "use UTF-8 text");
  }
  if (header.size() > kSafetensorsHeaderLimit)
    return refuse(path, "the header would have " + std::to_string(header.size()) + " bytes; the format allows " + std::to_string(kSafetensorsHeaderLimit), "write several files");
  Result<AtomicFile> file = AtomicFile::create(path);
  if (!file) return file.status();
  Status status = file->reserve(8 + header.size() + data_size);
  if (status.ok()) status = write_all(*file, header, sorted);
  return status.ok() ? file->commit() : status;
}

}  // namespace tenon::io
