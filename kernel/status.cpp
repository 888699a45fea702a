#include "kernel/status.h"

#include <cstdio>
#include <cstring>

#include <tenon/runtime.h>

namespace tenon::kernel {
namespace {

void append_text(tn_diag* diag, const char* format, va_list args) {
  const uint32_t room = sizeof diag->msg - diag->len;
  if (room <= 1) return;
  const int written = std::vsnprintf(diag->msg + diag->len, room, format, args);
  if (written > 0) diag->len += static_cast<uint32_t>(written) < room ? static_cast<uint32_t>(written) : room - 1;
}

struct DtypeRow {
  uint32_t id;
  const char* name;
  uint32_t bits;
};

#define TN_ROW_(name, id, bits) {id, #name, bits},
constexpr DtypeRow kRows[] = {TN_DTYPES(TN_ROW_)};
#undef TN_ROW_

}  // namespace

tn_status fail(tn_diag* diag, tn_status status, uint32_t error_id, const char* format, ...) {
  if (!diag) return status;
  const tn_diag empty{};
  *diag = empty;
  diag->size = sizeof *diag;
  diag->status = status;
  diag->id = error_id;
  va_list args;
  va_start(args, format);
  append_text(diag, format, args);
  va_end(args);
  return status;
}

void append(tn_diag* diag, const char* format, ...) {
  if (!diag) return;
  va_list args;
  va_start(args, format);
  append_text(diag, format, args);
  va_end(args);
}

const char* family_name(uint32_t family) {
  static constexpr const char* kNames[] = {"", "ARG", "SHAPE", "DTYPE", "STATE", "MEM", "OP", "DEVICE", "LOAD", "POLICY", "DATA", "FILE", "CONF", "GRAD", "TRAIN", "ABI"};
  return family != 0 && family < sizeof kNames / sizeof kNames[0] ? kNames[family] : "EXT";
}

uint32_t dtype_bits(uint32_t dtype) {
  for (const DtypeRow& row : kRows)
    if (row.id == dtype) return row.bits;
  return 0;
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
    default: return "?";
  }
}

const char* type_text(const tn_type& type, char* out, size_t size) {
  size_t used = static_cast<size_t>(std::snprintf(out, size, "%s[", dtype_name(type.dtype)));
  for (int i = 0; i < type.rank && used + 1 < size; ++i) {
    const char* comma = i ? "," : "";
    const int n = TN_IS_SYM(type.dim[i])
                      ? std::snprintf(out + used, size - used, "%ss%lld", comma, static_cast<long long>(type.dim[i] - INT64_MIN))
                      : std::snprintf(out + used, size - used, "%s%lld", comma, static_cast<long long>(type.dim[i]));
    used += static_cast<size_t>(n > 0 ? n : 0);
  }
  if (used + 1 < size) std::snprintf(out + used, size - used, type.layout == TN_LAYOUT_STRIDED ? "]" : "] packed");
  return out;
}

}  // namespace tenon::kernel

extern "C" {

const char* tn_status_text(tn_status status) {
#define TN_TEXT_(name, value, text) case value: return text;
  switch (status) {
    TN_STATUSES(TN_TEXT_)
    default: return "unknown status";
  }
#undef TN_TEXT_
}

uint32_t tn_version(void) { return TN_ABI_CURRENT; }

int32_t tn_feature(const char* name) {
  // Named optional parts of runtime.h that this build really has.
  static const char* const kHave[] = {"why", "pin", "pack", "trace"};
  for (const char* have : kHave)
    if (name && std::strcmp(have, name) == 0) return 1;
  return 0;
}

}  // extern "C"
