// TN-DTYPE: element types that do not fit.
#include <tenon/tenon.hpp>

#include "tests/errors/stage.h"
#include "tests/errors/tables.h"

namespace tenon::errors {
namespace {

const Program kRelu({{TN_OP_INPUT, TN_F32, 0, 0, 0}, {TN_OP_ABS, TN_F32, 0, 0, 0}}, 1, 0, {1});

// The published layout of a DLPack tensor of complex numbers.
Said import_complex() {
  struct { void* data; int32_t device, id, ndim; uint8_t code, bits; uint16_t lanes; int64_t *shape, *strides; uint64_t offset; void* ctx; void (*deleter)(void*); } managed{};
  int64_t shape[1] = {2};
  double data[4] = {};
  managed.data = data, managed.device = 1, managed.ndim = 1, managed.code = 5, managed.bits = 128, managed.lanes = 1, managed.shape = shape;
  return thrown([&] { from_dlpack_unversioned(&managed); });
}

}  // namespace

Table dtype_cases() {
  const Attr sum = integer(TN_KEY_MONOID, TN_MONOID_SUM), axes = list(TN_KEY_AXES, {0});
  return {
      {"TN-DTYPE-001", "", [] { return Stage().infer("add", "f32[3] i32[3]"); }},
      {"TN-DTYPE-002", "of pointwise", [] { return Stage().infer("pointwise", "f16[3]", {program(TN_KEY_PROGRAM, kRelu)}); }},
      {"TN-DTYPE-002", "of post", [=] { return Stage().infer("reduce", "f64[3]", {axes, sum, program(TN_KEY_POST, kRelu)}); }},
      {"TN-DTYPE-003", "of an elementwise op", [] { return Stage().infer("sqrt", "i32[3]"); }},
      {"TN-DTYPE-003", "of a reduction", [] { return Stage().infer("sum", "bool[3]"); }},
      {"TN-DTYPE-003", "of argmax", [] { return Stage().infer("argmax", "bool[3]"); }},
      {"TN-DTYPE-004", "", [] { return Stage().infer("where", "f32[3] f32[3] f32[3]"); }},
      {"TN-DTYPE-005", "", [=] { return Stage().infer("reduce", "f32[3]", {axes, integer(TN_KEY_MONOID, TN_MONOID_OR)}); }},
      {"TN-DTYPE-050", "of matmul", [] { return Stage().infer("matmul", "f32[2,2] f64[2,2]"); }},
      {"TN-DTYPE-050", "of scatter", [] { return Stage().infer("scatter", "f32[3] i64[2] f64[2]", {integer(TN_KEY_AXIS, 0), integer(TN_KEY_MODE, 0)}); }},
      {"TN-DTYPE-051", "", [] { return Stage().infer("gather", "f32[3] f32[3]", {integer(TN_KEY_AXIS, 0)}); }},
      {"TN-DTYPE-052", "", [] { return Stage().infer("softmax", "i32[2,3]"); }},
      {"TN-DTYPE-053", "of a random op", [] { return Stage().infer("random_uniform", "", {list(TN_KEY_DIMS, {2}), integer(TN_KEY_DTYPE, TN_I32)}, 2); }},
      {"TN-DTYPE-053", "of scatter", [] { return Stage().infer("scatter", "bool[3] i64[2] bool[2]", {integer(TN_KEY_AXIS, 0), integer(TN_KEY_MODE, 1)}); }},
      {"TN-DTYPE-101", "of a fraction", [] { return thrown([] { mul(tensor({1, 2}), 0.5); }); }},
      {"TN-DTYPE-101", "of a whole number", [] { return thrown([] { add(tensor<int8_t>({1, 2}), 1000); }); }},
      {"TN-DTYPE-102", "", import_complex},
  };
}

}  // namespace tenon::errors
