/* tenon/kit.h - for the first version of a backend in plain C: strided iteration, scalar programs, plans, timelines.
 *
 * Serves element types f32, i64 and bool, one element at a time, on memory the CPU can address: correct, short, slow. A
 * backend replaces it kernel by kernel. Nothing here is part of the contract between plugin and core: it is compiled into
 * the plugin, and may change from version to version. Names begin with tnk_. Link the C library's math (-lm).
 *
 *   tnk_space s = tnk_space_of(&op->type[1]);            // the index space of the output
 *   int x = tnk_space_add(&s, &op->type[0]);             // an operand in it, broadcast as NumPy does
 *   for (tnk_walk w = tnk_begin(&s); w.left > 0; tnk_next(&w))
 *     tnk_store(TN_F32, data + w.at[x], value);          // w.at: bytes from the operand's first element
 *
 * Owns: nothing but plans (tnk_plan), which lie in one block of host->alloc. Threads: all functions are re-entrant.    */
#ifndef TENON_KIT_H
#define TENON_KIT_H
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <tenon/ops.h>
#include <tenon/plugin.h>
#ifdef __cplusplus
extern "C" {
#endif

/* ---- answers ------------------------------------------------------------------------------------------------------- */
/* Fills diag (may be NULL) with a text "what\nwhy: values\ntry: one fix", cut to fit, and returns `status`.
 * id: a number of yours, shown as TN-DEVICE-<id>; 900 to 979 are for vendors, 980 to 999 the kit's. */
#if defined(__GNUC__)
__attribute__((format(printf, 4, 5)))
#endif
static inline tn_status tnk_fail(tn_diag* diag, tn_status status, uint32_t id, const char* format, ...) {
  if (diag) {
    va_list args;
    memset(diag, 0, sizeof *diag);
    diag->size = (uint32_t)sizeof *diag;
    diag->status = status;
    diag->id = 7u << 16 | id;
    va_start(args, format);
    vsnprintf(diag->msg, sizeof diag->msg, format, args);
    va_end(args);
    diag->len = (uint32_t)strlen(diag->msg);
  }
  return status;
}

#if defined(__aarch64__)
#define TNK_TARGET "aarch64-linux-gnu"
#else
#define TNK_TARGET "x86_64-linux-gnu"
#endif

/* The kind of a vendor's device: FNV-1a-32 of the plugin's id, bit 31 set. */
static inline uint32_t tnk_kind(const char* id) {
  uint32_t hash = 2166136261u;
  for (; *id; ++id) hash = (hash ^ (unsigned char)*id) * 16777619u;
  return hash | 0x80000000u;
}

/* ---- attributes and types ------------------------------------------------------------------------------------------- */
static inline const tn_attr* tnk_attr(const tn_op* op, uint32_t key) { /* NULL when absent */
  for (int i = 0; i < op->n_attr; ++i)
    if (op->attr[i].key == key) return &op->attr[i];
  return NULL;
}
static inline int64_t tnk_attr_i64(const tn_op* op, uint32_t key, int64_t fallback) {
  const tn_attr* a = tnk_attr(op, key);
  return a ? a->v.i : fallback;
}
static inline const tn_program* tnk_attr_program(const tn_op* op, uint32_t key) {
  const tn_attr* a = tnk_attr(op, key);
  return a ? (const tn_program*)a->v.p : NULL;
}
#define TNK_TYPES (UINT64_C(1) << TN_F32 | UINT64_C(1) << TN_I64 | UINT64_C(1) << TN_BOOL)
static inline int64_t tnk_bytes(uint32_t dtype) { return dtype == TN_I64 ? 8 : dtype == TN_F32 ? 4 : 1; }

typedef union tnk_value { int64_t i; float f; } tnk_value; /* bool: i is 0 or 1 */
static inline tnk_value tnk_i64(int64_t i) {
  tnk_value v;
  v.i = i;
  return v;
}
static inline tnk_value tnk_f32(float f) {
  tnk_value v;
  v.i = 0;
  v.f = f;
  return v;
}
static inline tnk_value tnk_load(uint32_t dtype, const void* p) {
  tnk_value v = tnk_i64(0);
  if (dtype == TN_BOOL) v.i = *(const unsigned char*)p != 0;
  else memcpy(&v, p, (size_t)tnk_bytes(dtype));
  return v;
}
static inline void tnk_store(uint32_t dtype, void* p, tnk_value v) {
  if (dtype == TN_BOOL) *(unsigned char*)p = v.i != 0;
  else memcpy(p, &v, (size_t)tnk_bytes(dtype));
}

/* ---- strided iteration ------------------------------------------------------------------------------------------------ */
#define TNK_OPERANDS 24
typedef struct tnk_space { int32_t rank, n; int64_t dim[TN_MAX_RANK], step[TNK_OPERANDS][TN_MAX_RANK]; } tnk_space; /* steps in bytes */
typedef struct tnk_walk { const tnk_space* space; int64_t left, number, index[TN_MAX_RANK], at[TNK_OPERANDS]; } tnk_walk;

/* A space of the dims of `like`, without operands. */
static inline tnk_space tnk_space_of(const tn_type* like) {
  tnk_space s;
  memset(&s, 0, sizeof s);
  s.rank = like->rank;
  memcpy(s.dim, like->dim, sizeof s.dim);
  return s;
}
/* Adds an operand, last axes aligned, axes of size 1 repeated. Returns its number in tnk_walk.at. */
static inline int tnk_space_add(tnk_space* s, const tn_type* t) {
  for (int i = 0; i < t->rank; ++i) {
    const int axis = s->rank - t->rank + i;
    s->step[s->n][axis] = t->dim[i] == 1 ? 0 : t->stride[i] * tnk_bytes(t->dtype);
  }
  return s->n++;
}
/* The dims that operands of a reduction have together. */
static inline tn_type tnk_broadcast(const tn_type* types, int n) {
  tn_type out;
  memset(&out, 0, sizeof out);
  for (int k = 0; k < n; ++k)
    if (types[k].rank > out.rank) out.rank = types[k].rank;
  for (int i = 0; i < out.rank; ++i) out.dim[i] = 1;
  for (int k = 0; k < n; ++k)
    for (int i = 0; i < types[k].rank; ++i)
      if (types[k].dim[i] != 1) out.dim[out.rank - types[k].rank + i] = types[k].dim[i];
  return out;
}
/* The axes of `mask` alone, or with `inverse` all others; the operands are the same. */
static inline tnk_space tnk_space_axes(const tnk_space* s, uint32_t mask, int inverse) {
  tnk_space out;
  memset(&out, 0, sizeof out);
  out.n = s->n;
  for (int i = 0; i < s->rank; ++i) {
    if ((int)(mask >> i & 1) == inverse) continue;
    out.dim[out.rank] = s->dim[i];
    for (int k = 0; k < s->n; ++k) out.step[k][out.rank] = s->step[k][i];
    ++out.rank;
  }
  return out;
}
static inline tnk_walk tnk_begin(const tnk_space* s) {
  tnk_walk w;
  memset(&w, 0, sizeof w);
  w.space = s;
  w.left = 1;
  for (int i = 0; i < s->rank; ++i) w.left *= s->dim[i];
  return w;
}
/* The next element in row-major order; `number` counts them. */
static inline void tnk_next(tnk_walk* w) {
  const tnk_space* s = w->space;
  --w->left;
  ++w->number;
  for (int i = s->rank - 1; i >= 0; --i) {
    const int wraps = ++w->index[i] == s->dim[i];
    for (int k = 0; k < s->n; ++k) w->at[k] += wraps ? -s->step[k][i] * (s->dim[i] - 1) : s->step[k][i];
    if (!wraps) return;
    w->index[i] = 0;
  }
}

/* ---- scalar programs ------------------------------------------------------------------------------------------------------ */
static inline float tnk_pick_f32(float a, float b, int larger) { /* a NaN wins, -0 is below +0 */
  if (a != a || b != b) return a != a ? a : b;
  if (a == b) return (signbit(a) != 0) == (larger != 0) ? b : a;
  return (a > b) == (larger != 0) ? a : b;
}
static inline int64_t tnk_wrap(uint64_t bits) {
  int64_t i;
  memcpy(&i, &bits, sizeof i);
  return i;
}
static inline int64_t tnk_pow_i64(int64_t a, int64_t b) {
  uint64_t base = (uint64_t)a, result = 1;
  if (b < 0) return a == 1 ? 1 : a == -1 ? (b % 2 ? -1 : 1) : 0;
  for (uint64_t e = (uint64_t)b; e; e >>= 1, base *= base)
    if (e & 1) result *= base;
  return tnk_wrap(result);
}
static inline int64_t tnk_f32_to_i64(float f) { /* toward 0, saturating, NaN is 0 */
  if (f != f) return 0;
  if (f >= 9223372036854775808.0f) return INT64_MAX;
  return f < -9223372036854775808.0f ? INT64_MIN : (int64_t)f;
}

/* f32 is computed in double where C has no f32 function of the wanted precision, and rounded once. */
static inline float tnk_eval_f32(uint32_t op, float a, float b, float c) {
  switch (op) {
    case TN_OP_NEG: return -a;               case TN_OP_ABS: return fabsf(a);      case TN_OP_SIGN: return a != a || a == 0 ? a : a > 0 ? 1.0f : -1.0f;
    case TN_OP_FLOOR: return floorf(a);      case TN_OP_CEIL: return ceilf(a);     case TN_OP_TRUNC: return truncf(a);
    case TN_OP_RINT: return rintf(a);        case TN_OP_SQRT: return sqrtf(a);     case TN_OP_RSQRT: return (float)(1.0 / sqrt((double)a));
    case TN_OP_EXP: return (float)exp((double)a);     case TN_OP_EXPM1: return (float)expm1((double)a);
    case TN_OP_LOG: return (float)log((double)a);     case TN_OP_LOG1P: return (float)log1p((double)a);
    case TN_OP_SIN: return (float)sin((double)a);     case TN_OP_COS: return (float)cos((double)a);
    case TN_OP_ATAN: return (float)atan((double)a);   case TN_OP_TANH: return (float)tanh((double)a);
    case TN_OP_ERF: return (float)erf((double)a);     case TN_OP_POW: return (float)pow((double)a, (double)b);
    case TN_OP_ATAN2: return (float)atan2((double)a, (double)b);
    case TN_OP_ADD: return a + b;            case TN_OP_SUB: return a - b;         case TN_OP_MUL: return a * b;
    case TN_OP_DIV: return a / b;            case TN_OP_REM: return fmodf(a, b);   case TN_OP_FMA: return fmaf(a, b, c);
    case TN_OP_MIN: return tnk_pick_f32(a, b, 0);     default: return tnk_pick_f32(a, b, 1); /* MAX */
  }
}
static inline int64_t tnk_eval_i64(uint32_t op, int64_t a, int64_t b, int64_t c) {
  const uint64_t x = (uint64_t)a, y = (uint64_t)b;
  switch (op) {
    case TN_OP_NEG: return tnk_wrap(0 - x);  case TN_OP_ABS: return a < 0 ? tnk_wrap(0 - x) : a;  case TN_OP_SIGN: return (a > 0) - (a < 0);
    case TN_OP_ADD: return tnk_wrap(x + y);  case TN_OP_SUB: return tnk_wrap(x - y);  case TN_OP_MUL: return tnk_wrap(x * y);
    case TN_OP_DIV: return b == 0 ? 0 : b == -1 ? tnk_wrap(0 - x) : a / b;
    case TN_OP_REM: return b == 0 || b == -1 ? 0 : a % b;
    case TN_OP_POW: return tnk_pow_i64(a, b);
    case TN_OP_MIN: return a < b ? a : b;    case TN_OP_MAX: return a > b ? a : b;    case TN_OP_FMA: return tnk_wrap(x * y + (uint64_t)c);
    case TN_OP_AND: return tnk_wrap(x & y);  case TN_OP_OR: return tnk_wrap(x | y);   case TN_OP_XOR: return tnk_wrap(x ^ y);
    case TN_OP_NOT: return tnk_wrap(~x);     case TN_OP_SHL: return y > 63 ? 0 : tnk_wrap(x << y);
    case TN_OP_SHR: return y > 63 ? (a < 0 ? -1 : 0) : a < 0 ? ~tnk_wrap(~x >> y) : tnk_wrap(x >> y);
    default: return a; /* FLOOR, CEIL, TRUNC, RINT */
  }
}
static inline int tnk_compare(uint32_t op, int less, int equal) {
  return op == TN_OP_LT ? less : op == TN_OP_LE ? less || equal : op == TN_OP_EQ ? equal : !equal;
}
static inline tnk_value tnk_cast(tnk_value v, uint32_t from, uint32_t to) {
  if (from == TN_F32) return to == TN_F32 ? v : tnk_i64(to == TN_BOOL ? v.f != 0 : tnk_f32_to_i64(v.f));
  return to == TN_F32 ? tnk_f32((float)v.i) : to == TN_BOOL ? tnk_i64(v.i != 0) : v;
}

/* The number of the first instruction that the kit does not compute, or -1. Ask it in supports(). */
static inline int tnk_program_fault(const tn_program* p) {
  const uint64_t one = 1, floats = one << TN_OP_SQRT | one << TN_OP_RSQRT | one << TN_OP_EXP | one << TN_OP_EXPM1 | one << TN_OP_LOG | one << TN_OP_LOG1P |
      one << TN_OP_SIN | one << TN_OP_COS | one << TN_OP_ATAN | one << TN_OP_TANH | one << TN_OP_ERF | one << TN_OP_ATAN2;
  const uint64_t bits = one << TN_OP_AND | one << TN_OP_OR | one << TN_OP_XOR | one << TN_OP_NOT, shifts = one << TN_OP_SHL | one << TN_OP_SHR;
  for (int i = 0; p && i < p->n_inst; ++i) {
    const tn_inst n = p->inst[i];
    const uint32_t from = n.op == TN_OP_INPUT || n.op == TN_OP_CONST || n.op == TN_OP_INDEX ? n.type : p->inst[n.a].type;
    if (n.type >= 64 || !(TNK_TYPES >> n.type & 1) || n.op >= 64 || n.op == TN_OP_PHILOX || (n.op == TN_OP_BITCAST && from != n.type)) return i;
    if ((floats >> n.op & 1 && n.type != TN_F32) || ((bits | shifts) >> n.op & 1 && n.type == TN_F32) || (shifts >> n.op & 1 && n.type != TN_I64)) return i;
    if (n.op == TN_OP_INDEX && n.type != TN_I64) return i;
    if (n.op >= TN_OP_NEG && n.op <= TN_OP_FMA && n.type == TN_BOOL) return i;
  }
  return -1;
}

/* Evaluates for one element. in: values of the inputs in the types of their INPUT instructions; out: n_out values.
 * push: the launch's slots; w: the walk over the output's space, for INDEX (may be NULL when the program has none). */
static inline void tnk_eval(const tn_program* p, const tnk_value* in, const void* push, const tnk_walk* w, tnk_value* out) {
  tnk_value v[TN_PROGRAM_MAX_INST];
  for (int i = 0; i < p->n_inst; ++i) {
    const tn_inst n = p->inst[i];
    if (n.op == TN_OP_INPUT) v[i] = in[n.a];
    else if (n.op == TN_OP_CONST) v[i] = tnk_load(n.type, (const char*)push + 8 * n.a);
    else if (n.op == TN_OP_INDEX) v[i] = tnk_i64(n.a == TN_INDEX_FLAT ? w->number : w->index[n.a]);
    else {
      const uint32_t from = p->inst[n.a].type;
      const tnk_value a = v[n.a], b = v[n.b], c = v[n.c];
      if (n.op == TN_OP_CAST) v[i] = tnk_cast(a, from, n.type);
      else if (n.op == TN_OP_BITCAST) v[i] = a;
      else if (n.op == TN_OP_SELECT) v[i] = a.i ? b : c;
      else if (n.op == TN_OP_ISNAN) v[i] = tnk_i64(from == TN_F32 && a.f != a.f);
      else if (n.op >= TN_OP_LT && n.op <= TN_OP_NE)
        v[i] = tnk_i64(from == TN_F32 ? tnk_compare(n.op, a.f < b.f, a.f == b.f) : tnk_compare(n.op, a.i < b.i, a.i == b.i));
      else if (n.type == TN_F32) v[i] = tnk_f32(tnk_eval_f32(n.op, a.f, b.f, c.f));
      else v[i] = tnk_i64(n.type == TN_BOOL ? tnk_eval_i64(n.op, a.i, b.i, c.i) & 1 : tnk_eval_i64(n.op, a.i, b.i, c.i));
    }
  }
  for (int k = 0; k < p->n_out; ++k) out[k] = v[p->out[k]];
}

/* ---- reductions ------------------------------------------------------------------------------------------------------------ */
/* Accumulator of one monoid: sum and product of f32 in double, all else in `best`; `where` of ARGMAX and ARGMIN. */
typedef struct tnk_reduction { double wide; tnk_value best; int64_t where, n, monoid, type; } tnk_reduction;
static inline tnk_reduction tnk_reduction_of(int64_t monoid, uint32_t type) {
  tnk_reduction r;
  memset(&r, 0, sizeof r);
  r.monoid = monoid;
  r.type = type;
  r.wide = monoid == TN_MONOID_PROD;
  return r;
}
static inline void tnk_accumulate(tnk_reduction* r, tnk_value v) {
  const int first = r->n++ == 0, is_f32 = r->type == TN_F32, larger = r->monoid == TN_MONOID_MAX || r->monoid == TN_MONOID_ARGMAX;
  static const uint8_t code[] = {0, TN_OP_ADD, TN_OP_MUL, TN_OP_MAX, TN_OP_MIN, TN_OP_AND, TN_OP_OR};
  if (r->monoid == TN_MONOID_ARGMAX || r->monoid == TN_MONOID_ARGMIN) { /* the first of equals; the first NaN before all */
    const int nan = is_f32 && v.f != v.f && !(r->best.f != r->best.f);
    const int better = is_f32 ? (larger ? v.f > r->best.f : v.f < r->best.f) : larger ? v.i > r->best.i : v.i < r->best.i;
    if (!first && !nan && !better) return;
    r->best = v;
    r->where = r->n - 1;
  } else if (is_f32 && r->monoid == TN_MONOID_SUM) r->wide += (double)v.f;
  else if (is_f32 && r->monoid == TN_MONOID_PROD) r->wide *= (double)v.f;
  else if (first) r->best = v;
  else if (is_f32) r->best.f = tnk_pick_f32(r->best.f, v.f, larger);
  else r->best.i = tnk_eval_i64(code[r->monoid], r->best.i, v.i, 0);
}
/* The result; the neutral element when nothing was accumulated. */
static inline tnk_value tnk_reduced(const tnk_reduction* r) {
  const int is_f32 = r->type == TN_F32, is_bool = r->type == TN_BOOL;
  if (r->monoid == TN_MONOID_ARGMAX || r->monoid == TN_MONOID_ARGMIN) return tnk_i64(r->where);
  if (is_f32 && (r->monoid == TN_MONOID_SUM || r->monoid == TN_MONOID_PROD)) return tnk_f32((float)r->wide);
  if (r->n) return r->best;
  switch (r->monoid) {
    case TN_MONOID_MAX: return is_f32 ? tnk_f32(-(float)INFINITY) : tnk_i64(is_bool ? 0 : INT64_MIN);
    case TN_MONOID_MIN: return is_f32 ? tnk_f32((float)INFINITY) : tnk_i64(is_bool ? 1 : INT64_MAX);
    case TN_MONOID_AND: return tnk_i64(is_bool ? 1 : -1);
    default: return tnk_i64(r->monoid == TN_MONOID_PROD);
  }
}
/* The type that a reduction accumulates: of what `pre` gives, else of the operand. */
static inline uint32_t tnk_reduced_type(const tn_op* op) {
  const tn_program* pre = tnk_attr_program(op, TN_KEY_PRE);
  return pre ? pre->inst[pre->out[0]].type : op->type[0].dtype;
}

/* For supports(): TN_OK, or what of a primitive the kit cannot do though dtype constraints let it through. */
static inline tn_status tnk_check(const tn_op* op, tn_diag* diag) {
  static const uint32_t keys[] = {TN_KEY_PROGRAM, TN_KEY_PRE, TN_KEY_POST};
  for (int k = 0; k < 3; ++k) {
    const tn_program* p = tnk_attr_program(op, keys[k]);
    const int fault = tnk_program_fault(p);
    if (fault >= 0)
      return tnk_fail(diag, TN_E_UNSUPPORTED, 980, "a program's instruction is not known\nwhy: number %d has opcode %u, type %u\ntry: f32, i64 or bool", fault,
                      (unsigned)p->inst[fault].op, (unsigned)p->inst[fault].type);
  }
  if (op->op_id == TN_OPID_REDUCE) {
    const int64_t monoid = tnk_attr_i64(op, TN_KEY_MONOID, TN_MONOID_SUM);
    const uint32_t type = tnk_reduced_type(op);
    const int logic = monoid == TN_MONOID_AND || monoid == TN_MONOID_OR;
    if ((type == TN_F32 && logic) || (type == TN_BOOL && !logic))
      return tnk_fail(diag, TN_E_UNSUPPORTED, 981, "this monoid is not for this type\nwhy: monoid %d, type %u\ntry: another type", (int)monoid, (unsigned)type);
  }
  if (op->op_id == TN_OPID_SCATTER && op->type[0].dtype == TN_BOOL && tnk_attr_i64(op, TN_KEY_MODE, 0) != TN_SCATTER_SET)
    return tnk_fail(diag, TN_E_UNSUPPORTED, 982, "bool can only be set\nwhy: the mode is not 0\ntry: mode 0");
  return TN_OK;
}

/* What the data of a row refuse: conditions on types, ranks and layouts of operands. */
static inline tn_status tnk_within(const tn_kernel_info* row, const tn_op* op, tn_diag* diag) {
  for (uint32_t i = 0; i < row->n_cons; ++i)
    for (uint32_t k = 0; k < (uint32_t)op->n_in + op->n_out; ++k) {
      const tn_constraint* c = &row->cons[i];
      const tn_type* t = &op->type[k];
      if (t->dtype == 0 || (c->operand != TN_ANY_OPERAND && c->operand != k)) continue;
      if ((c->kind == TN_NEED_DTYPE && !(c->mask >> t->dtype & 1)) || (c->kind == TN_NEED_LAYOUT && !(t->layout < 64 && c->mask >> t->layout & 1)) ||
          (c->kind == TN_NEED_RANK && (t->rank < c->lo || t->rank > c->hi)))
        return tnk_fail(diag, TN_E_UNSUPPORTED, 983, "a condition of the row does not hold\nwhy: condition %d, operand %d of type %u\ntry: another kernel", (int)i, (int)k,
                        (unsigned)t->dtype);
    }
  return TN_OK;
}

/* For supports(): what the conditions of the op's row refuse (it must refuse that too), and what tnk_check refuses. `rows` has
 * a row of that op. */
static inline tn_status tnk_supports(const tn_kernel_info* rows, const tn_op* op, tn_diag* diag) {
  while (rows->op_id != op->op_id) ++rows;
  const tn_status data = tnk_within(rows, op, diag);
  return data ? data : tnk_check(op, diag);
}

/* ---- a timeline for a device whose work is done when its call returns: -std=gnu11, or -D_POSIX_C_SOURCE=200809L ------------------- */
#if defined(CLOCK_MONOTONIC)
typedef struct tnk_line { uint64_t value; pthread_mutex_t mutex; pthread_cond_t grown; } tnk_line;
static inline void tnk_line_open(tnk_line* line, uint64_t initial) {
  pthread_condattr_t attr;
  line->value = initial;
  pthread_mutex_init(&line->mutex, NULL);
  pthread_condattr_init(&attr);
  pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
  pthread_cond_init(&line->grown, &attr);
  pthread_condattr_destroy(&attr);
}
static inline void tnk_line_close(tnk_line* line) {
  pthread_cond_destroy(&line->grown);
  pthread_mutex_destroy(&line->mutex);
}
static inline uint64_t tnk_line_value(tnk_line* line) {
  pthread_mutex_lock(&line->mutex);
  const uint64_t value = line->value;
  pthread_mutex_unlock(&line->mutex);
  return value;
}
static inline tn_status tnk_line_signal(tnk_line* line, uint64_t value, tn_diag* diag) {
  pthread_mutex_lock(&line->mutex);
  const uint64_t had = line->value;
  if (value > had) line->value = value;
  pthread_cond_broadcast(&line->grown);
  pthread_mutex_unlock(&line->mutex);
  if (value >= had) return TN_OK;
  return tnk_fail(diag, TN_E_ARG, 983, "signal: a timeline only grows\nwhy: it stands at %llu, asked for %llu\ntry: a larger value", (unsigned long long)had, (unsigned long long)value);
}
static inline tn_status tnk_line_wait(tnk_line* line, uint64_t value, uint64_t timeout_ns, tn_diag* diag) {
  const uint64_t wait_ns = timeout_ns < UINT64_C(1) << 60 ? timeout_ns : UINT64_C(1) << 60;
  struct timespec end;
  int late = 0;
  clock_gettime(CLOCK_MONOTONIC, &end);
  const uint64_t sum = wait_ns + (uint64_t)end.tv_nsec;
  end.tv_sec += (time_t)(sum / 1000000000u);
  end.tv_nsec = (long)(sum % 1000000000u);
  pthread_mutex_lock(&line->mutex);
  while (line->value < value && !late) late = pthread_cond_timedwait(&line->grown, &line->mutex, &end) != 0;
  const uint64_t stands = line->value;
  pthread_mutex_unlock(&line->mutex);
  if (stands >= value) return TN_OK;
  return tnk_fail(diag, TN_E_TIMEOUT, 984, "wait: not reached in time\nwhy: the timeline stands at %llu, waiting for %llu\ntry: a longer timeout", (unsigned long long)stands, (unsigned long long)value);
}

#endif

/* ---- plans ------------------------------------------------------------------------------------------------------------- */
/* What prepare keeps: a deep copy of the op, since the core only lends it. */
typedef struct tnk_plan { tn_kernel_plan head; const tn_host* host; tn_op op; } tnk_plan;

static inline uint64_t tnk_payload(const tn_attr* a) {
  switch (a->type) {
    case TN_ATTR_I64: case TN_ATTR_F64: return 0;
    case TN_ATTR_PROGRAM: return sizeof(tn_program) + ((const tn_program*)a->v.p)->n_inst * sizeof(tn_inst);
    case TN_ATTR_STRING: return a->len;
    case TN_ATTR_TYPE: return a->len * sizeof(tn_type);
    default: return a->len * 8;
  }
}
/* NULL when out of memory. `row`: number of the kernel in the plugin's list. */
static inline tnk_plan* tnk_plan_make(const tn_host* host, const tn_op* op, void* self, uint32_t row, tn_status (*launch)(const tn_kernel_plan*, const tn_launch*)) {
  const uint64_t n_views = (uint64_t)op->n_in + op->n_out, types = n_views * sizeof(tn_type), attrs = op->n_attr * sizeof(tn_attr);
  uint64_t bytes = sizeof(tnk_plan) + types + attrs;
  for (int i = 0; i < op->n_attr; ++i) bytes += (tnk_payload(&op->attr[i]) + 7) / 8 * 8;
  tnk_plan* plan = (tnk_plan*)host->alloc(host->ctx, bytes, 64);
  if (!plan) return NULL;
  memset(plan, 0, sizeof *plan);
  plan->head.launch = launch;
  plan->head.self = self;
  plan->head.n_views = (uint32_t)n_views;
  plan->head.push_bytes = op->push_bytes;
  plan->head.kernel = row;
  plan->host = host;
  plan->op = *op;
  char* next = (char*)(plan + 1);
  plan->op.next = NULL;
  plan->op.type = (const tn_type*)(const void*)next;
  memcpy(next, op->type, types);
  next += types;
  tn_attr* copy = (tn_attr*)(void*)next;
  plan->op.attr = copy;
  if (attrs) memcpy(copy, op->attr, attrs);
  next += attrs;
  for (int i = 0; i < op->n_attr; ++i) {
    const uint64_t size = tnk_payload(&op->attr[i]);
    if (!size) continue;
    copy[i].v.p = next;
    if (op->attr[i].type == TN_ATTR_PROGRAM) {
      tn_program* p = (tn_program*)(void*)next;
      *p = *(const tn_program*)op->attr[i].v.p;
      memcpy(p + 1, p->inst, p->n_inst * sizeof(tn_inst));
      p->inst = (const tn_inst*)(const void*)(p + 1);
    } else memcpy(next, op->attr[i].v.p, size);
    next += (size + 7) / 8 * 8;
  }
  return plan;
}
static inline void tnk_plan_free(const tn_kernel_plan* head) {
  const tnk_plan* plan = (const tnk_plan*)(const void*)head;
  plan->host->free(plan->host->ctx, (void*)(uintptr_t)plan);
}

#ifdef __cplusplus
}
#endif
#endif
