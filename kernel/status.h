// kernel/status.h - filling tn_diag, and the error numbers of the kernel.
//
//   return fail(diag, TN_E_STATE, id(kState, 3), "queue belongs to another runtime\nwhy: ...\ntry: ...");
#pragma once
#include <tenon/types.h>

#include <cstdarg>

namespace tenon::kernel {

// Families are shared by the whole project; a number is never reused. Printed TN-SHAPE-002.
enum Family : uint32_t { kArg = 1, kShape, kDtype, kState, kMem, kOp, kDevice, kLoad, kPolicy, kData, kFile, kConf, kGrad, kTrain, kAbi };
const char* family_name(uint32_t family);  // "SHAPE"; "EXT" when it is none of these
constexpr uint32_t id(Family family, uint32_t number) { return family << 16 | number; }

// Fills *diag (may be NULL) and returns `status`. Text is cut at the end of diag->msg, never overrun.
tn_status fail(tn_diag* diag, tn_status status, uint32_t error_id, const char* format, ...) __attribute__((format(printf, 4, 5)));
// Appends to an existing message, for callers that know the place: "\nwhere: op add, device cpu:0".
void append(tn_diag* diag, const char* format, ...) __attribute__((format(printf, 2, 3)));

const char* dtype_name(uint32_t dtype);  // "f32"; "?" when unknown
uint32_t dtype_bits(uint32_t dtype);     // 0 when unknown
// "f32[2,3]" into `out`; symbols print as s0.
const char* type_text(const tn_type& type, char* out, size_t size);

}  // namespace tenon::kernel
