// The same elements in a fresh dense buffer.
#include "ops/movement/rule_tools.h"

namespace tenon::ops {
namespace {

tn_status infer(void*, const tn_op* op, const tn_dims* dims, tn_type* out, tn_diag*) {
  set_type(out, op->type[0].dtype, dims_of(op->type[0]), dims);
  return TN_OK;
}

tn_status vjp(void*, tn_builder* b, const tn_rule* r, tn_diag* d) {
  Emit e(b, r, d);
  e.result(0, e.seed(0));
  return e.status();
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const Dims& dims : {Dims{}, Dims{1}, Dims{7}, Dims{0}, Dims{70}, Dims{2, 3}, Dims{3, 0, 2}, Dims{2, 3, 4}, Dims{1, 1, 5},
                           Dims{4, 3, 2, 5}, Dims{2, 1, 2, 1, 2}, Dims{2, 2, 2, 2, 2, 2}})
    all.push_back({{operand(dims)}});
  for (Layout layout : {Layout::Permuted, Layout::Gapped, Layout::Broadcast})
    for (const Dims& dims : {Dims{5, 7}, Dims{3, 4, 5}, Dims{33, 17}, Dims{2, 3, 4, 5}}) all.push_back({{operand(dims, Fill::Normal, layout)}});
  return all;
}

}  // namespace

extern const OpDecl op_copy{
    .def = {.size = sizeof(tn_op_def), .op_id = TN_OPID_COPY, .version = 1, .n_in = 1, .n_out = 1, .name = "copy", .infer = infer,
            .vjp = vjp, .cost = cost_move},
    .summary = "The same elements, dense and row-major.",
    .formula = "y[i] = x[i]",
    .semantics = "Bytes are moved, never interpreted: NaN payloads, -0 and subnormals stay as they are.",
    .example = "f32[2,3]",
    .cases = cases,
    .dtypes = kAllTypes,
    .ulp_f32 = 0};

}  // namespace tenon::ops
