#include "backends/onednn/operand.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>

namespace tenon::onednn {
namespace {

// Axes of size 2 or more, smallest stride first. Returns how many.
uint32_t order_by_stride(const tn_type& t, std::array<uint32_t, TN_MAX_RANK>& axes) {
  uint32_t count = 0;
  for (uint32_t axis = t.rank; axis-- > 0;) {
    if (t.dim[axis] > 1) axes[count++] = axis;
  }
  std::stable_sort(axes.begin(), axes.begin() + count,
                   [&](uint32_t a, uint32_t b) { return t.stride[a] < t.stride[b]; });
  return count;
}

}  // namespace

tn_status fail(tn_diag* diag, tn_status status, uint32_t id, const char* format, ...) {
  if (diag == nullptr) return status;
  std::memset(diag, 0, sizeof *diag);
  diag->size = sizeof *diag;
  diag->status = status;
  diag->id = id;
  va_list args;
  va_start(args, format);
  const int written = std::vsnprintf(diag->msg, sizeof diag->msg, format, args);
  va_end(args);
  diag->len = written < 0 ? 0 : std::min<uint32_t>(static_cast<uint32_t>(written), sizeof diag->msg - 1);
  return status;
}

tn_status refuse(tn_diag* diag, const char* why, int64_t value) {
  char text[160];
  std::snprintf(text, sizeof text, why, static_cast<long long>(value));
  return fail(diag, TN_E_UNSUPPORTED, kRefused, "this oneDNN kernel does not take this call\nwhy: %s\ntry: %s", text,
              "let another kernel run it");
}

const tn_attr* find_attr(const tn_op& op, uint32_t key) {
  for (uint32_t i = 0; i < op.n_attr; ++i) {
    if (op.attr[i].key == key) return &op.attr[i];
  }
  return nullptr;
}

int64_t attr_i64(const tn_op& op, uint32_t key, int64_t fallback) {
  const tn_attr* a = find_attr(op, key);
  return a != nullptr ? a->v.i : fallback;
}

double attr_f64(const tn_op& op, uint32_t key, double fallback) {
  const tn_attr* a = find_attr(op, key);
  return a != nullptr ? a->v.f : fallback;
}

Pair attr_pair(const tn_op& op, uint32_t key, Pair fallback) {
  const tn_attr* a = find_attr(op, key);
  if (a == nullptr || a->len < 2) return fallback;
  const auto* values = static_cast<const int64_t*>(a->v.p);
  return {values[0], values[1]};
}

const tn_program* attr_program(const tn_op& op, uint32_t key) {
  const tn_attr* a = find_attr(op, key);
  return a != nullptr ? static_cast<const tn_program*>(a->v.p) : nullptr;
}

uint64_t element_bytes(uint32_t dtype) {
  switch (dtype) {
#define TENON_BYTES(name, id, bits) case name: return (bits + 7) / 8;
    TN_DTYPES(TENON_BYTES)
#undef TENON_BYTES
    default: return 0;
  }
}

int64_t element_count(const tn_type& t) {
  int64_t n = 1;
  for (uint32_t i = 0; i < t.rank; ++i) n *= t.dim[i];
  return n;
}

const char* dtype_name(uint32_t dtype) {
  switch (dtype) {
    case TN_F32: return "f32";
    case TN_F64: return "f64";
    case TN_F16: return "f16";
    case TN_BF16: return "bf16";
    case TN_U8: return "u8";
    case TN_I8: return "i8";
    case TN_I32: return "i32";
    case TN_I64: return "i64";
    default: return "another type";
  }
}

dnnl::memory::data_type to_dnnl(uint32_t dtype) {
  using Type = dnnl::memory::data_type;
  switch (dtype) {
    case TN_F32: return Type::f32;
    case TN_BF16: return Type::bf16;
    case TN_I32: return Type::s32;
    case TN_I8: return Type::s8;
    case TN_U8: return Type::u8;
    default: return Type::undef;
  }
}

tn_status check_depth(uint32_t dtype, int64_t k, tn_diag* diag) {
  if (dtype == TN_F32 || dnnl::get_effective_cpu_isa() != dnnl::cpu_isa::avx512_core_amx) return TN_OK;
  const int64_t block = dtype == TN_BF16 ? 32 : 64, group = dtype == TN_BF16 ? 2 : 4;
  return k % block > block - group ? refuse(diag, "oneDNN's tile product is broken for some shapes of this depth, %lld", k) : TN_OK;
}

tn_status check_common(const tn_op& op, tn_diag* diag) {
  for (uint32_t i = 0; i < static_cast<uint32_t>(op.n_in + op.n_out); ++i) {
    const tn_type& t = op.type[i];
    if (absent(t)) continue;
    if (t.layout != TN_LAYOUT_STRIDED) return refuse(diag, "operand %lld has an opaque layout", i);
    for (uint32_t d = 0; d < t.rank; ++d) {
      if (TN_IS_SYM(t.dim[d])) return refuse(diag, "operand %lld has a symbolic dim", i);
      if (t.dim[d] == 0) return refuse(diag, "operand %lld is empty, and oneDNN would leave the output unwritten", i);
    }
  }
  const uint32_t accumulator = op.math_flags >> 8 & 0xFF;
  if (accumulator != 0 && accumulator != TN_F32 && accumulator != TN_I32) {
    return refuse(diag, "an accumulator of dtype %lld is demanded; oneDNN has f32 and i32", accumulator);
  }
  return TN_OK;
}

bool is_dense_or_gapped(const tn_type& t) {
  std::array<uint32_t, TN_MAX_RANK> axes{};
  const uint32_t count = order_by_stride(t, axes);
  int64_t reach = 1;
  for (uint32_t i = 0; i < count; ++i) {
    if (t.stride[axes[i]] < reach) return false;
    reach = t.stride[axes[i]] * t.dim[axes[i]];
  }
  return true;
}

bool is_dense(const tn_type& t) {
  std::array<uint32_t, TN_MAX_RANK> axes{};
  const uint32_t count = order_by_stride(t, axes);
  int64_t expected = 1;
  for (uint32_t i = 0; i < count; ++i) {
    if (t.stride[axes[i]] != expected) return false;
    expected *= t.dim[axes[i]];
  }
  return true;
}

bool is_row_major(const tn_type& t) {
  int64_t expected = 1;
  for (uint32_t axis = t.rank; axis-- > 0;) {
    if (t.dim[axis] > 1 && t.stride[axis] != expected) return false;
    expected *= t.dim[axis];
  }
  return true;
}

bool is_channels_last(const tn_type& t) {
  if (t.rank != 4) return false;
  int64_t expected = 1;
  for (uint32_t axis : {1u, 3u, 2u, 0u}) {
    if (t.dim[axis] > 1 && t.stride[axis] != expected) return false;
    expected *= t.dim[axis];
  }
  return true;
}

Desc to_desc(const tn_type& t) {
  Dims dims(t.dim, t.dim + t.rank), strides(t.stride, t.stride + t.rank);
  std::array<uint32_t, TN_MAX_RANK> axes{};
  const uint32_t count = order_by_stride(t, axes);
  const int64_t reach = count == 0 ? 1 : t.stride[axes[count - 1]] * t.dim[axes[count - 1]];
  for (uint32_t axis = 0; axis < t.rank; ++axis) {
    if (t.dim[axis] == 1) strides[axis] = reach;
  }
  return Desc(dims, to_dnnl(t.dtype), strides);
}

}  // namespace tenon::onednn
