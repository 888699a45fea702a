#include <tenon/io/safetensors.hpp>

#include <bit>

namespace tenon::io {
namespace {

static_assert(std::endian::native == std::endian::little, "tensor bytes are read as they stand");

uint64_t little_endian(const unsigned char* b) {
  uint64_t v = 0;
  for (int i = 7; i >= 0; --i) v = v << 8 | b[i];
  return v;
}

// What can be said about a file from its first 8 bytes and its size.
Status check_prefix(uint64_t file_size, uint64_t header_size, const std::string& where) {
  if (file_size < 8)
    return {file_error(10), where + ": the file is truncated", "a safetensors file has at least 8 bytes; this one has " + std::to_string(file_size),
            "copy or download it again", where};
  if (header_size > kSafetensorsHeaderLimit)
    return {file_error(11), where + ": header too large",
            "the first 8 bytes say " + std::to_string(header_size) + "; the format allows " + std::to_string(kSafetensorsHeaderLimit),
            "check that this is a safetensors file", where};
  if (header_size > file_size - 8)
    return {file_error(10), where + ": the file is truncated",
            "its header needs " + std::to_string(header_size) + " bytes; " + std::to_string(file_size - 8) + " follow the length field",
            "copy or download it again", where};
  return {};
}

}  // namespace

Result<SafetensorsHeader> parse_safetensors(std::string_view bytes, const std::string& where) {
  uint64_t header_size = 0;
  if (bytes.size() >= 8) header_size = little_endian(reinterpret_cast<const unsigned char*>(bytes.data()));
  Status prefix = check_prefix(bytes.size(), header_size, where);
  if (!prefix.ok()) return prefix;
  return parse_safetensors_header(bytes.substr(8, header_size), bytes.size() - 8 - header_size, where);
}

SafetensorsFile::SafetensorsFile(File file, SafetensorsHeader header) : file_(std::move(file)), header_(std::move(header)) {
  for (size_t i = 0; i < header_.tensors.size(); ++i) index_.emplace(header_.tensors[i].name, i);
}

Result<SafetensorsFile> SafetensorsFile::open(const std::string& path, bool follow_links) {
  Result<File> file = File::open(path, follow_links);
  if (!file) return file.status();
  unsigned char length[8] = {};
  if (file->size_bytes() >= 8) {
    Status status = file->read_at(0, length, 8);
    if (!status.ok()) return status;
  }
  const uint64_t header_size = little_endian(length);
  Status prefix = check_prefix(file->size_bytes(), header_size, path);
  if (!prefix.ok()) return prefix;
  std::string json(header_size, '\0');
  Status status = file->read_at(8, json.data(), json.size());
  if (!status.ok()) return status;
  Result<SafetensorsHeader> header = parse_safetensors_header(json, file->size_bytes() - 8 - header_size, path);
  if (!header) return header.status();
  return SafetensorsFile(std::move(*file), std::move(*header));
}

const SafetensorsEntry* SafetensorsFile::find(std::string_view name) const {
  const auto it = index_.find(name);
  return it == index_.end() ? nullptr : &header_.tensors[it->second];
}

Status SafetensorsFile::read(const SafetensorsEntry& tensor, void* out, size_t out_size) const {
  if (out_size != tensor.size_bytes())
    return {file_error(15), path() + ": buffer of the wrong size",
            quote(tensor.name) + " has " + std::to_string(tensor.size_bytes()) + " bytes; the buffer " + std::to_string(out_size),
            "give a buffer of exactly that size", path()};
  return file_.read_at(header_.data_offset_bytes + tensor.begin, out, out_size);
}

Status SafetensorsFile::read_range(const SafetensorsEntry& tensor, uint64_t offset, void* out, size_t count) const {
  if (offset > tensor.size_bytes() || count > tensor.size_bytes() - offset)
    return {file_error(15), path() + ": range outside the tensor",
            quote(tensor.name) + " has " + std::to_string(tensor.size_bytes()) + " bytes; asked for " + std::to_string(count) + " from " + std::to_string(offset),
            "ask for bytes inside the tensor", path()};
  return file_.read_at(header_.data_offset_bytes + tensor.begin + offset, out, count);
}

}  // namespace tenon::io
