// Views: reshape, permute, expand, slice and what is made of them.
#include "framework/core/state.h"

#include <algorithm>

namespace tenon {
using namespace detail;
namespace {

Tensor view(const Tensor& x, uint32_t number, const Attrs& attrs, Where where) {
  require_defined(x, op_name(number), "x", where);
  const In in1 = in(x);
  Call c;
  c.number = number;
  c.attrs = &attrs;
  c.in = &in1;
  c.n_in = 1;
  c.device = x.impl()->device;
  c.where = where;
  c.view = true;
  TensorImpl* out = nullptr;
  run(thread(), c, &out);
  return adopt(out);
}

int64_t axis_of(const Tensor& x, int64_t axis, int64_t extra, const char* op, Where where) {
  const int64_t rank = static_cast<int64_t>(x.rank()) + extra, a = axis < 0 ? axis + rank : axis;
  if (a < 0 || a >= rank)
    raise(TN_E_SHAPE, error::id(error::kShape, 102), where, op, "no such axis",
          format("axis %lld of %s; allowed are %lld to %lld", static_cast<long long>(axis), x.type_text().c_str(),
                 static_cast<long long>(-rank), static_cast<long long>(rank - 1)),
          "use an axis in this range");
  return a;
}

}  // namespace

Tensor Tensor::reshape(const Shape& dims, Where where) const {
  return view(*this, TN_OPID_RESHAPE, Attrs().ints(TN_KEY_DIMS, dims), where);
}
Tensor Tensor::permute(std::span<const int64_t> perm, Where where) const {
  Shape p(perm);
  for (uint32_t i = 0; i < p.size(); ++i) p[i] = axis_of(*this, p[i], 0, "permute", where);
  return view(*this, TN_OPID_PERMUTE, Attrs().ints(TN_KEY_PERM, p), where);
}
Tensor Tensor::permute(std::initializer_list<int64_t> perm, Where where) const {
  return permute(std::span<const int64_t>(perm.begin(), perm.size()), where);
}
Tensor Tensor::transpose(int64_t a, int64_t b, Where where) const {
  Shape p;
  for (uint32_t i = 0; i < rank(); ++i) p.push_back(i);
  std::swap(p[static_cast<uint32_t>(axis_of(*this, a, 0, "transpose", where))], p[static_cast<uint32_t>(axis_of(*this, b, 0, "transpose", where))]);
  return view(*this, TN_OPID_PERMUTE, Attrs().ints(TN_KEY_PERM, p), where);
}
Tensor Tensor::t(Where where) const { return transpose(-2, -1, where); }

Tensor Tensor::flatten(int64_t first, int64_t last, Where where) const {
  if (rank() == 0) return reshape({1}, where);
  const int64_t a = axis_of(*this, first, 0, "flatten", where), b = axis_of(*this, last, 0, "flatten", where);
  Shape out;
  int64_t merged = 1;
  const auto d = dims();
  for (int64_t i = 0; i < static_cast<int64_t>(d.size()); ++i) {
    if (i >= a && i <= b) merged *= d[static_cast<size_t>(i)];
    if (i < a || i > b) out.push_back(d[static_cast<size_t>(i)]);
    else if (i == b) out.push_back(merged);
  }
  return reshape(out, where);
}

Tensor Tensor::expand(const Shape& dims, Where where) const {
  Shape target = dims;
  const auto d = this->dims();
  for (uint32_t i = 0; i < target.size(); ++i) {  // -1 keeps the size of the axis it meets, counted from the end
    if (target[i] != -1) continue;
    const int64_t own = static_cast<int64_t>(i) - static_cast<int64_t>(target.size()) + static_cast<int64_t>(d.size());
    target[i] = own >= 0 ? d[static_cast<size_t>(own)] : 1;
  }
  return view(*this, TN_OPID_EXPAND, Attrs().ints(TN_KEY_DIMS, target), where);
}

Tensor Tensor::squeeze(Where where) const {
  Shape out;
  for (int64_t d : dims()) if (d != 1) out.push_back(d);
  return reshape(out, where);
}
Tensor Tensor::squeeze(int64_t axis, Where where) const {
  const uint32_t a = static_cast<uint32_t>(axis_of(*this, axis, 0, "squeeze", where));
  Shape out = shape();
  if (out[a] != 1)
    raise(TN_E_SHAPE, error::id(error::kShape, 107), where, "squeeze", "only an axis of size 1 can go",
          format("axis %u of %s has %lld elements", a, type_text().c_str(), static_cast<long long>(out[a])), "use select or a reduction");
  out.erase(a);
  return reshape(out, where);
}
Tensor Tensor::unsqueeze(int64_t axis, Where where) const {
  Shape out = shape();
  out.insert(static_cast<uint32_t>(axis_of(*this, axis, 1, "unsqueeze", where)), 1);
  return reshape(out, where);
}

Tensor Tensor::flip(std::initializer_list<int64_t> axes, Where where) const {
  Shape a;
  for (int64_t x : axes) a.push_back(axis_of(*this, x, 0, "flip", where));
  return view(*this, TN_OPID_FLIP, Attrs().ints(TN_KEY_AXES, a), where);
}

Tensor Tensor::slice(std::span<const Slice> ranges, Where where) const {
  Shape starts, lengths = shape(), steps;
  if (ranges.size() > lengths.size())
    raise(TN_E_SHAPE, error::id(error::kShape, 108), where, "slice", "more ranges than axes",
          format("%zu ranges for %s", ranges.size(), type_text().c_str()), "give at most one range per axis");
  for (uint32_t i = 0; i < lengths.size(); ++i) {
    const ResolvedSlice r = i < ranges.size() ? resolve(ranges[i], lengths[i]) : ResolvedSlice{0, lengths[i], 1};
    starts.push_back(r.start);
    steps.push_back(r.step);
    lengths[i] = r.length;
  }
  return view(*this, TN_OPID_SLICE, Attrs().ints(TN_KEY_DIMS, lengths).ints(TN_KEY_STARTS, starts).ints(TN_KEY_STEPS, steps), where);
}
Tensor Tensor::slice(std::initializer_list<Slice> ranges, Where where) const {
  return slice(std::span<const Slice>(ranges.begin(), ranges.size()), where);
}

Tensor Tensor::narrow(int64_t axis, int64_t start, int64_t length, Where where) const {
  const uint32_t a = static_cast<uint32_t>(axis_of(*this, axis, 0, "narrow", where));
  const int64_t n = dims()[a];
  if (start < 0 || length < 0 || start > n - length)
    raise(TN_E_SHAPE, error::id(error::kShape, 109), where, "narrow", "the range leaves the axis",
          format("start %lld, length %lld on axis %u of %s", static_cast<long long>(start), static_cast<long long>(length), a, type_text().c_str()),
          "keep start + length within the axis");
  Slice ranges[Shape::kMaxRank];
  ranges[a] = {start, start + length, 1};
  return slice(std::span<const Slice>(ranges, a + 1), where);
}

Tensor Tensor::select(int64_t axis, int64_t index, Where where) const {
  const uint32_t a = static_cast<uint32_t>(axis_of(*this, axis, 0, "select", where));
  const int64_t n = dims()[a], i = index < 0 ? index + n : index;
  if (i < 0 || i >= n)
    raise(TN_E_SHAPE, error::id(error::kShape, 110), where, "select", "the index leaves the axis",
          format("index %lld on axis %u of %s", static_cast<long long>(index), a, type_text().c_str()), "use an index from -n to n - 1");
  Shape out = shape();
  out.erase(a);
  return narrow(axis, i, 1, where).reshape(out, where);
}

}  // namespace tenon
