#include <tenon/data/idx.hpp>
#include <tenon/types.h>

#include <cstdio>

namespace tenon::data {
namespace {

struct ElementType { uint8_t code; uint32_t dtype; uint64_t bytes; };
constexpr ElementType kTypes[] = {{0x08, TN_U8, 1}, {0x09, TN_I8, 1}, {0x0B, TN_I16, 2}, {0x0C, TN_I32, 4}, {0x0D, TN_F32, 4}, {0x0E, TN_F64, 8}};

Status bad(uint32_t number, const std::string& where, const char* what, std::string why, const char* fix) {
  return {io::data_error(number), where + ": " + what, std::move(why), fix, where};
}

std::string hex(std::string_view bytes) {
  std::string out;
  for (unsigned char c : bytes) {
    char text[4];
    std::snprintf(text, sizeof text, "%s%02x", out.empty() ? "" : " ", c);
    out += text;
  }
  return out;
}

uint32_t big_endian(std::string_view b) {
  uint32_t v = 0;
  for (int i = 0; i < 4; ++i) v = v << 8 | static_cast<unsigned char>(b[static_cast<size_t>(i)]);
  return v;
}

const ElementType* find_type(uint8_t code) {
  for (const ElementType& type : kTypes)
    if (type.code == code) return &type;
  return nullptr;
}

std::string counts_text(const IdxHeader& header) {
  std::string text;
  for (uint32_t d : header.dims) text += (text.empty() ? "" : " x ") + std::to_string(d);
  return text;
}

Status set_size(IdxHeader& header, const IdxLimits& limits, const std::string& where) {
  // A zero count must not hide an absurd other one, so sizes are multiplied as if zeros were ones.
  uint64_t size = header.element_bytes;
  bool fits = true, empty = false;
  for (uint32_t d : header.dims) {
    empty = empty || d == 0;
    fits = fits && !__builtin_mul_overflow(size, d == 0 ? uint64_t{1} : d, &size);
  }
  if (!fits || size > limits.data_bytes)
    return bad(5, where, "counts too large",
               "the header says " + counts_text(header) + " elements of " + std::to_string(header.element_bytes) + " bytes; at most " +
                   std::to_string(limits.data_bytes) + " bytes are allowed",
               "check the file; raise the limit if it is right");
  header.data_bytes = empty ? 0 : size;
  return {};
}

}  // namespace

Result<IdxHeader> parse_idx_header(std::string_view bytes, const std::string& where, const IdxLimits& limits) {
  if (bytes.size() < 4)
    return bad(4, where, bytes.empty() ? "the file is empty" : "header cut short", "an IDX file starts with 4 bytes and its counts; here are " + std::to_string(bytes.size()) + " bytes",
               "copy or download it again");
  if (bytes[0] != 0 || bytes[1] != 0)
    return bad(1, where, "not an IDX file", "it starts with the bytes " + hex(bytes.substr(0, 4)) + "; an IDX file with 00 00", "name an IDX file, such as train-images-idx3-ubyte");
  const ElementType* type = find_type(static_cast<uint8_t>(bytes[2]));
  if (type == nullptr)
    return bad(2, where, "unknown element type", "type byte " + hex(bytes.substr(2, 1)) + "; known are 08 09 0b 0c 0d 0e", "check that the file is not damaged");
  const uint32_t rank = static_cast<unsigned char>(bytes[3]);
  if (rank == 0 || rank > limits.rank)
    return bad(3, where, "number of dimensions not allowed", "it says " + std::to_string(rank) + "; 1 to " + std::to_string(limits.rank) + " are allowed", "check that the file is not damaged");
  IdxHeader header;
  header.dtype = type->dtype;
  header.element_bytes = type->bytes;
  header.header_bytes = 4 + 4 * uint64_t{rank};
  if (bytes.size() < header.header_bytes)
    return bad(4, where, "header cut short", std::to_string(rank) + " counts need " + std::to_string(header.header_bytes) + " bytes; here are " + std::to_string(bytes.size()),
               "copy or download it again");
  for (uint32_t i = 0; i < rank; ++i) header.dims.push_back(big_endian(bytes.substr(4 + 4 * i, 4)));
  Status status = set_size(header, limits, where);
  if (!status.ok()) return status;
  return header;
}

}  // namespace tenon::data
