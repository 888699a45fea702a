// ops/gpu/text.cpp - loads, stores and conversions as text; building a step.
#include "ops/gpu/text.h"

#include <algorithm>
#include <cstdarg>
#include <cstring>

#include "ops/gpu/diag.h"

namespace tenon::gpu {

bool is_narrow_float(uint32_t d) { return d == TN_F16 || d == TN_BF16 || d == TN_F8E4M3 || d == TN_F8E5M2; }
bool is_signed_int(uint32_t d) { return d == TN_I8 || d == TN_I16 || d == TN_I32 || d == TN_I64; }
bool is_int(uint32_t d) { return is_signed_int(d) || d == TN_U8 || d == TN_U16 || d == TN_U32 || d == TN_U64; }
uint32_t compute_type(uint32_t d) { return is_narrow_float(d) ? uint32_t{TN_F32} : d; }

const char* register_type(uint32_t d) {
  switch (d) {
    case TN_BOOL: return "bool";
    case TN_I8: case TN_I16: case TN_I32: return "int";
    case TN_U64: return "tn_ulong";
    case TN_I64: return "tn_long";
    case TN_F32: return "float";
    case TN_F64: return "double";
    default: return "tn_uint";
  }
}
const char* local_type(uint32_t d) { return d == TN_F32 ? "tn_float" : d == TN_F64 ? "tn_double" : register_type(d); }
uint32_t needs_of(uint32_t d) { return d == TN_F64 ? kNeedF64 | kNeedI64 : d == TN_U64 || d == TN_I64 ? uint32_t{kNeedI64} : 0u; }

std::string load_text(uint32_t d, const std::string& buffer, const std::string& index) {
  const std::string element = buffer + "[" + index + "]";
  switch (d) {
    case TN_BOOL: return "(TN_U32(" + element + ") != 0u)";
    case TN_I8: case TN_I16: return "TN_I32(" + element + ")";
    case TN_I32: case TN_U32: case TN_U64: case TN_I64: case TN_F32: case TN_F64: return element;
    default: return "TN_U32(" + element + ")";
  }
}

std::string store_text(uint32_t d, const std::string& buffer, const std::string& index, const std::string& value) {
  const std::string element = buffer + "[" + index + "] = ";
  switch (d) {
    case TN_BOOL: return element + "TN_U8(" + value + " ? 1u : 0u);";
    case TN_U8: case TN_F8E4M3: case TN_F8E5M2: return element + "TN_U8(" + value + ");";
    case TN_I8: return element + "TN_I8(" + value + ");";
    case TN_U16: case TN_F16: case TN_BF16: return element + "TN_U16(" + value + ");";
    case TN_I16: return element + "TN_I16(" + value + ");";
    default: return element + value + ";";
  }
}

namespace {

std::string call(const std::string& f, const std::string& x) { return f + "(" + x + ")"; }

const char* narrow_name(uint32_t d) { return d == TN_F16 ? "f16" : d == TN_BF16 ? "bf16" : d == TN_F8E5M2 ? "f8e5m2" : "f8e4m3"; }

std::string to_bool(uint32_t from, const std::string& v) {
  switch (from) {
    case TN_BOOL: return v;
    case TN_F32: return "((TN_BITS_OF_F32(" + v + ") & 0x7FFFFFFFu) != 0u)";  // NaN is true, subnormals are not 0
    case TN_F64: return "((TN_BITS_OF_F64(" + v + ") & 0x7FFFFFFFFFFFFFFFul) != TN_U64(0))";
    case TN_U64: return "(" + v + " != TN_U64(0))";
    case TN_I64: return "(" + v + " != TN_I64(0))";
    case TN_I8: case TN_I16: case TN_I32: return "(" + v + " != 0)";
    default: return "(" + v + " != 0u)";
  }
}

// An integer in a 32- or 64-bit register to the integer type `to`: wraps.
std::string int_to_int(uint32_t to, const std::string& v) {
  switch (to) {
    case TN_U8: return "(TN_U32(" + v + ") & 0xFFu)";
    case TN_U16: return "(TN_U32(" + v + ") & 0xFFFFu)";
    case TN_I8: return "(TN_I32(TN_U32(" + v + ") << 24) >> 24)";
    case TN_I16: return "(TN_I32(TN_U32(" + v + ") << 16) >> 16)";
    case TN_U32: return call("TN_U32", v);
    case TN_I32: return call("TN_I32", v);
    case TN_U64: return call("TN_U64", v);
    default: return call("TN_I64", v);
  }
}

std::string float_to_int(uint32_t from, uint32_t to, const std::string& v) {
  const bool wide = from == TN_F64;
  switch (to) {
    case TN_U32: return call(wide ? "tn_f64_to_u32" : "tn_f32_to_u32", v);
    case TN_I32: return wide ? "tn_f64_to_i32(" + v + ", -2147483647 - 1, 2147483647)" : call("tn_f32_to_i32", v);
    case TN_U64: return call(wide ? "tn_f64_to_u64" : "tn_f32_to_u64", v);
    case TN_I64: return call(wide ? "tn_f64_to_i64" : "tn_f32_to_i64", v);
    default: break;
  }
  const char* range = to == TN_U8 ? "0, 255" : to == TN_I8 ? "-128, 127" : to == TN_U16 ? "0, 65535" : "-32768, 32767";
  const std::string r = std::string(wide ? "tn_f64_to_i32(" : "tn_f32_to_small(") + v + ", " + range + ")";
  return is_signed_int(to) ? r : call("TN_U32", r);
}

// To f32; what f32 cannot hold is rounded to odd, so that a second rounding to a narrow type is the only one.
std::string to_odd_f32(uint32_t from, const std::string& v) {
  switch (from) {
    case TN_F32: return v;
    case TN_F64: return call("tn_odd_f32", v);
    case TN_U32: return "tn_odd_f32_of_u32(" + v + ")";
    case TN_I32: return "(" + v + " < 0 ? -tn_odd_f32_of_u32(0u - TN_U32(" + v + ")) : tn_odd_f32_of_u32(TN_U32(" + v + ")))";
    case TN_U64: return call("tn_odd_f32_of_u64", v);
    case TN_I64: return "(" + v + " < TN_I64(0) ? -tn_odd_f32_of_u64(TN_U64(0) - TN_U64(" + v + ")) : tn_odd_f32_of_u64(TN_U64(" + v + ")))";
    default: return call("TN_F32", v);
  }
}

}  // namespace

std::string widen_text(uint32_t d, const std::string& v) { return is_narrow_float(d) ? std::string("tn_") + narrow_name(d) + "_to_f32(" + v + ")" : v; }
std::string narrow_text(uint32_t d, const std::string& v) { return is_narrow_float(d) ? std::string("tn_f32_to_") + narrow_name(d) + "(" + v + ")" : v; }

std::string cast_text(uint32_t from, uint32_t to, const std::string& value) {
  if (from == to) return value;
  if (is_narrow_float(from)) return cast_text(TN_F32, to, widen_text(from, value));
  if (to == TN_BOOL) return to_bool(from, value);
  if (from == TN_BOOL) return cast_text(TN_U32, to, "(" + value + " ? 1u : 0u)");
  if (is_narrow_float(to)) return narrow_text(to, to_odd_f32(from, value));
  if (to == TN_F32) return from == TN_F64 ? call("tn_f64_to_f32", value) : call("TN_F32", value);
  if (to == TN_F64) return call("TN_F64", value);
  if (from == TN_F32 || from == TN_F64) return float_to_int(from, to, value);
  return int_to_int(to, value);
}

const tn_program* program_attr(const tn_op& op, uint32_t key) {
  for (uint32_t i = 0; i < op.n_attr; ++i)
    if (op.attr[i].key == key) return static_cast<const tn_program*>(op.attr[i].v.p);
  return nullptr;
}
int64_t int_attr(const tn_op& op, uint32_t key, int64_t fallback) {
  for (uint32_t i = 0; i < op.n_attr; ++i)
    if (op.attr[i].key == key) return op.attr[i].v.i;
  return fallback;
}

tn_status refuse(tn_diag* diag, tn_status status, const char* format, ...) {
  const uint32_t id = status == TN_E_OOM ? kErrOutOfMemory : status == TN_E_FAILED ? kErrKernelFailed : kErrNotTaken;
  va_list args;
  va_start(args, format);
  vreport(diag, status, id, format, args);
  va_end(args);
  return status;
}

StepBuilder::StepBuilder(std::string name) { spec.name = std::move(name); }

void StepBuilder::scalar(const std::string& name, uint8_t dtype, uint64_t bits) {
  spec.scalars.push_back({name, dtype});
  bits_.push_back(bits);
}
void StepBuilder::scalar_u32(const std::string& name, uint32_t value) { scalar(name, TN_U32, value); }
void StepBuilder::scalar_i32(const std::string& name, int32_t value) { scalar(name, TN_I32, static_cast<uint32_t>(value)); }
void StepBuilder::scalar_u64(const std::string& name, uint64_t value) { scalar(name, TN_U64, value); }

std::string StepBuilder::push(uint32_t slot, uint32_t dtype) {
  const std::string name = "tn_push" + std::to_string(slot) + "_" + std::to_string(dtype);
  const bool narrow_signed = dtype == TN_I8 || dtype == TN_I16;
  const uint32_t held = element_bytes(dtype) >= 4 ? dtype : uint32_t{TN_U32};
  bool known = false;
  for (const ScalarSpec& s : spec.scalars) known = known || s.name == name;
  if (!known) {
    Patch patch;
    patch.kind = Patch::Push, patch.bytes = static_cast<uint8_t>(element_bytes(dtype)), patch.index = static_cast<uint16_t>(slot);
    late_.push_back({spec.scalars.size(), patch});
    scalar(name, static_cast<uint8_t>(held), 0);
  }
  if (dtype == TN_BOOL) return "(" + name + " != 0u)";
  return narrow_signed ? cast_text(TN_U32, dtype, name) : name;
}

void StepBuilder::buffer(const std::string& name, uint32_t dtype, bool writable, Reach reach, bool wide) {
  Patch patch;
  patch.kind = Patch::ElementStart, patch.bytes = wide ? 8 : 4, patch.index = static_cast<uint16_t>(spec.buffers.size());
  late_.push_back({spec.scalars.size(), patch});
  scalar(name + "_start", wide ? TN_U64 : TN_U32, 0);
  spec.buffers.push_back({name, static_cast<uint8_t>(dtype), writable});
  step_.reach.push_back(reach);
}

void StepBuilder::groups(uint64_t x, uint64_t y, uint64_t z) { step_.groups[0] = x, step_.groups[1] = y, step_.groups[2] = z; }

Step StepBuilder::finish() {
  const ParamLayout layout = param_layout(spec);
  step_.params.assign(layout.bytes, 0);
  for (size_t i = 0; i < bits_.size(); ++i) std::memcpy(&step_.params[layout.offset[i]], &bits_[i], element_bytes(spec.scalars[i].dtype));
  for (auto& [at, patch] : late_) {
    patch.at = layout.offset[at];
    step_.patches.push_back(patch);
  }
  step_.spec = std::make_shared<const KernelSpec>(std::move(spec));
  return std::move(step_);
}

}  // namespace tenon::gpu
