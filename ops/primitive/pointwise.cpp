// ops/primitive/pointwise.cpp - one scalar program over operands broadcast together.
#include <bit>

#include "ops/cases.h"
#include "ops/declare.h"
#include "ops/op.h"
#include "ops/program_rules.h"
#include "ops/pull.h"
#include "ops/scalar_grad.h"

namespace tenon::ops {
namespace {

tn_status dims_from_attr(const tn_op* op, tn_type* out, tn_diag* diag) {
  const std::vector<int64_t> want = attr_ints(*op, TN_KEY_DIMS);
  if (want.size() > TN_MAX_RANK)
    return fail(diag, TN_E_SHAPE, error_id(kShape, 7), "pointwise: too many axes\nwhy: dims has %zu, the most is %d\n"
                "try: merge axes", want.size(), TN_MAX_RANK);
  out->rank = static_cast<uint8_t>(want.size());
  for (size_t i = 0; i < want.size(); ++i) {
    if (want[i] < 0 && !TN_IS_SYM(want[i]))
      return fail(diag, TN_E_SHAPE, error_id(kShape, 8), "pointwise: a size is negative\nwhy: dims[%zu] is %lld\n"
                  "try: give sizes of 0 or more", i, static_cast<long long>(want[i]));
    out->dim[i] = want[i];
  }
  return TN_OK;
}

tn_status infer(void*, const tn_op* op, const tn_dims* dims, tn_type* out, tn_diag* diag) {
  const tn_program* p = attr_program(*op, TN_KEY_PROGRAM);
  if (!p)
    return fail(diag, TN_E_ARG, error_id(kArg, 2), "pointwise: attribute `program` is absent\nwhy: it says what to compute\n"
                "try: give a scalar program");
  tn_status s = check_inputs("pointwise", *p, op, diag);
  if (s != TN_OK) return s;
  tn_type t{};
  s = op->n_in ? broadcast(op, dims, &t, diag) : dims_from_attr(op, &t, diag);
  if (s != TN_OK) return s;
  if (!op->n_in) set_dense(&t, dims);
  for (uint32_t k = 0; k < p->n_out; ++k) {
    out[k] = t;
    out[k].dtype = static_cast<uint8_t>(output_type(*p, k));
  }
  return TN_OK;
}

tn_status vjp(void*, tn_builder* b, const tn_rule* r, tn_diag* d) {
  Emit e(b, r, d);
  const tn_op& op = e.self();
  const tn_program& p = *attr_program(op, TN_KEY_PROGRAM);
  uint64_t want = 0, seeds = 0;
  for (uint32_t i = 0; i < op.n_in; ++i) want |= uint64_t{e.needs(i)} << i;
  for (uint32_t k = 0; k < p.n_out; ++k) seeds |= uint64_t{bool(e.seed(k))} << k;
  ScalarGraph graph;
  const std::vector<ScalarGraph::Id> gradient = differentiate(p, want, seeds, &graph);
  std::vector<PullTarget> targets;
  std::vector<uint32_t> input;
  for (uint32_t i = 0; i < op.n_in; ++i) {
    if (gradient[i] == TN_NONE) continue;
    targets.push_back({gradient[i], op.type[i]});
    input.push_back(i);
  }
  if (targets.empty()) return e.status();
  const tn_type& full = op.type[op.n_in];
  const auto leaf = [&](uint32_t n) { return n < op.n_in ? e.in(n) : e.seed(n - op.n_in); };
  const uint32_t full_leaf = op.n_in + static_cast<uint32_t>(std::countr_zero(seeds));
  const std::vector<Value> values = pull_targets(
      {&e, &graph, uint32_t{op.n_in} + p.n_out, leaf, {full.dim, full.dim + full.rank}, full_leaf}, targets);
  for (size_t t = 0; t < targets.size(); ++t) e.result(input[t], values[t]);
  return e.status();
}

tn_status cost(void*, const tn_op* op, tn_cost* out, tn_diag*) {
  out->bound = TN_BOUND_MEMORY;
  out->flops = arithmetic_count(*attr_program(*op, TN_KEY_PROGRAM)) * element_count(op->type[op->n_in]);
  out->bytes = traffic(*op);
  return TN_OK;
}

const tn_attr_def kAttrs[] = {attr_def(TN_KEY_PROGRAM, TN_ATTR_PROGRAM, "program", TN_ATTR_REQUIRED),
                              attr_def(TN_KEY_DIMS, TN_ATTR_I64S, "dims")};

// x * y + slot, and a second output of another shape of arithmetic.
void two_outputs(ProgramBuilder& p) {
  const auto x = p.input(0), y = p.input(1);
  p.output(p.op(TN_OP_MUL, x, y));
  p.output(p.op(TN_OP_SUB, x, y));
}

void product_plus_slot(ProgramBuilder& p) {
  p.output(p.op(TN_OP_ADD, p.op(TN_OP_MUL, p.input(0), p.input(1)), p.slot(0)));
}

std::vector<Case> cases() {
  std::vector<Case> list;
  for (const auto program : {product_plus_slot, two_outputs})
    for (Case c : binary_cases(Fill::Normal, Fill::Normal, 0)) {
      if (c.in[0].absent || c.in[1].absent) continue;  // optional operands are for named ops
      c.attrs = {case_program(TN_KEY_PROGRAM, program)};
      if (program == product_plus_slot) c.push = {3};
      list.push_back(c);
    }
  return list;
}

}  // namespace

extern const OpDecl op_pointwise{
    .def = {.size = sizeof(tn_op_def), .flags = TN_DEF_ELEMENTWISE, .op_id = TN_OPID_POINTWISE, .version = 1,
            .n_in = TN_VARIADIC, .n_out = TN_VARIADIC, .n_attr_defs = 2, .name = "pointwise", .attr_defs = kAttrs,
            .infer = infer, .vjp = vjp, .cost = cost},
    .summary = "One scalar program, element by element.",
    .formula = "y_k[i] = program_k(x_0[i], x_1[i], ...)",
    .semantics = "Operands broadcast as in NumPy. Without operands attribute dims gives the shape. INDEX counts in the "
                 "output's row-major order. Each opcode's corner cases are in the opcode table of types.h.",
    .example = "",
    .cases = cases,
    .dtypes = kNumbers};

}  // namespace tenon::ops
