/* backends/null/kernels.c - the six primitives every backend supplies; all other ops are made of them. Replace one at a
 * time by a call of your hardware: the others stay right. What each computes: docs/semantics.md. */
#include "null.h"

typedef struct call { const tn_op* op; const tn_launch* launch; } call;
static char* data(call c, int operand) { return (char*)c.launch->views[operand].host; }
static tnk_value element(call c, int operand, int64_t at) { return tnk_load(c.op->type[operand].dtype, data(c, operand) + at); }

static tn_status pointwise(call c) {
  const tn_program* p = tnk_attr_program(c.op, TN_KEY_PROGRAM);
  tnk_space s = tnk_space_of(&c.op->type[c.op->n_in]);
  tnk_value in[TN_PROGRAM_MAX_IN], out[TN_PROGRAM_MAX_OUT];
  for (int k = 0; k < c.op->n_in + c.op->n_out; ++k) tnk_space_add(&s, &c.op->type[k]);
  for (tnk_walk w = tnk_begin(&s); w.left > 0; tnk_next(&w)) {
    for (int k = 0; k < c.op->n_in; ++k) in[k] = element(c, k, w.at[k]);
    tnk_eval(p, in, c.launch->push, &w, out);
    for (int k = c.op->n_in; k < c.op->n_in + c.op->n_out; ++k) tnk_store(c.op->type[k].dtype, data(c, k) + w.at[k], out[k - c.op->n_in]);
  }
  return TN_OK;
}

static tn_status reduce(call c) {
  const tn_program *pre = tnk_attr_program(c.op, TN_KEY_PRE), *post = tnk_attr_program(c.op, TN_KEY_POST);
  const tn_attr* axes = tnk_attr(c.op, TN_KEY_AXES);
  const tn_type whole = tnk_broadcast(c.op->type, c.op->n_in);
  tnk_space all = tnk_space_of(&whole), kept, gone;
  tnk_value in[TN_PROGRAM_MAX_IN], out[TN_PROGRAM_MAX_OUT], v;
  uint32_t mask = 0;
  for (uint64_t i = 0; i < axes->len; ++i) mask |= 1u << ((const int64_t*)axes->v.p)[i];
  for (int k = 0; k < c.op->n_in; ++k) tnk_space_add(&all, &c.op->type[k]);
  kept = tnk_space_axes(&all, mask, 1), gone = tnk_space_axes(&all, mask, 0);
  for (tnk_walk o = tnk_begin(&kept); o.left > 0; tnk_next(&o)) {
    tnk_reduction r = tnk_reduction_of(tnk_attr_i64(c.op, TN_KEY_MONOID, TN_MONOID_SUM), tnk_reduced_type(c.op));
    for (tnk_walk w = tnk_begin(&gone); w.left > 0; tnk_next(&w)) {
      for (int k = 0; k < c.op->n_in; ++k) in[k] = element(c, k, o.at[k] + w.at[k]);
      v = in[0];
      if (pre) tnk_eval(pre, in, c.launch->push, &w, &v);
      tnk_accumulate(&r, v);
    }
    out[0] = v = tnk_reduced(&r);
    if (post) tnk_eval(post, &v, c.launch->push, &o, out);
    for (int k = 0; k < c.op->n_out; ++k) { /* outputs are row-major */
      const uint32_t dtype = c.op->type[c.op->n_in + k].dtype;
      tnk_store(dtype, data(c, c.op->n_in + k) + o.number * tnk_bytes(dtype), out[k]);
    }
  }
  return TN_OK;
}

