// The pointwise primitive: any scalar program over any strides.
//
// The output is walked in flat blocks. An operand is used in place where a block of it is contiguous, spread once where
// it is a scalar, and gathered into a buffer otherwise. Large results bypass the caches.
#include "backends/cpu/constraints.h"
#include "backends/cpu/pointwise/program.h"
#include "backends/cpu/pointwise/space.h"

#include <algorithm>

namespace tenon::cpu {
namespace {

constexpr int64_t kStreamBytes = 8 << 20;  // a result this large leaves the caches before it is read again
constexpr int64_t kSmall = 8192;           // elements of one-step plans that run as one block

struct PointwisePlan : Plan {
  Program program;
  Space space;             // of a static op
  std::vector<tn_type> types;
  bool dynamic = false, line = false;  // line: rank at most 1, so only n depends on symbols
  bool keep_order = false;
  int64_t line_dim = 1;
  BlockFn single = nullptr;  // whole plan is one step over dense operands
  uint8_t single_operand[4]{};
  int single_operands = 0;
};

// One launch as the workers see it.
struct Job {
  const PointwisePlan& plan;
  const Space& space;
  const char* base[kMaxOperands];
  const void* push;
  bool stage_out[TN_PROGRAM_MAX_OUT];  // an input is read after this output is written, and shares its memory
  bool stream[TN_PROGRAM_MAX_OUT];
  bool far;  // operands do not fit the caches: fetch the next block while this one is worked on
};

// The index along an axis (or the flat one) for n positions from pos on.
void fill_index(const Space& s, uint16_t axis, uint32_t dtype, int64_t pos, int64_t n, char* to) {
  int64_t below = 1, size = s.n;
  if (axis != TN_INDEX_FLAT) {
    for (int i = axis + 1; i < s.rank; ++i) below *= s.dim[i];
    size = s.dim[axis];
  }
  for (int64_t i = 0; i < n; ++i) {
    const int64_t v = axis == TN_INDEX_FLAT ? pos + i : (pos + i) / below % size;
    if (element_size(dtype) == 4) reinterpret_cast<int32_t*>(to)[i] = int32_t(v);
    else reinterpret_cast<int64_t*>(to)[i] = v;
  }
}

class Worker {
 public:
  Worker(const Job& job, char* scratch) : job_(job), p_(job.plan.program), r_(p_, job.push, scratch) {}

  void run(int64_t begin, int64_t end) {
    const Space& s = job_.space;
    for (uint32_t k = 0; k < p_.n_in; ++k) r_.input(k, job_.base[k]);
    for (uint32_t o = 0; o < p_.n_out; ++o) r_.output(o) = r_.stage_out(o);
    r_.start(end - begin);
    const bool by_row = s.row() >= p_.block / 2;  // then blocks end with rows, else they span them
    for (int64_t pos = begin; pos < end;) {
      int64_t n = std::min(p_.block, end - pos);
      if (by_row) n = std::min(n, s.row() - pos % s.row());
      block(pos, n, by_row);
      pos += n;
    }
  }

 private:
  void block(int64_t pos, int64_t n, bool one_row) {
    const Space& s = job_.space;
    const bool whole = n % kGranule == 0;
    for (uint32_t k = 0; k < p_.n_in; ++k) {
      const Operand& op = s.operand[k];
      if (p_.uniform >> k & 1) continue;
      const bool dense = op.walk == Walk::Flat || (one_row && op.walk == Walk::Strided && op.stride[s.rank - 1] == 1);
      if (dense && whole) r_.input(k, job_.base[k] + s.offset(int(k), pos));
      if (dense && job_.far) r_.expect(job_.base[k] + s.offset(int(k), pos) + n * op.size, n * op.size);
      if (dense && whole) continue;
      r_.input(k, r_.stage_in(k));
      gather_block(s, int(k), job_.base[k], pos, n, r_.stage_in(k));
    }
    bool in_place[TN_PROGRAM_MAX_OUT];
    for (uint32_t o = 0; o < p_.n_out; ++o) {
      const int k = int(p_.n_in + o);
      in_place[o] = whole && !job_.stage_out[o] && !job_.stream[o] && s.operand[k].walk == Walk::Flat;
      char* const to = const_cast<char*>(job_.base[k]) + s.offset(k, pos);
      r_.output(o) = in_place[o] ? to : r_.stage_out(o);
      if (in_place[o] && job_.far) r_.expect(to + n * s.operand[k].size, n * s.operand[k].size);
    }
    const int64_t padded = (n + kGranule - 1) / kGranule * kGranule;
    for (const Program::Index& i : p_.indices) fill_index(s, i.axis, i.dtype, pos, n, r_.pointer(i.pointer));
    r_.run(padded);
    for (uint32_t o = 0; o < p_.n_out; ++o)
      if (!in_place[o]) write_back(o, pos, n);
  }
  void write_back(uint32_t o, int64_t pos, int64_t n) {
    const int k = int(p_.n_in + o);
    char* base = const_cast<char*>(job_.base[k]);
    const int64_t bytes = n * job_.space.operand[k].size;
    char* to = base + job_.space.offset(k, pos);
    if (job_.stream[o] && bytes % 64 == 0 && reinterpret_cast<uintptr_t>(to) % 64 == 0)
      stream_copy(job_.plan.instance->isa, to, r_.stage_out(o), bytes);
    else scatter_block(job_.space, k, base, pos, n, r_.stage_out(o));
  }

