// ops/diag.cpp - diagnoses and the names that appear in them.
#include "ops/diag.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "ops/emit.h"

namespace tenon::ops {

tn_status fail_v(tn_diag* diag, tn_status status, uint32_t id, const char* format, va_list args) {
  if (!diag) return status;
  diag->size = sizeof *diag;
  diag->status = status;
  diag->native_code = 0;
  diag->native_domain = 0;
  diag->flags = 0;
  diag->id = id;
  const int n = std::vsnprintf(diag->msg, sizeof diag->msg, format, args);
  diag->len = static_cast<uint32_t>(std::clamp<int>(n, 0, sizeof diag->msg - 1));
  return status;
}

tn_status fail(tn_diag* diag, tn_status status, uint32_t id, const char* format, ...) {
  va_list args;
  va_start(args, format);
  fail_v(diag, status, id, format, args);
  va_end(args);
  return status;
}

const char* dtype_name(uint32_t dtype) {
  switch (dtype) {
    case TN_BOOL: return "bool";
    case TN_U4: return "u4";
    case TN_I4: return "i4";
    case TN_U8: return "u8";
    case TN_I8: return "i8";
    case TN_U16: return "u16";
    case TN_I16: return "i16";
    case TN_U32: return "u32";
    case TN_I32: return "i32";
    case TN_U64: return "u64";
    case TN_I64: return "i64";
    case TN_F8E4M3: return "f8e4m3";
    case TN_F8E5M2: return "f8e5m2";
    case TN_F16: return "f16";
    case TN_BF16: return "bf16";
    case TN_F32: return "f32";
    case TN_F64: return "f64";
    case TN_C64: return "c64";
    case TN_C128: return "c128";
    case 0: return "none";
    default: return "unknown";
  }
}

uint32_t dtype_bits(uint32_t dtype) {
  switch (dtype) {
#define BITS_(name, id, bits) \
  case id: return bits;
    TN_DTYPES(BITS_)
#undef BITS_
    default: return 0;
  }
}

std::string dim_text(int64_t dim) {
  return TN_IS_SYM(dim) ? "s" + std::to_string(dim - INT64_MIN) : std::to_string(dim);
}

std::string type_text(const tn_type& t) {
  std::string s = dtype_name(t.dtype);
  s += '[';
  for (uint32_t i = 0; i < t.rank; ++i) s += (i ? "," : "") + dim_text(t.dim[i]);
  return s + ']';
}

}  // namespace tenon::ops
