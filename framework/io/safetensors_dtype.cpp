#include <tenon/io/safetensors.hpp>

#include <algorithm>
#include <array>

namespace tenon::io {
namespace {

struct Row { const char* name; uint32_t dtype, bytes; };
constexpr std::array<Row, 16> kRows{{{"BOOL", TN_BOOL, 1}, {"U8", TN_U8, 1}, {"I8", TN_I8, 1}, {"F8_E5M2", TN_F8E5M2, 1},
                                     {"F8_E4M3", TN_F8E4M3, 1}, {"I16", TN_I16, 2}, {"U16", TN_U16, 2}, {"F16", TN_F16, 2},
                                     {"BF16", TN_BF16, 2}, {"I32", TN_I32, 4}, {"U32", TN_U32, 4}, {"F32", TN_F32, 4},
                                     {"F64", TN_F64, 8}, {"I64", TN_I64, 8}, {"U64", TN_U64, 8}, {"C64", TN_C64, 8}}};

}  // namespace

const char* safetensors_dtype_name(uint32_t dtype) {
  for (const Row& row : kRows)
    if (row.dtype == dtype) return row.name;
  return nullptr;
}

uint32_t safetensors_dtype(std::string_view name) {
  for (const Row& row : kRows)
    if (name == row.name) return row.dtype;
  return 0;
}

uint32_t safetensors_element_bytes(uint32_t dtype) {
  for (const Row& row : kRows)
    if (row.dtype == dtype) return row.bytes;
  return 0;
}

bool safetensors_dtype_known_but_unsupported(std::string_view name) {
  return name == "F4" || name == "F6_E2M3" || name == "F6_E3M2" || name == "F8_E8M0";
}

bool checked_size_bytes(const std::vector<uint64_t>& shape, uint64_t element_bytes, uint64_t* out) {
  // A zero must not hide an overflow of the other dims: they are multiplied first, as if it were not there.
  const bool empty = std::find(shape.begin(), shape.end(), uint64_t{0}) != shape.end();
  uint64_t size = element_bytes;
  for (uint64_t dim : shape)
    if (dim != 0 && __builtin_mul_overflow(size, dim, &size)) return false;
  *out = empty ? 0 : size;
  return true;
}

}  // namespace tenon::io
