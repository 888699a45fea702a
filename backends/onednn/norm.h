// backends/onednn/norm.h - layer_norm, batch_norm, batch_norm_grad and batch_norm_infer on oneDNN, f32.
//
// layer_norm takes row-major x and cuts the rows over the pool. batch_norm takes row-major and channels-last x; oneDNN's
// channels-last code is about four times faster. Training statistics span the batch, so batch_norm and its gradient run
// on one thread; batch_norm_infer is cut over the batch.
// There is no softmax here: oneDNN 2.6 gives a row with a NaN or +Inf zeros beside it, where Tenon's rule is a row of NaN.
#pragma once
#include <memory>

#include "backends/onednn/instance.h"

namespace tenon::onednn {

tn_status layer_norm_supports(tn_instance*, const tn_device_ref*, const tn_op*, tn_support*, tn_diag*);
std::shared_ptr<Recipe> layer_norm_build(tn_instance&, const tn_op&);
tn_status batch_norm_supports(tn_instance*, const tn_device_ref*, const tn_op*, tn_support*, tn_diag*);
std::shared_ptr<Recipe> batch_norm_build(tn_instance&, const tn_op&);
tn_status batch_norm_grad_supports(tn_instance*, const tn_device_ref*, const tn_op*, tn_support*, tn_diag*);
std::shared_ptr<Recipe> batch_norm_grad_build(tn_instance&, const tn_op&);
tn_status batch_norm_infer_supports(tn_instance*, const tn_device_ref*, const tn_op*, tn_support*, tn_diag*);
std::shared_ptr<Recipe> batch_norm_infer_build(tn_instance&, const tn_op&);

}  // namespace tenon::onednn
