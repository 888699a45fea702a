#include "tools/conformance/array.h"

#include <algorithm>

#include "ops/emit.h"

namespace tenon::conformance {
namespace {

// The promise about the address of the first element; memory itself starts on 64 bytes.
uint8_t alignment(int64_t offset_bytes) { return offset_bytes == 0 ? 6 : static_cast<uint8_t>(std::min(6, __builtin_ctzll(static_cast<uint64_t>(offset_bytes)))); }

}  // namespace

Array array(uint32_t dtype, std::vector<int64_t> dims, std::vector<Number> v) { return {dtype, std::move(dims), std::move(v)}; }

size_t count(const std::vector<int64_t>& dims) {
  size_t n = 1;
  for (int64_t d : dims) n *= static_cast<size_t>(d);
  return n;
}

std::string type_text(const Array& a) {
  if (a.absent()) return "-";
  std::string text = std::string(ops::dtype_name(a.dtype)) + "[";
  for (size_t i = 0; i < a.dims.size(); ++i) text += (i != 0 ? "," : "") + std::to_string(a.dims[i]);
  static const char* const kLayouts[] = {"", " permuted", " gapped", " broadcast"};
  return text + "]" + kLayouts[static_cast<int>(a.layout)] + (a.reversed ? " reversed" : "");
}

Placement place(const Array& a) {
  Placement p;
  tn_type& t = p.type;
  if (a.absent()) return p;
  t.dtype = static_cast<uint8_t>(a.dtype);
  t.rank = static_cast<uint8_t>(a.dims.size());
  int64_t step = a.layout == ops::Layout::Gapped ? 2 : 1;
  for (size_t i = 0; i < a.dims.size(); ++i) t.dim[i] = a.dims[i];
  for (size_t i = 0; i < a.dims.size(); ++i) {
    const size_t axis = a.layout == ops::Layout::Permuted ? i : a.dims.size() - 1 - i;
    t.stride[axis] = a.layout == ops::Layout::Broadcast && axis == 0 ? 0 : step;
    if (a.layout != ops::Layout::Broadcast || axis != 0) step *= std::max<int64_t>(a.dims[axis], 1);
  }
  int64_t reach = 0;
  const bool empty = std::find(a.dims.begin(), a.dims.end(), 0) != a.dims.end();
  for (int i = 0; i < t.rank && !empty; ++i) reach += (t.dim[i] - 1) * t.stride[i];
  p.first = a.skip;
  if (a.reversed) {
    p.first += reach;
    for (int i = 0; i < t.rank; ++i) t.stride[i] = -t.stride[i];
  }
  p.elements = a.skip + reach + (empty ? 0 : 1) + 3;
  t.align_log2 = alignment(p.first * static_cast<int64_t>(byte_size(a.dtype)));
  return p;
}

int64_t offset_of(const tn_type& t, size_t element) {
  int64_t offset = 0;
  for (int axis = t.rank - 1; axis >= 0; --axis) {
    offset += static_cast<int64_t>(element % static_cast<size_t>(t.dim[axis])) * t.stride[axis];
    element /= static_cast<size_t>(t.dim[axis]);
  }
  return offset * static_cast<int64_t>(byte_size(t.dtype));
}

std::vector<unsigned char> laid_out(const Array& a, const Placement& p) {
  const size_t width = byte_size(a.dtype);
  std::vector<unsigned char> bytes(static_cast<size_t>(p.elements) * width, a.dtype == TN_BOOL ? 1 : kPoison);
  const int64_t first = p.first * static_cast<int64_t>(width);
  for (size_t i = 0; i < a.v.size(); ++i) encode(a.dtype, a.v[i], &bytes[static_cast<size_t>(first + offset_of(p.type, i))]);
  return bytes;
}

}  // namespace tenon::conformance
