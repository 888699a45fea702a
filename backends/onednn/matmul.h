// backends/onednn/matmul.h - matmul and linear on oneDNN: f32, bf16, u8 or i8 by i8, with bias and max(x, c) epilogues.
#pragma once
#include <memory>

#include "backends/onednn/instance.h"

namespace tenon::onednn {

tn_status matmul_supports(tn_instance*, const tn_device_ref*, const tn_op*, tn_support*, tn_diag*);
std::shared_ptr<Recipe> matmul_build(tn_instance&, const tn_op&);
tn_status linear_supports(tn_instance*, const tn_device_ref*, const tn_op*, tn_support*, tn_diag*);
std::shared_ptr<Recipe> linear_build(tn_instance&, const tn_op&);

}  // namespace tenon::onednn
