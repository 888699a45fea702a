// ops/conv/conv_shapes.h - the shape rule that conv2d and its two gradients share, and their cases.
#pragma once
#include "ops/conv/image.h"

namespace tenon::ops {

// Checks x, w dims and groups, sets s->kernel and gives [N, O, OH, OW]. TN-SHAPE-060, -061.
tn_status conv_output(tn_diag*, const char* op_name, const tn_type& x, const tn_type& w, Sliding* s, const Calc&, Dims* out);

// Padded x as windows [N, G, C/G, OH, OW, KH, KW].
Value grouped_windows(Emit&, Value x, const Sliding&, const Calc&);

struct ConvCase {
  WindowCase window;  // kernel: KH, KW; groups
  int64_t outputs;    // O
  Dims w() const { return {outputs, window.x[1] / window.s.groups, window.s.kernel[0], window.s.kernel[1]}; }
  Dims y() const;
};
std::vector<ConvCase> conv_cases();

double conv_flops(const tn_type& y, const tn_type& w);

}  // namespace tenon::ops
