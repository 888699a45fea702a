// backends/onednn/matmul_packed.h - matmul whose second operand was stored once in oneDNN's blocked layout: f32, bf16, u8 x i8.
//
// The layouts do not depend on the number of rows: blocks of 64 columns, in each k in groups of 16 (BA16a64b and, for narrow
// types, its forms with 2 or 4 values of k beside each other). It is what oneDNN's brgemm product asks for itself.
#pragma once
#include <memory>

#include "backends/onednn/instance.h"

namespace tenon::onednn {

extern const tn_kernel_packed kPackedF32, kPackedBf16, kPackedI8;

tn_status matmul_packed_supports(tn_instance*, const tn_device_ref*, const tn_op*, tn_support*, tn_diag*);
std::shared_ptr<Recipe> matmul_packed_build(tn_instance&, const tn_op&);

}  // namespace tenon::onednn
