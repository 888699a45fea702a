// ops/conv/image.h - what convolution and pooling share: sliding windows over [N, C, H, W] and the two memory orders.
//
// Dims are always named N, C, H, W. "Channels-last" means that memory runs N, H, W, C; results then do so too.
#pragma once
#include "ops/movement/rule_tools.h"

namespace tenon::ops {

// How a window moves. Each list is [H, W].
struct Sliding {
  Dims kernel, strides, lo, hi, dilations;
  int64_t groups = 1;
};

// Attribute tables of the family, without `kernel`, `dims`, `groups`.
#define TENON_SLIDING_ATTRS                                                                                           \
  def_optional(TN_KEY_LO, TN_ATTR_I64S, "lo"), def_optional(TN_KEY_HI, TN_ATTR_I64S, "hi"),                           \
      def_optional(TN_KEY_STRIDES, TN_ATTR_I64S, "strides"), def_optional(TN_KEY_DILATIONS, TN_ATTR_I64S, "dilations")

// Reads and checks strides, lo, hi, dilations, groups, and kernel where `pooling` (for convolutions it comes from w's dims).
tn_status read_sliding(tn_diag*, const char* op_name, const tn_op*, bool pooling, Sliding* out);
// The same for an op whose attributes infer has accepted.
Sliding sliding_of(const tn_op&, bool pooling);
// The attributes again, for a node of the same window; with `dims` where not empty.
std::vector<Attr> sliding_attrs(const Sliding&, bool pooling, const Dims& dims = {});

// Places of the window along H and W. TN-SHAPE-061 where it is larger than the padded input.
tn_status window_places(tn_diag*, const char* op_name, const Sliding&, int64_t h, int64_t w, const Calc&, Dims* out);

bool channels_last(const tn_type&, const Calc&);
// Row-major, or channels-last where `model` is.
void set_image(tn_type* out, uint32_t dtype, const Dims& dims, const tn_type& model, const tn_dims* calc);
// v with the memory order of `model` (an image of the same dims), copied where it differs.
Value as_image(Emit&, Value v, const tn_type& model, const Calc&);
// Pads H and W with `value`, keeping the memory order. Negative amounts crop.
Value pad_image(Emit&, Value x, const Dims& lo, const Dims& hi, const Dims& interior, double value, const Calc&);
// [..., H, W] -> [..., OH, OW, KH, KW], a view.
Value windows(Emit&, Value x, const Sliding&);
// Reduces KH, KW of windows [N, C, OH, OW, KH, KW]; the result has the memory order of `model`.
Value reduce_windows(Emit&, uint64_t op_id, Value windows, const tn_type& model, const Calc&);

inline double lowest_value(uint32_t dtype) {  // what max pooling pads with; saturates to the integer's least
  return is_float(dtype) ? -__builtin_inf() : -9223372036854775808.0;
}

// Cases: dims of x with a window.
struct WindowCase {
  Dims x;
  Sliding s;
};
std::vector<WindowCase> pooling_cases();
std::vector<CaseAttr> sliding_case_attrs(const Sliding&, bool pooling);
Dims window_places_of(const WindowCase&);  // [OH, OW]

}  // namespace tenon::ops