static tn_status matmul(call c) {
  const tn_program* post = tnk_attr_program(c.op, TN_KEY_POST);
  const tn_type *a = &c.op->type[0], *b = &c.op->type[1], *y = &c.op->type[c.op->n_in];
  const int64_t k_count = a->dim[a->rank - 1], a_step = a->stride[a->rank - 1] * tnk_bytes(a->dtype);
  const int64_t b_step = b->stride[b->rank - 2] * tnk_bytes(b->dtype);
  tn_type row = *a, column = *b; /* one k: repeated along the other's axis */
  tnk_space s = tnk_space_of(y);
  tnk_value in[TN_PROGRAM_MAX_IN], out;
  row.dim[row.rank - 1] = 1, column.dim[column.rank - 2] = 1;
  tnk_space_add(&s, &row), tnk_space_add(&s, &column);
  for (int k = 2; k < c.op->n_in; ++k) tnk_space_add(&s, &c.op->type[k]);
  for (tnk_walk w = tnk_begin(&s); w.left > 0; tnk_next(&w)) {
    double sum = 0;
    uint64_t whole = 0;
    for (int64_t k = 0; k < k_count; ++k) {
      const tnk_value x = element(c, 0, w.at[0] + k * a_step), z = element(c, 1, w.at[1] + k * b_step);
      if (a->dtype == TN_F32) sum += (double)x.f * (double)z.f;
      else whole += (uint64_t)x.i * (uint64_t)z.i;
    }
    in[0] = out = a->dtype == TN_F32 ? tnk_f32((float)sum) : tnk_i64(tnk_wrap(whole));
    for (int k = 2; k < c.op->n_in; ++k) in[k - 1] = element(c, k, w.at[k]);
    if (post) tnk_eval(post, in, c.launch->push, &w, &out);
    tnk_store(y->dtype, data(c, c.op->n_in) + w.number * tnk_bytes(y->dtype), out);
  }
  return TN_OK;
}

static tn_status copy_operand(call c, int from, int to) {
  const size_t bytes = (size_t)tnk_bytes(c.op->type[from].dtype);
  tnk_space s = tnk_space_of(&c.op->type[to]);
  tnk_space_add(&s, &c.op->type[from]), tnk_space_add(&s, &c.op->type[to]);
  for (tnk_walk w = tnk_begin(&s); w.left > 0; tnk_next(&w)) memmove(data(c, to) + w.at[1], data(c, from) + w.at[0], bytes);
  return TN_OK;
}
static tn_status copy(call c) { return copy_operand(c, 0, 1); }

/* gather: y = data[index]; scatter: y = data, then y[index] mode= updates. `far` is the operand that index moves in. */
static tn_status indexed(call c, int far, int near, const tn_type* range) {
  const int64_t axis = tnk_attr_i64(c.op, TN_KEY_AXIS, 0), mode = tnk_attr_i64(c.op, TN_KEY_MODE, TN_SCATTER_SET);
  const int64_t size = c.op->type[far].dim[axis];
  const uint32_t dtype = c.op->type[far].dtype;
  static const uint8_t code[] = {0, TN_OP_ADD, TN_OP_MUL, TN_OP_MIN, TN_OP_MAX};
  tnk_space s = tnk_space_of(range);
  tn_type still = c.op->type[far]; /* index alone says where on the axis */
  still.dim[axis] = 1;
  tnk_space_add(&s, &still), tnk_space_add(&s, &c.op->type[1]), tnk_space_add(&s, &c.op->type[near]);
  for (int write = 0; write < 2; ++write) /* a first pass looks at every index: a failing op writes nothing */
    for (tnk_walk w = tnk_begin(&s); w.left > 0; tnk_next(&w)) {
      const int64_t i = element(c, 1, w.at[1]).i, at = i < 0 ? i + size : i;
      char *there = data(c, far) + w.at[0] + at * c.op->type[far].stride[axis] * tnk_bytes(dtype), *here = data(c, near) + w.at[2];
      if (at < 0 || at >= size)
        return tnk_fail(c.launch->diag, TN_E_FAILED, 908, "an index is outside its axis\nwhy: %lld on an axis of %lld\ntry: 0 to %lld", (long long)i,
                        (long long)size, (long long)size - 1);
      if (!write) continue;
      const tnk_value old = tnk_load(dtype, there), v = tnk_load(dtype, here);
      if (c.op->op_id == TN_OPID_GATHER) tnk_store(dtype, here, old);
      else if (mode == TN_SCATTER_SET) tnk_store(dtype, there, v);
      else if (dtype == TN_F32) tnk_store(dtype, there, tnk_f32(tnk_eval_f32(code[mode], old.f, v.f, 0)));
      else tnk_store(dtype, there, tnk_i64(tnk_eval_i64(code[mode], old.i, v.i, 0)));
    }
  return TN_OK;
}
static tn_status gather(call c) { return indexed(c, 0, 2, &c.op->type[2]); }
static tn_status scatter(call c) {
  copy_operand(c, 0, 3);
  return indexed(c, 3, 2, &c.op->type[2]);
}

