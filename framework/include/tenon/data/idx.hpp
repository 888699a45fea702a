// tenon/data/idx.hpp - the IDX format of MNIST and its relatives, plain or gzip-packed, checked while it streams.
//
//   auto images = tenon::data::load_idx("train-images-idx3-ubyte.gz");
//   if (images) std::cout << images->header.dims[0] << " images, " << images->known_as;   // "MNIST train images"
//
// File: 0 0 TYPE RANK, then RANK big-endian u32 counts, then the elements, big-endian. gzip is told by its first two bytes,
// not by the name. Counts are believed only as far as the file can back them: memory is taken as data arrives.
// Errors: TN-FILE-001..005 of opening, and
//   TN-DATA-001 not IDX            002 unknown element type     003 rank 0 or over the limit   004 header cut short
//   TN-DATA-005 counts over limit  006 fewer bytes than counts  007 bytes left over            008 gzip damaged
//   TN-DATA-009 not the element type or rank wanted here
#pragma once
#include <tenon/io/file.hpp>
#include <tenon/io/sha256.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::data {

using io::Result;
using io::Status;

struct IdxHeader {
  uint32_t dtype = 0;            // TN_U8, TN_I8, TN_I16, TN_I32, TN_F32 or TN_F64
  std::vector<uint32_t> dims;    // outermost first
  uint64_t element_bytes = 0, header_bytes = 0, data_bytes = 0;
};

struct IdxLimits {
  uint64_t data_bytes = uint64_t{8} << 30;  // larger counts are refused: TN-DATA-005
  uint32_t rank = 8;
};

// The header at the start of `bytes` (which may hold more, or be cut short). Pure; any bytes may be given.
Result<IdxHeader> parse_idx_header(std::string_view bytes, const std::string& where, const IdxLimits& limits = {});

// Reads a file from front to back in pieces of any size, for data larger than memory. One thread at a time. Blocks.
class IdxReader {
 public:
  static Result<IdxReader> open(const std::string& path, const IdxLimits& limits = {});
  IdxReader(IdxReader&&) noexcept;
  ~IdxReader();
  const IdxHeader& header() const;
  uint64_t remaining_bytes() const;
  // Fills all of `out` with the next element bytes as they stand in the file (big-endian).
  // More than remaining_bytes(): TN-DATA-006.
  Status read(void* out, size_t count_bytes);
  // After the last element: checks that nothing follows and the gzip sum holds; gives the SHA-256 of the unpacked file.
  Result<std::string> finish();

 private:
  struct Impl;
  explicit IdxReader(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

struct IdxArray {
  IdxHeader header;
  std::vector<uint8_t> bytes;  // row-major, host byte order
  std::string sha256;          // of the unpacked file, header included
  std::string known_as;        // "Fashion-MNIST test labels"; empty: unknown content, which is no error
};
Result<IdxArray> load_idx(const std::string& path, const IdxLimits& limits = {});

// The published file with this content, or "". Sums of the canonical MNIST and Fashion-MNIST files, unpacked.
std::string known_idx_file(const std::string& sha256);

}  // namespace tenon::data
