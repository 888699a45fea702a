// tenon/io/safetensors.hpp - the safetensors format, read strictly and written deterministically.
//
//   auto file = tenon::io::SafetensorsFile::open("model.safetensors");
//   if (!file) return file.status();
//   if (const auto* t = file->find("fc.weight")) file->read(*t, buffer.data(), buffer.size());
//
// File: u64 little-endian header length N (at most 100 MB), N bytes of JSON, then the tensors' bytes, row-major,
// little-endian, without holes. Every rule of the format is checked before any tensor can be read; the file is not mapped.
// Errors: TN-FILE-001..008 of file.hpp, and
//   TN-FILE-010 shorter than its header says     011 header length over the limit   012 header is not the JSON it must be
//   TN-FILE-013 duplicate key                    014 unknown dtype                   015 shape and byte range differ
//   TN-FILE-016 ranges overlap, leave a hole or do not start at 0                    017 bytes missing or left over
//   TN-FILE-018 dtype known to the format, not to Tenon                              019 cannot be written in this format
#pragma once
#include <tenon/io/file.hpp>
#include <tenon/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::io {

// One tensor of a file. begin/end count bytes from the start of the data section.
struct SafetensorsEntry {
  std::string name;
  uint32_t dtype = 0;             // TN_F32, ...
  std::vector<uint64_t> shape;    // empty: one element
  uint64_t begin = 0, end = 0;
  uint64_t size_bytes() const { return end - begin; }
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> tensors;         // in the order of their bytes
  std::map<std::string, std::string> metadata;   // "__metadata__"
  uint64_t data_offset_bytes = 0;                // where the data section starts in the file
};

inline constexpr uint64_t kSafetensorsHeaderLimit = 100'000'000;  // bytes, by the format

// Checks a header's JSON text against the length of the data section that follows it. Pure; `where` names the file in
// messages. Never throws but std::bad_alloc; any bytes may be given.
Result<SafetensorsHeader> parse_safetensors_header(std::string_view json, uint64_t data_size_bytes, const std::string& where);
// The same for a whole file image in memory.
Result<SafetensorsHeader> parse_safetensors(std::string_view bytes, const std::string& where);

// An open file. Movable; reading from any thread. Keeps the file open, so replacing it on disk does no harm.
class SafetensorsFile {
 public:
  static Result<SafetensorsFile> open(const std::string& path, bool follow_links = true);
  const std::vector<SafetensorsEntry>& tensors() const { return header_.tensors; }
  const std::map<std::string, std::string>& metadata() const { return header_.metadata; }
  const std::string& path() const { return file_.path(); }
  const SafetensorsEntry* find(std::string_view name) const;  // nullptr when absent; borrowed from this object
  // Copies all bytes of a tensor; out_size_bytes must equal its size. Blocks.
  Status read(const SafetensorsEntry& tensor, void* out, size_t out_size_bytes) const;
  // Copies a part, for sharded reading.
  Status read_range(const SafetensorsEntry& tensor, uint64_t offset_bytes, void* out, size_t count_bytes) const;

 private:
  SafetensorsFile(File file, SafetensorsHeader header);
  File file_;
  SafetensorsHeader header_;
  std::map<std::string, size_t, std::less<>> index_;
};

// A tensor to be written: dense row-major bytes, borrowed for the call.
struct SafetensorsView {
  std::string name;
  uint32_t dtype = 0;
  std::vector<uint64_t> shape;
  const void* data = nullptr;
  uint64_t size_bytes = 0;   // must equal elements x element size
};

// Replaces `path` atomically (AtomicFile). The same input gives the same bytes: tensors are ordered by element size
// (large first, so that each is aligned to its element), then name; the data section starts at a multiple of 64 bytes.
// Everything that can be wrong with the input, and room on the disk, is checked before the first byte is written.
Status write_safetensors(const std::string& path, const std::vector<SafetensorsView>& tensors,
                         const std::map<std::string, std::string>& metadata = {});

// dtype names of the format. bits 0 / dtype 0: unknown.
const char* safetensors_dtype_name(uint32_t dtype);   // nullptr when the format has none
uint32_t safetensors_dtype(std::string_view name);
uint32_t safetensors_element_bytes(uint32_t dtype);
bool safetensors_dtype_known_but_unsupported(std::string_view name);  // F4, F6_*, F8_E8M0

// shape's element count times element_bytes; false when it does not fit 64 bits. A zero dim gives 0 if the others fit.
bool checked_size_bytes(const std::vector<uint64_t>& shape, uint64_t element_bytes, uint64_t* out);

}  // namespace tenon::io
