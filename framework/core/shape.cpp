// Shapes, slices, element type names.
#include <tenon/core/dtype.hpp>
#include <tenon/core/shape.hpp>

#include "framework/core/state.h"

#include <algorithm>

namespace tenon {

const char* name(DType t) {
  static constexpr struct { int id; const char* name; } kNames[] = {
      {TN_BOOL, "bool"}, {TN_U8, "u8"}, {TN_I8, "i8"}, {TN_U16, "u16"}, {TN_I16, "i16"}, {TN_U32, "u32"}, {TN_I32, "i32"},
      {TN_U64, "u64"}, {TN_I64, "i64"}, {TN_F8E4M3, "f8e4m3"}, {TN_F8E5M2, "f8e5m2"}, {TN_F16, "f16"}, {TN_BF16, "bf16"},
      {TN_F32, "f32"}, {TN_F64, "f64"}};
  for (const auto& n : kNames) if (n.id == static_cast<int>(t)) return n.name;
  return "?";
}

Shape::Shape(std::span<const int64_t> dims) {
  if (dims.size() > kMaxRank)
    detail::raise(TN_E_SHAPE, error::id(error::kShape, 101), Where{"", 0}, "shape", "too many axes",
                  detail::format("%zu axes given, tensors have at most %u", dims.size(), kMaxRank), "merge axes with reshape");
  std::copy(dims.begin(), dims.end(), dim_);
  rank_ = static_cast<uint32_t>(dims.size());
}
void Shape::push_back(int64_t d) { insert(rank_, d); }
void Shape::erase(uint32_t axis) {
  std::copy(dim_ + axis + 1, dim_ + rank_, dim_ + axis);
  dim_[--rank_] = 0;
}
void Shape::insert(uint32_t axis, int64_t d) {
  if (rank_ == kMaxRank)
    detail::raise(TN_E_SHAPE, error::id(error::kShape, 101), Where{"", 0}, "shape", "too many axes",
                  detail::format("a ninth axis on top of %s", to_string(*this).c_str()), "merge axes with reshape");
  std::copy_backward(dim_ + axis, dim_ + rank_, dim_ + rank_ + 1);
  dim_[axis] = d;
  ++rank_;
}
int64_t Shape::numel() const {
  int64_t n = 1;
  for (uint32_t i = 0; i < rank_; ++i) n *= dim_[i];
  return n;
}
std::string to_string(const Shape& s) {
  std::string out = "[";
  for (uint32_t i = 0; i < s.size(); ++i) {
    if (i) out += ',';
    out += std::to_string(s[i]);
  }
  out += ']';
  return out;
}

ResolvedSlice resolve(const Slice& slice, int64_t dim) {
  const int64_t step = slice.step;
  if (step == 0)
    detail::raise(TN_E_ARG, error::id(error::kArg, 102), Where{"", 0}, "slice", "a step of 0",
                  "a slice goes forward (step > 0) or backward (step < 0)", "give a step other than 0");
  const bool forward = step > 0;
  const int64_t low = forward ? 0 : -1, high = forward ? dim : dim - 1;
  // Counted from the end once, then clamped; INT64_MIN + dim cannot overflow as dim >= 0.
  auto place = [&](int64_t v) { return std::clamp(v < 0 ? v + dim : v, low, std::max(low, high)); };
  const int64_t start = slice.start ? place(*slice.start) : (forward ? low : high);
  const int64_t stop = slice.stop ? place(*slice.stop) : (forward ? high : low);
  const int64_t distance = forward ? stop - start : start - stop;
  if (distance <= 0) return {0, 0, 1};
  const uint64_t stride = forward ? static_cast<uint64_t>(step) : 0 - static_cast<uint64_t>(step);  // |INT64_MIN| too
  const int64_t length = static_cast<int64_t>((static_cast<uint64_t>(distance) - 1) / stride) + 1;
  return {start, length, length == 1 ? (forward ? 1 : -1) : step};  // one element: any step, so one that strides cannot overflow
}

namespace detail {

tn_type dense_type(DType t, const Shape& dims) {
  tn_type type{};
  type.dtype = static_cast<uint8_t>(t);
  type.rank = static_cast<uint8_t>(dims.size());
  type.align_log2 = 6;  // what memory from the pool keeps
  int64_t stride = 1;
  for (uint32_t i = dims.size(); i-- > 0;) {
    type.dim[i] = dims[i];
    type.stride[i] = stride;
    stride *= std::max<int64_t>(dims[i], 1);
  }
  return type;
}

bool is_row_major(const tn_type& t) {
  int64_t stride = 1;
  for (uint32_t i = t.rank; i-- > 0;) {
    if (t.dim[i] == 0) return true;
    if (t.dim[i] != 1 && t.stride[i] != stride) return false;
    stride *= t.dim[i];
  }
  return true;
}

std::string text(const tn_type& t) {
  return std::string(name(static_cast<DType>(t.dtype))) + to_string(Shape(std::span<const int64_t>(t.dim, t.rank)));
}

std::string type_text(RuntimeState* rt, uint32_t type) {
  tn_type t{};
  return tn_type_get(rt->handle, type, &t, nullptr) == TN_OK ? text(t) : std::string("?");
}

}  // namespace detail
}  // namespace tenon
