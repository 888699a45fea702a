// backends/onednn/operand.h - reading a tn_op: attributes, strides, memory descriptors, and saying no with a reason.
//
// Nothing here allocates but to_desc(), so supports() may use the rest.
#pragma once
#include <tenon/ops.h>
#include <tenon/plugin.h>

#include <array>
#include <cstdint>

#include "backends/onednn/compat.h"

namespace tenon::onednn {

using Pair = std::array<int64_t, 2>;  // [H, W]

// Error ids of this plugin: TN-OP-040 (the kernel does not take this call), TN-OP-041 (oneDNN itself failed).
inline constexpr uint32_t kRefused = 6u << 16 | 40, kLibraryFailed = 6u << 16 | 41;

// Fills *diag (may be null) as "<what>\nwhy: ...\ntry: ..." and returns `status`.
tn_status fail(tn_diag* diag, tn_status status, uint32_t id, const char* format, ...) __attribute__((format(printf, 4, 5)));
// TN_E_UNSUPPORTED: "oneDNN <kernel> does not take this call / why: <format> / try: <fix>".
tn_status refuse(tn_diag* diag, const char* why, int64_t value = 0);

const tn_attr* find_attr(const tn_op& op, uint32_t key);
int64_t attr_i64(const tn_op& op, uint32_t key, int64_t fallback);
double attr_f64(const tn_op& op, uint32_t key, double fallback);
Pair attr_pair(const tn_op& op, uint32_t key, Pair fallback);
const tn_program* attr_program(const tn_op& op, uint32_t key);

inline const tn_type& output(const tn_op& op, uint32_t i = 0) { return op.type[op.n_in + i]; }
inline bool absent(const tn_type& t) { return t.dtype == 0; }
uint64_t element_bytes(uint32_t dtype);
int64_t element_count(const tn_type& t);
const char* dtype_name(uint32_t dtype);
dnnl::memory::data_type to_dnnl(uint32_t dtype);

// oneDNN 2.6's tile kernels for narrow types execute an illegal instruction for some k that fill their last 64 bytes only when
// rounded up to a whole group of 2 (bf16) or 4 (8 bit): seen at 70 x 63 x 41 bf16 and 34 x 127 x 91 u8. All such k are refused.
tn_status check_depth(uint32_t dtype, int64_t k, tn_diag* diag);
// No empty operand, every layout strided, no accumulator other than the default.
tn_status check_common(const tn_op& op, tn_diag* diag);
// Every stride positive where the dim is 2 or more, and no two indices share an address.
bool is_dense_or_gapped(const tn_type& t);
// Elements fill their memory without gap in some axis order.
bool is_dense(const tn_type& t);
bool is_row_major(const tn_type& t);
// 4-D with C fastest and H, W, N behind it in this order; true for C = 1 and for H = W = 1 as well when dense.
bool is_channels_last(const tn_type& t);

// Plain descriptor with the type's own strides; strides of dims of size 1 are made regular, because oneDNN compares
// layouts by stride.
Desc to_desc(const tn_type& t);

}  // namespace tenon::onednn
