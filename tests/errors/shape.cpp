// TN-SHAPE: sizes, axes and ranks that do not fit.
#include <tenon/tenon.hpp>

#include "tests/errors/stage.h"
#include "tests/errors/tables.h"

namespace tenon::errors {
namespace {

// An op whose shape rule demands or computes something that the dims of its operand do not give.
tn_status needs_even(void*, const tn_op* op, const tn_dims* dims, tn_type* out, tn_diag* diag) {
  *out = op->type[0];
  return dims->require(dims->ctx, TN_DIM_DIVIDES, 2, op->type[0].dim[0], diag);
}
Said of_own_rule(const char* operand) {
  Stage s;
  tn_op_def def{};
  def.size = sizeof def;
  def.op_id = uint64_t{1} << 63 | 7;
  def.version = 1, def.n_in = 1, def.n_out = 1;
  def.name = "halve";
  def.infer = needs_even;
  uint32_t id = 0;
  if (tn_op_define(s.rt, &def, &id, nullptr)) return {};
  return s.infer("halve", operand);
}

// The derivative of a mean whose number of elements is a symbol.
Said derive_mean_of_symbols() {
  Stage s;
  tn_builder* b = nullptr;
  if (tn_builder_create(s.rt, &b, nullptr)) return {};
  const tn_builder_api& api = *tn_builder_table();
  const tn_type type = type_of("f32[?]"), one = type_of("f32[]");
  uint32_t x = 0, y = 0, seed = 0, gradient = 0;
  api.input(b, &type, &x, nullptr);
  api.input(b, &one, &seed, nullptr);
  tn_emit e{};
  e.size = sizeof e;
  e.op_id = TN_OPID_MEAN;
  e.n_in = 1, e.n_out = 1, e.in = &x, e.out = &y;
  tn_diag diag{};
  Said said;
  if (api.emit(b, &e, &diag) == TN_OK) {
    tn_rule rule{};
    rule.size = sizeof rule, rule.kind = TN_RULE_VJP;
    rule.in = &x, rule.out = &y, rule.seed = &seed, rule.result = &gradient, rule.need = 1;
    said = refused([&](tn_diag* d) { return tn_builder_derive(b, 1, 1, &rule, d); });
  } else {
    said = errors::said(diag);
  }
  tn_builder_destroy(b);
  return said;
}

Table op_shapes() {
  const Attr sum = integer(TN_KEY_MONOID, TN_MONOID_SUM), argmax = integer(TN_KEY_MONOID, TN_MONOID_ARGMAX);
  return {
      {"TN-SHAPE-001", "of two operands", [] { return Stage().infer("add", "f32[2,3] f32[2]"); }},
      {"TN-SHAPE-001", "in a call", [] { return Stage().call("add", "f32[2,3] f32[2]"); }},
      {"TN-SHAPE-003", "", [] { return of_own_rule("f32[7]"); }},
      {"TN-SHAPE-004", "of a sum", [] { return Stage().infer("pad", "f32[3]", {list(TN_KEY_LO, {INT64_MAX}), list(TN_KEY_HI, {0})}, 1); }},
      {"TN-SHAPE-005", "of sum", [] { return Stage().infer("sum", "f32[2,3]", {list(TN_KEY_AXES, {2})}); }},
      {"TN-SHAPE-005", "of argmax", [] { return Stage().infer("argmax", "f32[2,3]", {integer(TN_KEY_AXIS, 2)}); }},
      {"TN-SHAPE-005", "of reduce", [sum] { return Stage().infer("reduce", "f32[2,3]", {list(TN_KEY_AXES, {2}), sum}); }},
      {"TN-SHAPE-005", "of flip", [] { return Stage().infer("flip", "f32[2,3]", {list(TN_KEY_AXES, {0, 0})}); }},
      {"TN-SHAPE-006", "of sum", [] { return Stage().infer("sum", "f32[2,3]", {list(TN_KEY_AXES, {1, -1})}); }},
      {"TN-SHAPE-006", "of reduce", [sum] { return Stage().infer("reduce", "f32[2,3]", {list(TN_KEY_AXES, {1, 0}), sum}); }},
      {"TN-SHAPE-007", "", [] { return Stage().infer("reshape", "f32[512]", {list(TN_KEY_DIMS, {2, 2, 2, 2, 2, 2, 2, 2, 2})}); }},
      {"TN-SHAPE-008", "", [] { return Stage().infer("expand", "f32[3]", {list(TN_KEY_DIMS, {-1, 3})}); }},
      {"TN-SHAPE-009", "", [argmax] { return Stage().infer("reduce", "f32[2,3]", {list(TN_KEY_AXES, {0, 1}), argmax}); }},
      {"TN-SHAPE-010", "of argmax", [] { return Stage().infer("argmax", "f32[0]", {integer(TN_KEY_AXIS, 0)}); }},
      {"TN-SHAPE-010", "of reduce", [argmax] { return Stage().infer("reduce", "f32[0]", {list(TN_KEY_AXES, {0}), argmax}); }},
      {"TN-SHAPE-011", "", [] { return Stage().infer("reshape", "f32[2,3]", {list(TN_KEY_DIMS, {4, 2})}); }},
      {"TN-SHAPE-012", "", [] { return Stage().infer("reshape", "f32[2,3]", {list(TN_KEY_DIMS, {-1, -1})}); }},
      {"TN-SHAPE-014", "", [] { return Stage().infer("permute", "f32[2,3]", {list(TN_KEY_PERM, {0, 0})}); }},
      {"TN-SHAPE-015", "", [] { return Stage().infer("expand", "f32[2,3]", {list(TN_KEY_DIMS, {4, 3})}); }},
      {"TN-SHAPE-016", "outside", [] { return Stage().infer("slice", "f32[10]", {list(TN_KEY_STARTS, {8}), list(TN_KEY_DIMS, {3}), list(TN_KEY_STEPS, {1})}); }},
      {"TN-SHAPE-016", "a step of 0", [] { return Stage().infer("slice", "f32[10]", {list(TN_KEY_STARTS, {0}), list(TN_KEY_DIMS, {3}), list(TN_KEY_STEPS, {0})}); }},
      {"TN-SHAPE-017", "", [] { return Stage().infer("slice", "f32[2,3]", {list(TN_KEY_STARTS, {0}), list(TN_KEY_DIMS, {1}), list(TN_KEY_STEPS, {1})}); }},
      {"TN-SHAPE-018", "", [] { return Stage().infer("windows", "f32[8]", {list(TN_KEY_KERNEL, {3, 3})}); }},
      {"TN-SHAPE-019", "", [] { return Stage().infer("windows", "f32[2,2]", {list(TN_KEY_KERNEL, {3, 3})}); }},
      {"TN-SHAPE-004", "of a symbol", derive_mean_of_symbols},
      {"TN-SHAPE-021", "", [] { return Stage().infer("mean", "i32[0]"); }},
      {"TN-SHAPE-050", "", [] { return Stage().infer("matmul", "f32[128,256] f32[512,64]"); }},
      {"TN-SHAPE-050", "in a call", [] { return Stage().call("matmul", "f32[2,3] f32[4,5]"); }},
      {"TN-SHAPE-051", "", [] { return Stage().infer("matmul", "f32[3] f32[3,4]"); }},
      {"TN-SHAPE-052", "", [] { return Stage().infer("matmul", "f32[2,3,4] f32[3,4,5]"); }},
      {"TN-SHAPE-053", "of gather", [] { return Stage().infer("gather", "f32[3,4] i64[3]", {integer(TN_KEY_AXIS, 0)}); }},
      {"TN-SHAPE-053", "of scatter", [] { return Stage().infer("scatter", "f32[3,4] i64[2,4] f32[2,3]", {integer(TN_KEY_AXIS, 0), integer(TN_KEY_MODE, 0)}); }},
      {"TN-SHAPE-054", "", [] { return Stage().infer("softmax", "f32[2,3]", {integer(TN_KEY_AXIS, 2)}); }},
      {"TN-SHAPE-055", "", [] { return Stage().infer("pad", "f32[3]", {list(TN_KEY_LO, {1, 1}), list(TN_KEY_HI, {0})}, 1); }},
      {"TN-SHAPE-056", "", [] { return Stage().infer("pad", "f32[3]", {list(TN_KEY_LO, {-4}), list(TN_KEY_HI, {0})}, 1); }},
      {"TN-SHAPE-057", "", [] { return Stage().infer("concat", "f32[2,3] f32[4,3]", {integer(TN_KEY_AXIS, 1)}); }},
      {"TN-SHAPE-058", "", [] { return Stage().infer("concat", "", {integer(TN_KEY_AXIS, 0)}); }},
      {"TN-SHAPE-060", "", [] { return Stage().infer("conv2d", "f32[1,3,8,8] f32[4,2,3,3] -"); }},
      {"TN-SHAPE-061", "", [] { return Stage().infer("conv2d", "f32[1,3,2,8] f32[4,3,3,3] -"); }},
      {"TN-SHAPE-063", "", [] { return Stage().infer("cross_entropy", "f32[4,10] i64[5]"); }},
      {"TN-SHAPE-064", "", [] { return Stage().infer("conv2d", "f32[1,3,8,8] f32[4,3,3,3] f32[3]"); }},
      {"TN-SHAPE-066", "of a stride", [] { return Stage().infer("conv2d", "f32[1,3,8,8] f32[4,3,3,3] -", {list(TN_KEY_STRIDES, {1, 0})}); }},
      {"TN-SHAPE-066", "of groups", [] { return Stage().infer("conv2d", "f32[1,3,8,8] f32[4,3,3,3] -", {integer(TN_KEY_GROUPS, 0)}); }},
      {"TN-SHAPE-066", "of a depth", [] { return Stage().infer("one_hot", "i64[3]", {integer(TN_KEY_DEPTH, -1)}); }},
      {"TN-SHAPE-067", "", [] { return Stage().infer("linear", "f32[8,16] f32[16,4] -"); }},
  };
}

Table tensor_shapes() {
  return {
      {"TN-SHAPE-101", "", [] { return thrown([] { zeros({1, 1, 1, 1, 1, 1, 1, 1, 1}); }); }},
      {"TN-SHAPE-101", "by one more", [] { return thrown([] { zeros({1, 1, 1, 1, 1, 1, 1, 1}).unsqueeze(0); }); }},
      {"TN-SHAPE-102", "of dim", [] { return thrown([] { zeros({2, 3}).dim(2); }); }},
      {"TN-SHAPE-102", "of transpose", [] { return thrown([] { zeros({2, 3}).transpose(0, 2); }); }},
      {"TN-SHAPE-103", "", [] { return thrown([] { zeros({2, 3}).item<float>(); }); }},
      {"TN-SHAPE-104", "", [] { return thrown([] { zeros({-1, 3}); }); }},
      {"TN-SHAPE-105", "", [] { return thrown([] { from_vector(std::vector<float>(5), {2, 3}); }); }},
      {"TN-SHAPE-106", "", [] { return thrown([] { float v[6]; from_blob(v, {2, 3}, DType::f32, nullptr, nullptr, {3}); }); }},
      {"TN-SHAPE-107", "", [] { return thrown([] { zeros({2, 3}).squeeze(0); }); }},
      {"TN-SHAPE-108", "", [] { return thrown([] { zeros({2, 3}).slice({Slice{0, 1}, Slice{0, 1}, Slice{0, 1}}); }); }},
      {"TN-SHAPE-109", "", [] { return thrown([] { zeros({4}).narrow(0, 2, 3); }); }},
      {"TN-SHAPE-110", "", [] { return thrown([] { zeros({3, 2}).select(0, 3); }); }},
      {"TN-SHAPE-111", "", [] { return thrown([] { Tensor x = zeros({4}).slice({Slice{0, 4, 2}}); x.add_(ones({3, 2})); }); }},
      {"TN-SHAPE-050", "of the C++ API", [] { return thrown([] { matmul(zeros({128, 256}), zeros({512, 64})); }); }},
  };
}

}  // namespace

Table shape_cases() {
  Table all = op_shapes();
  for (Case& c : tensor_shapes()) all.push_back(std::move(c));
  return all;
}

}  // namespace tenon::errors