/* ---- rows: best first, fallback last ------------------------------------------------------------------------------------ */
static const struct { const char* name; uint32_t op; uint64_t types; tn_status (*run)(call); } rows[NULL_KERNELS] = {
    {"null.pointwise", TN_OPID_POINTWISE, TNK_TYPES, pointwise},
    {"null.reduce", TN_OPID_REDUCE, TNK_TYPES, reduce},
    {"null.matmul", TN_OPID_MATMUL, TNK_TYPES & ~(UINT64_C(1) << TN_BOOL), matmul},
    {"null.copy", TN_OPID_COPY, TNK_TYPES, copy},
    {"null.gather", TN_OPID_GATHER, TNK_TYPES, gather},
    {"null.scatter", TN_OPID_SCATTER, TNK_TYPES, scatter}};

/* Refines the constraints: what cannot be said as data. A no names its reason; silence would be a lie. */
static tn_status supports(tn_instance* self, const tn_device_ref* ref, const tn_op* op, tn_support* out, tn_diag* diag) {
  return tnk_supports(self->kernel, op, diag);
}
static tn_status launch(const tn_kernel_plan* head, const tn_launch* l) {
  const call c = {&((const tnk_plan*)(const void*)head)->op, l};
  return rows[head->kernel].run(c);
}
static tn_status prepare(tn_instance* self, const tn_device_ref* ref, const tn_op* op, const tn_kernel_plan** out, tn_diag* diag) {
  uint32_t row = 0;
  while (rows[row].op != op->op_id) ++row;
  tnk_plan* plan = tnk_plan_make(self->host, op, self, row, launch);
  if (!plan) return tnk_fail(diag, TN_E_OOM, 900, "prepare: no memory for a plan\nwhy: the host gave none\ntry: free memory");
  null_count(self, 1);
  *out = &plan->head;
  return TN_OK;
}
static void retire(tn_instance* self, const tn_device_ref* ref, const tn_kernel_plan* plan) {
  null_count(self, -1);
  tnk_plan_free(plan);
}

void null_fill_kernels(tn_instance* self) {
  for (int i = 0; i < NULL_KERNELS; ++i) {
    tn_kernel_info* k = &self->kernel[i];
    const int index = rows[i].op == TN_OPID_GATHER || rows[i].op == TN_OPID_SCATTER;
    const tn_constraint needs[] = {{0, TN_NEED_DEVICE_KIND, self->kind, 0, 0, 0},
                                   {TN_ANY_OPERAND, TN_NEED_LAYOUT, 0, 1 << TN_LAYOUT_STRIDED, 0, 0},
                                   {TN_ANY_OPERAND, TN_NEED_DTYPE, 0, rows[i].types, 0, 0},
                                   {1, TN_NEED_DTYPE, 0, UINT64_C(1) << TN_I64, 0, 0}};
    memcpy(self->constraint[i], needs, sizeof needs);
    k->size = sizeof *k;
    k->flags = TN_KERNEL_DETERMINISTIC;
    k->name = rows[i].name, k->op_id = rows[i].op, k->op_min = k->op_max = 1;
    k->tier = TN_TIER_REFERENCE;
    k->cons = self->constraint[i], k->n_cons = index ? 4 : 3;
    k->supports = supports, k->prepare = prepare, k->retire = retire;
  }
}