  const Job& job_;
  const Program& p_;
  Runner r_;
};

tn_status run_job(const PointwisePlan& plan, const Space& space, const tn_launch* l) {
  const Program& p = plan.program;
  Job job{plan, space, {}, l->push, {}, {}, false};
  double bytes = 0;
  for (uint32_t k = 0; k < p.n_in + p.n_out; ++k) {
    job.base[k] = static_cast<const char*>(l->views[k].host);
    if (space.operand[k].walk != Walk::Uniform) bytes += double(space.n) * space.operand[k].size;
  }
  job.far = bytes > 2 << 20;
  bool streams = false;
  for (uint32_t o = 0; o < p.n_out; ++o) {
    const uint32_t k = p.n_in + o;
    bool aliased = false;
    for (uint32_t i = 0; i < p.n_in; ++i)
      if (job.base[i] == job.base[k]) aliased = true, job.stage_out[o] |= (p.late_inputs[o] >> i & 1) != 0;
    job.stream[o] = !aliased && space.operand[k].walk == Walk::Flat && space.n * space.operand[k].size >= kStreamBytes;
    streams = streams || job.stream[o];
  }
  const double ns = double(space.n) * p.ns_per_element + bytes / 12;
  const int64_t blocks = (space.n + p.block - 1) / p.block;
  parallel_for(*plan.instance, blocks, ns, [&](int64_t b, int64_t e) {
    alignas(64) char scratch[kScratchBytes];
    Worker(job, scratch).run(b * p.block, std::min(e * p.block, space.n));
    if (streams) stream_fence();
  });
  return TN_OK;
}

// The last n < kGranule elements of a one-step plan, through padded copies.
void run_tail(const PointwisePlan& plan, const tn_launch* l, int64_t pos, int64_t n) {
  alignas(64) char operand[4][kGranule * 8], result[kGranule * 8];
  for (int i = 0; i < plan.single_operands; ++i) {
    const uint8_t k = plan.single_operand[i];
    const int64_t size = plan.space.operand[k].size;
    std::memcpy(operand[i], static_cast<const char*>(l->views[k].host) + pos * size, size_t(n * size));
  }
  plan.single(result, operand[0], operand[1], operand[2], operand[3], kGranule);
  const uint32_t out = plan.program.n_in;
  const int64_t size = plan.space.operand[out].size;
  std::memcpy(static_cast<char*>(l->views[out].host) + pos * size, result, size_t(n * size));
}

tn_status launch(const tn_kernel_plan* base, const tn_launch* l) {
  const auto& plan = plan_of<PointwisePlan>(base);
  const int64_t n = plan.line ? value_of(plan.line_dim, l->dyn) : plan.space.n;
  if (plan.single && n <= kSmall) {
    const tn_view* v = l->views;
    const uint8_t* k = plan.single_operand;
    const int64_t whole = n / kGranule * kGranule;
    if (whole) plan.single(v[plan.program.n_in].host, v[k[0]].host, v[k[1]].host, v[k[2]].host, v[k[3]].host, whole);
    if (whole != n) run_tail(plan, l, whole, n - whole);
    return TN_OK;
  }
  if (!plan.dynamic) return plan.space.n == 0 ? TN_OK : run_job(plan, plan.space, l);
  Space space;
  if (plan.line) {
    space = plan.space;
    space.n = space.dim[0] = n;
    return n == 0 ? TN_OK : run_job(plan, space, l);
  }
  tn_type types[kMaxOperands];
  const int count = int(plan.types.size());
  for (int k = 0; k < count; ++k) types[k] = plan.types[size_t(k)], resolve(&types[k], l->dyn);
  const int lead = int(plan.program.n_in);
  space.build(types[lead], types, count, plan.keep_order ? -1 : lead);
  return space.n == 0 ? TN_OK : run_job(plan, space, l);
}

bool uses_index(const tn_program& p) {
  for (int i = 0; i < p.n_inst; ++i)
    if (p.inst[i].op == TN_OP_INDEX) return true;
  return false;
}
// Inputs with one value for every element: all strides 0 (a symbolic size is never 1).
uint32_t uniform_inputs(const tn_op& op) {
  uint32_t mask = 0;
  const tn_type& shape = op.type[op.n_in];
  bool single = true;
  for (int i = 0; i < shape.rank; ++i) single = single && shape.dim[i] == 1;
  for (uint32_t k = 0; k < op.n_in && !single; ++k) {
    bool same = true;
    for (int i = 0; i < op.type[k].rank; ++i) same = same && (op.type[k].stride[i] == 0 || op.type[k].dim[i] == 1);
    if (same) mask |= 1u << k;
  }
  return mask;
}
// Whether every operand can be read in rows: unit or zero stride on its last axis, dense outputs.
bool dense_rows(const tn_op& op) {
  for (uint32_t k = 0; k < uint32_t{op.n_in} + op.n_out; ++k) {
    const tn_type& t = op.type[k];
    int last = int(t.rank) - 1;
    while (last >= 0 && t.dim[last] == 1) --last;
    if (last >= 0 && t.stride[last] != 1 && (k >= op.n_in || t.stride[last] != 0)) return false;
  }
  return true;
}

void estimate(tn_instance* self, const tn_op& op, const tn_program& p, double ns_per_gather, tn_support* out) {
  if (has_symbols(op)) return;
  double bytes = 0, work = 0;
  const double n = double(element_count(op.type[op.n_in]));
  for (uint32_t k = 0; k < uint32_t{op.n_in} + op.n_out; ++k) bytes += double(element_count(op.type[k])) * double(element_size(op.type[k].dtype));
  for (int i = 0; i < p.n_inst; ++i) {
    const uint32_t c = p.inst[i].op;
    const bool hard = c >= TN_OP_EXP && c <= TN_OP_ERF;
    work += c <= TN_OP_INDEX ? 0 : c == TN_OP_POW || c == TN_OP_REM || c == TN_OP_ATAN2 ? 8 : c == TN_OP_PHILOX ? 3 : hard ? 0.35 : 0.025;
  }
  const double rate = n * work + (bytes > 1 << 20 ? bytes / 20 : bytes / 60) + n * ns_per_gather;
  out->est_ns = 10 + (rate > 60000 ? rate / self_of(self).threads : rate);
  out->confidence = 0.5f;
  out->bytes = uint64_t(bytes);
}

template <bool kDense>
tn_status supports(tn_instance* self, const tn_device_ref*, const tn_op* op, tn_support* out, tn_diag* diag) {
  const tn_program* p = attr_program(*op, TN_KEY_PROGRAM);
  if (!p) return decline(out, diag, 1, "cpu.pointwise: no program\nwhy: attribute program is absent\ntry: pass one");
  if (p->n_in > TN_PROGRAM_MAX_IN || p->n_in != op->n_in || p->n_out != op->n_out)
    return decline(out, diag, 2, "cpu.pointwise: operands do not match the program\nwhy: op has %u inputs, program %u\ntry: rebuild it", op->n_in, p->n_in);
  if (op->math_flags & TN_MATH_SUBNORMAL)
    return decline(out, diag, 5, "cpu.pointwise: subnormal results were asked for\nwhy: vector functions may flush them\ntry: drop TN_MATH_SUBNORMAL");
  uint8_t dtypes[TN_PROGRAM_MAX_IN];
  for (uint32_t k = 0; k < p->n_in; ++k) dtypes[k] = op->type[k].dtype;
  const int bad = Program::find_unsupported(self_of(self).isa, *p, dtypes);
  if (bad >= 0)
    return decline(out, diag, 3, "cpu.pointwise: no code for an instruction\nwhy: instruction %d has opcode %u, type %u\ntry: another kernel", bad, p->inst[bad].op, p->inst[bad].type);
  if (kDense && !dense_rows(*op))
    return decline(out, diag, 4, "cpu.pointwise.dense: an operand has no dense rows\nwhy: its last stride is neither 0 nor 1\ntry: cpu.pointwise.strided");
  estimate(self, *op, *p, kDense ? 0 : 0.8, out);
  return TN_OK;
}

void choose_single(PointwisePlan& plan) {
  const Program& p = plan.program;
  if (p.steps.size() != 1 || p.steps[0].chain >= 0 || !p.once.empty() || !p.constants.empty() || !p.indices.empty() || !p.copies.empty() || p.uniform || p.n_out != 1) return;
  if (plan.dynamic && !plan.line) return;
  for (uint32_t k = 0; k < p.n_in + p.n_out; ++k)
    if (plan.space.operand[k].walk != Walk::Flat) return;
  const Step& s = p.steps[0];
  plan.single = s.fn;
  const uint8_t k[4] = {s.a, s.b, s.c, s.d};
  std::copy_n(k, 4, plan.single_operand);
  while (plan.single_operands < 4 && k[plan.single_operands] < p.n_in) ++plan.single_operands;
}

tn_status prepare(tn_instance* self, const tn_device_ref*, const tn_op* op, const tn_kernel_plan** out, tn_diag* diag) {
  return make_plan<PointwisePlan>(self, op, out, diag, launch, [&](PointwisePlan& plan) -> tn_status {
    const tn_program& source = *attr_program(*op, TN_KEY_PROGRAM);
    uint8_t dtypes[TN_PROGRAM_MAX_IN];
    for (uint32_t k = 0; k < source.n_in; ++k) dtypes[k] = op->type[k].dtype;
    if (!plan.program.compile(plan.instance->isa, source, dtypes, uniform_inputs(*op)))
      return fail(diag, TN_E_UNSUPPORTED, error_id(6, 60), "cpu.pointwise: no code for the program\nwhy: supports() would have refused it\ntry: ask supports() before prepare()");
    const int count = op->n_in + op->n_out, lead = op->n_in;
    plan.types.assign(op->type, op->type + count);
    plan.keep_order = uses_index(source);
    plan.dynamic = has_symbols(*op);
    std::vector<tn_type> types = plan.types;
    if (plan.dynamic) {
      plan.flags |= TN_KERNEL_PLAN_DYNAMIC;
      plan.line = plan.types[size_t(lead)].rank == 1;
      plan.line_dim = plan.types[size_t(lead)].dim[0];
      for (tn_type& t : types) {
        if (t.rank > 1 || TN_IS_SYM(t.stride[0])) plan.line = false;
        for (int i = 0; i < t.rank; ++i)
          if (TN_IS_SYM(t.dim[i])) t.dim[i] = 2;  // any size; a line's n is put in at launch
      }
      if (!plan.line) return TN_OK;
    }
    plan.space.build(types[size_t(lead)], types.data(), count, plan.keep_order ? -1 : lead);
    choose_single(plan);
    return TN_OK;
  });
}

constexpr tn_constraint kCons[] = {kOnCpu, dtype_in(TN_ANY_OPERAND, kAllMask), strided(TN_ANY_OPERAND)};

}  // namespace

void add_pointwise_rows(Rows& rows) {
  for (const bool dense : {true, false}) {
    tn_kernel_info k = kernel_row(dense ? "cpu.pointwise.dense" : "cpu.pointwise.strided", TN_OPID_POINTWISE,
                                  TN_KERNEL_DETERMINISTIC | TN_KERNEL_INPLACE | TN_KERNEL_DYNAMIC, kCons, std::size(kCons));
    k.inplace_mask = 0xFFFF;
    k.supports = dense ? within<kCons, supports<true>> : within<kCons, supports<false>>;
    k.prepare = prepare;
    k.retire = retire_plan<PointwisePlan>;
    rows.push_back(k);
  }
}

}  // namespace tenon::cpu
