// backends/onednn/pool2d.h - avg_pool2d and its gradient on oneDNN, f32 and bf16, row-major and channels-last.
//
// There is no max_pool2d here: oneDNN 2.6 drops a NaN that Tenon's rule lets win.
#pragma once
#include <memory>

#include "backends/onednn/instance.h"

namespace tenon::onednn {

tn_status avg_pool2d_supports(tn_instance*, const tn_device_ref*, const tn_op*, tn_support*, tn_diag*);
std::shared_ptr<Recipe> avg_pool2d_build(tn_instance&, const tn_op&);
tn_status avg_pool2d_grad_supports(tn_instance*, const tn_device_ref*, const tn_op*, tn_support*, tn_diag*);
std::shared_ptr<Recipe> avg_pool2d_grad_build(tn_instance&, const tn_op&);

}  // namespace tenon::onednn
