// backends/onednn/conv2d.h - conv2d and its two gradients on oneDNN: f32 and bf16, groups, dilation, uneven padding.
//
// Layouts: channels-last activations go to oneDNN as they are. Row-major ones are reordered inside the plan, to oneDNN's
// blocked layout (forward, input gradient) or to channels-last (weight gradient), whichever was measured faster; both
// beat oneDNN's own plain NCHW code by 2 to 5 times. Weights are reordered on every launch, since they may have changed.
// Winograd is not used: a single Inf would spread to its whole tile.
#pragma once
#include <memory>

#include "backends/onednn/instance.h"

namespace tenon::onednn {

tn_status conv2d_supports(tn_instance*, const tn_device_ref*, const tn_op*, tn_support*, tn_diag*);
std::shared_ptr<Recipe> conv2d_build(tn_instance&, const tn_op&);
tn_status conv2d_input_grad_supports(tn_instance*, const tn_device_ref*, const tn_op*, tn_support*, tn_diag*);
std::shared_ptr<Recipe> conv2d_input_grad_build(tn_instance&, const tn_op&);
tn_status conv2d_weight_grad_supports(tn_instance*, const tn_device_ref*, const tn_op*, tn_support*, tn_diag*);
std::shared_ptr<Recipe> conv2d_weight_grad_build(tn_instance&, const tn_op&);

}  // namespace tenon::onednn
