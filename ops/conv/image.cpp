#include "ops/conv/image.h"

#include <algorithm>

namespace tenon::ops {

tn_status read_sliding(tn_diag* d, const char* name, const tn_op* op, bool pooling, Sliding* out) {
  if (tn_status s = read_list(d, name, op, TN_KEY_STRIDES, "strides", 2, 1, 1, &out->strides); s != TN_OK) return s;
  if (tn_status s = read_list(d, name, op, TN_KEY_LO, "lo", 2, 0, 0, &out->lo); s != TN_OK) return s;
  if (tn_status s = read_list(d, name, op, TN_KEY_HI, "hi", 2, 0, 0, &out->hi); s != TN_OK) return s;
  if (tn_status s = read_list(d, name, op, TN_KEY_DILATIONS, "dilations", 2, 1, 1, &out->dilations); s != TN_OK) return s;
  if (pooling) return read_list(d, name, op, TN_KEY_KERNEL, "kernel", 2, 0, 1, &out->kernel);
  out->groups = attr_i64(*op, TN_KEY_GROUPS, 1);
  if (out->groups >= 1) return TN_OK;
  return fail(d, TN_E_ARG, error_id(kShape, 66), "%s: attribute groups is too small\nwhy: groups is %lld, the least is 1\ntry: raise it to 1", name,
              static_cast<long long>(out->groups));
}

Sliding sliding_of(const tn_op& op, bool pooling) {
  Sliding s;
  read_sliding(nullptr, "", &op, pooling, &s);
  return s;
}

std::vector<Attr> sliding_attrs(const Sliding& s, bool pooling, const Dims& dims) {
  std::vector<Attr> attrs{Attr::ints(TN_KEY_LO, s.lo), Attr::ints(TN_KEY_HI, s.hi), Attr::ints(TN_KEY_STRIDES, s.strides),
                          Attr::ints(TN_KEY_DILATIONS, s.dilations)};
  if (!dims.empty()) attrs.push_back(Attr::ints(TN_KEY_DIMS, dims));
  attrs.push_back(pooling ? Attr::ints(TN_KEY_KERNEL, s.kernel) : Attr::i64(TN_KEY_GROUPS, s.groups));
  return attrs;
}

tn_status window_places(tn_diag* d, const char* name, const Sliding& s, int64_t h, int64_t w, const Calc& calc, Dims* out) {
  const int64_t sizes[] = {h, w};
  out->clear();
  for (size_t i = 0; i < 2; ++i) {
    const int64_t padded = calc.add(calc.add(sizes[i], s.lo[i]), s.hi[i]);
    const int64_t reach = calc.add(calc.mul(calc.sub(s.kernel[i], 1), s.dilations[i]), 1);
    if (!calc.at_most(1, s.kernel[i]) || !calc.at_most(reach, padded))
      return fail(d, TN_E_SHAPE, error_id(kShape, 61), "%s: the window is larger than the padded input\nwhy: along %s the window reaches over %lld, the padded input has %lld\ntry: pad more, or use a smaller kernel or dilation",
                  name, i == 0 ? "H" : "W", static_cast<long long>(reach), static_cast<long long>(padded));
    out->push_back(calc.add(calc.floordiv(calc.sub(padded, reach), s.strides[i]), 1));
  }
  return TN_OK;
}

namespace {

// Strides of a dense tensor whose memory runs in `order`, outermost first. Size 0 counts as 1, as for all dense types.
void dense_strides(const Dims& dims, const int (&order)[4], const Calc& calc, int64_t (&out)[4]) {
  int64_t stride = 1;
  for (int k = 3; k >= 0; --k) {
    const auto axis = static_cast<size_t>(order[k]);
    out[axis] = stride;
    if (dims[axis] != 0) stride = calc.mul(stride, dims[axis]);
  }
}

constexpr int kRowMajor[4] = {0, 1, 2, 3}, kChannelsLast[4] = {0, 2, 3, 1};

bool has_order(const tn_type& t, const int (&order)[4], const Calc& calc) {
  int64_t expected[4];
  dense_strides(dims_of(t), order, calc, expected);
  for (int i = 0; i < 4; ++i) {
    if (t.dim[i] == 0) return true;  // no element: every order is right
    if (t.dim[i] != 1 && t.stride[i] != expected[i]) return false;
  }
  return true;
}

}  // namespace

// With one channel both orders hold; then the stride written for that axis, 1 or the size of a plane, says which one is meant.
bool channels_last(const tn_type& t, const Calc& calc) {
  if (t.rank != 4 || !has_order(t, kChannelsLast, calc)) return false;
  return !has_order(t, kRowMajor, calc) || (t.dim[1] == 1 && t.stride[1] == 1 && t.dim[2] != 1 && t.dim[3] != 1);
}

void set_image(tn_type* out, uint32_t dtype, const Dims& dims, const tn_type& model, const tn_dims* calc) {
  set_type(out, dtype, dims, calc);
  if (!channels_last(model, Calc{calc})) return;
  int64_t strides[4];
  dense_strides(dims, kChannelsLast, Calc{calc}, strides);
  std::copy(strides, strides + 4, out->stride);
}

Value as_image(Emit& e, Value v, const tn_type& model, const Calc& calc) {
  const tn_type have = e.type(v);
  if (!e.ok()) return v;
  const bool last = channels_last(model, calc);
  if (has_order(have, last ? kChannelsLast : kRowMajor, calc)) return v;
  if (!last) return e.op(TN_OPID_COPY, {v});
  return permute(e, e.op(TN_OPID_COPY, {permute(e, v, {0, 2, 3, 1})}), {0, 3, 1, 2});
}

Value pad_image(Emit& e, Value x, const Dims& lo, const Dims& hi, const Dims& interior, double value, const Calc& calc) {
  const auto zero = [](const Dims& v) { return std::all_of(v.begin(), v.end(), [](int64_t i) { return i == 0; }); };
  if (zero(lo) && zero(hi) && zero(interior)) return x;
  const tn_type type = e.type(x);
  const bool last = channels_last(type, calc);
  const auto around = [last](const Dims& v) { return last ? Dims{0, v[0], v[1], 0} : Dims{0, 0, v[0], v[1]}; };
  if (last) x = permute(e, x, {0, 2, 3, 1});
  x = e.op(TN_OPID_PAD, {x}, {Attr::ints(TN_KEY_LO, around(lo)), Attr::ints(TN_KEY_HI, around(hi)), Attr::ints(TN_KEY_INTERIOR, around(interior))},
           {literal(value, compute_type(type.dtype))});
  return last ? permute(e, x, {0, 3, 1, 2}) : x;
}

Value windows(Emit& e, Value x, const Sliding& s) {
  return e.op(TN_OPID_WINDOWS, {x}, {Attr::ints(TN_KEY_STRIDES, s.strides), Attr::ints(TN_KEY_DILATIONS, s.dilations), Attr::ints(TN_KEY_KERNEL, s.kernel)});
}

Value reduce_windows(Emit& e, uint64_t op_id, Value v, const tn_type& model, const Calc& calc) {
  if (!channels_last(model, calc)) return reduce_axes(e, op_id, v, {4, 5}, false);
  return permute(e, reduce_axes(e, op_id, permute(e, v, {0, 2, 3, 1, 4, 5}), {4, 5}, false), {0, 3, 1, 2});
}

std::vector<WindowCase> pooling_cases() {
  const Dims one{1, 1}, none{0, 0}, two{2, 2}, three{3, 3};
  return {{{1, 1, 2, 2}, {two, two, none, none, one}},         {{2, 3, 4, 4}, {two, two, none, none, one}},
          {{2, 3, 5, 7}, {two, two, none, none, one}},         {{2, 3, 5, 5}, {three, one, one, one, one}},
          {{2, 3, 5, 5}, {three, two, one, one, one}},         {{1, 2, 7, 6}, {three, one, none, none, two}},
          {{1, 2, 7, 6}, {{3, 2}, {2, 1}, {1, 0}, {0, 1}, one}}, {{0, 3, 4, 4}, {two, two, none, none, one}},
          {{2, 0, 4, 4}, {two, two, none, none, one}},         {{2, 3, 1, 1}, {one, one, none, none, one}},
          {{2, 3, 4, 4}, {{4, 4}, one, none, none, one}},      {{1, 1, 9, 9}, {two, three, none, none, one}},
          {{1, 2, 5, 5}, {{1, 3}, {1, 2}, {0, 1}, {0, 1}, one}}, {{1, 2, 5, 5}, {{3, 1}, {2, 1}, {1, 0}, {1, 0}, one}},
          {{3, 5, 6, 6}, {three, three, one, none, one}},      {{1, 17, 3, 3}, {two, one, none, none, one}},
          {{1, 1, 1, 70}, {{1, 5}, {1, 3}, {0, 2}, {0, 2}, one}}, {{1, 2, 6, 6}, {two, one, one, one, two}},
          {{2, 2, 8, 8}, {three, two, {0, 0}, one, one}},      {{1, 1, 3, 3}, {two, {5, 5}, none, none, one}}};
}

std::vector<CaseAttr> sliding_case_attrs(const Sliding& s, bool pooling) {
  std::vector<CaseAttr> attrs{case_ints(TN_KEY_LO, s.lo), case_ints(TN_KEY_HI, s.hi), case_ints(TN_KEY_STRIDES, s.strides),
                              case_ints(TN_KEY_DILATIONS, s.dilations)};
  attrs.push_back(pooling ? case_ints(TN_KEY_KERNEL, s.kernel) : case_i64(TN_KEY_GROUPS, s.groups));
  return attrs;
}

Dims window_places_of(const WindowCase& c) {
  Dims out;
  for (size_t i = 0; i < 2; ++i)
    out.push_back((c.x[i + 2] + c.s.lo[i] + c.s.hi[i] - (c.s.kernel[i] - 1) * c.s.dilations[i] - 1) / c.s.strides[i] + 1);
  return out;
}

}  // namespace tenon::ops
