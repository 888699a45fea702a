// cpu.matmul.micro_f32 for small matrices and cpu.matmul.f32 for the others.
#include "backends/cpu/constraints.h"
#include "backends/cpu/matmul/matmul.h"

#include <algorithm>

#include "backends/cpu/matmul/tile.h"

namespace tenon::cpu {

void MatmulShape::offsets(int64_t i, int64_t* a, int64_t* b, int64_t* c) const {
  *a = *b = *c = 0;
  for (int x = rank - 1; x >= 0; --x) {
    if (dim[x] == 0) return;  // no product at all, but plans of it are made
    const int64_t at = i % dim[x];
    i /= dim[x];
    *a += at * a_step[x], *b += at * b_step[x], *c += at * c_step[x];
  }
}

MatmulShape matmul_shape(const tn_op& op) {
  const tn_type& a = op.type[0];
  const tn_type& b = op.type[1];
  const tn_type& c = op.type[op.n_in];
  MatmulShape s{};
  s.m = c.dim[c.rank - 2], s.n = c.dim[c.rank - 1], s.k = a.dim[a.rank - 1];
  s.a_row = a.stride[a.rank - 2], s.a_col = a.stride[a.rank - 1];
  s.b_row = b.stride[b.rank - 2], s.b_col = b.stride[b.rank - 1];
  s.c_row = c.stride[c.rank - 2];
  s.rank = int(c.rank) - 2;
  s.batch = 1;
  for (int i = 0; i < s.rank; ++i) {
    const auto step = [&](const tn_type& t) {
      const int j = i - (int(c.rank) - int(t.rank));
      return j < 0 || t.dim[j] == 1 ? int64_t{0} : t.stride[j];
    };
    s.dim[i] = c.dim[i];
    s.a_step[i] = step(a), s.b_step[i] = step(b), s.c_step[i] = step(c);
    s.batch *= s.dim[i];
  }
  return s;
}

bool Epilogue::build(const Instance& in, const tn_op& op) {
  const tn_program* post = attr_program(op, TN_KEY_POST);
  present = post != nullptr;
  if (!present) return true;
  tn_type types[kMaxOperands];
  uint8_t dtypes[TN_PROGRAM_MAX_IN];
  uint32_t uniform = 0;
  const tn_type& out = op.type[op.n_in];
  types[0] = out;
  dtypes[0] = out.dtype;
  for (uint32_t k = 2; k < op.n_in; ++k) types[k - 1] = op.type[k], dtypes[k - 1] = op.type[k].dtype;
  const int count = op.n_in - 1;
  types[count] = out;
  space.build(out, types, count + 1, count);
  for (int k = 0; k < count; ++k)
    if (space.operand[k].walk == Walk::Uniform) uniform |= 1u << k;
  return program.compile(in.isa, *post, dtypes, uniform);
}

void Epilogue::run(const Instance& in, const tn_launch* l) const {
  const auto n_in = int(program.n_in);
  char* c = static_cast<char*>(l->views[n_in + 1].host);
  const double ns = double(space.n) * (program.ns_per_element + 0.3);
  parallel_for(in, (space.n + program.block - 1) / program.block, ns, [&](int64_t b, int64_t e) {
    alignas(64) char scratch[kScratchBytes];
    Runner r(program, l->push, scratch);
    r.input(0, c);
    for (int k = 1; k < n_in; ++k) r.input(uint32_t(k), l->views[k + 1].host);
    r.start(program.block);
    const int64_t end = std::min(e * program.block, space.n);
    for (int64_t pos = b * program.block; pos < end;) {
      int64_t n = std::min(program.block, end - pos);
      const bool by_row = space.row() >= 64;
      if (by_row) n = std::min(n, space.row() - pos % space.row());
      const bool whole = n % kGranule == 0;
      for (int k = 0; k < n_in; ++k) {
        if (program.uniform >> k & 1) continue;
        const Operand& op = space.operand[k];
        const auto* base = static_cast<const char*>(k ? l->views[k + 1].host : c);
        if (whole && (op.walk == Walk::Flat || (by_row && op.stride[space.rank - 1] == 1))) r.input(uint32_t(k), base + space.offset(k, pos));
        else r.input(uint32_t(k), r.stage_in(uint32_t(k))), gather_block(space, k, base, pos, n, r.stage_in(uint32_t(k)));
      }
      r.output(0) = r.stage_out(0);
      r.run((n + kGranule - 1) / kGranule * kGranule);
      scatter_block(space, n_in, c, pos, n, r.stage_out(0));
      pos += n;
    }
  });
}

tn_status check_post(tn_instance* self, const tn_op& op, uint32_t accumulator, tn_support* out, tn_diag* diag) {
  const tn_program* post = attr_program(op, TN_KEY_POST);
  if (!post) return op.n_in == 2 ? TN_OK : decline(out, diag, 2, "cpu.matmul: further inputs without a program\nwhy: %u inputs\ntry: rebuild the op", op.n_in);
  uint8_t dtypes[TN_PROGRAM_MAX_IN] = {uint8_t(accumulator)};
  for (uint32_t k = 2; k < op.n_in && k <= TN_PROGRAM_MAX_IN; ++k) dtypes[k - 1] = op.type[k].dtype;
  const bool fits = post->n_in == op.n_in - 1 && post->n_out == 1 && op.type[op.n_in].dtype == accumulator && Program::find_unsupported(self_of(self).isa, *post, dtypes) < 0;
  bool index = false;
  for (int i = 0; i < post->n_inst; ++i) index = index || post->inst[i].op == TN_OP_INDEX;
  return fits && !index ? TN_OK : decline(out, diag, 3, "cpu.matmul: the program after the product has no code here\nwhy: an opcode, or an output type other than the accumulator's\ntry: a separate pointwise op");
}

namespace {

struct MatmulPlan : Plan {
  MatmulShape shape;
  Epilogue post;
  const MatmulCode* code = nullptr;
  bool small = false;
};

Product product_of(const MatmulShape& s, const tn_launch* l, uint32_t n_in, int64_t batch) {
  int64_t a = 0, b = 0, c = 0;
  if (s.rank) s.offsets(batch, &a, &b, &c);
  return {static_cast<const float*>(l->views[0].host) + a, s.a_row, s.a_col, static_cast<const float*>(l->views[1].host) + b, s.b_row, s.b_col,
          static_cast<float*>(l->views[n_in].host) + c, s.c_row, s.m, s.n, s.k};
}

tn_status launch_small(const tn_kernel_plan* base, const tn_launch* l) {
  const auto& p = plan_of<MatmulPlan>(base);
  const uint32_t n_in = p.n_views - 1;
  if (p.shape.batch == 1) p.code->small(product_of(p.shape, l, n_in, 0));
  else {
    const double ns = double(p.shape.batch) * double(p.shape.m * p.shape.n * p.shape.k) / 30;
    parallel_for(*p.instance, p.shape.batch, ns, [&](int64_t b, int64_t e) {
      for (int64_t i = b; i < e; ++i) p.code->small(product_of(p.shape, l, n_in, i));
    });
  }
  if (p.post.present) p.post.run(*p.instance, l);
  return TN_OK;
}

// Cuts the output into one block per thread, along the longer side.
tn_status launch_large(const tn_kernel_plan* base, const tn_launch* l) {
  const auto& p = plan_of<MatmulPlan>(base);
  const MatmulShape& s = p.shape;
  const uint32_t n_in = p.n_views - 1;
  const Instance& in = *p.instance;
  auto* scratch = static_cast<char*>(l->views[p.n_views].host);
  const double ns = double(s.batch) * double(s.m) * double(s.n) * double(s.k) / 70;
  const bool split = ns > 60000 && in.threads > 1;
  const int64_t parts = split && s.batch < in.threads ? in.threads : 1;
  const bool by_columns = s.n >= s.m;
  const int64_t grain = by_columns ? 64 : 6, side = by_columns ? s.n : s.m;
  const int64_t per_part = ((side + parts - 1) / parts + grain - 1) / grain * grain;
  struct Ctx { const MatmulPlan& p; const tn_launch* l; uint32_t n_in; int64_t parts, per_part, side; bool by_columns; char* scratch; };
  Ctx ctx{p, l, n_in, parts, per_part, side, by_columns, scratch};
  const auto run = [](void* arg, int64_t b, int64_t e, uint32_t worker) {
    const Ctx& c = *static_cast<Ctx*>(arg);
    for (int64_t i = b; i < e; ++i) {
      Product q = product_of(c.p.shape, c.l, c.n_in, i / c.parts);
      const int64_t first = i % c.parts * c.per_part, count = std::min(c.per_part, c.side - first);
      if (count <= 0) continue;
      if (c.by_columns) q.b += first * q.b_col, q.c += first, q.n = count;
      else q.a += first * q.a_row, q.c += first * q.c_row, q.m = count;
      c.p.code->large(q, reinterpret_cast<float*>(c.scratch + worker * kPackedBytes));
    }
  };
  const int64_t tasks = s.batch * parts;
  if (split) in.host->parallel(in.host->ctx, tasks, 1, run, &ctx);
  else run(&ctx, 0, tasks, 0);
  if (p.post.present) p.post.run(in, l);
  return TN_OK;
}

template <bool kSmall>
tn_status supports(tn_instance* self, const tn_device_ref*, const tn_op* op, tn_support* out, tn_diag* diag) {
  const tn_type& c = op->type[op->n_in];
  if (op->type[0].rank < 2 || op->type[1].rank < 2 || c.rank < 2)
    return decline(out, diag, 1, "cpu.matmul: rank\nwhy: operands have ranks %u and %u\ntry: matrices", op->type[0].rank, op->type[1].rank);
  const MatmulShape s = matmul_shape(*op);
  if (c.dtype != TN_F32 || (s.n > 1 && c.stride[c.rank - 1] != 1))
    return decline(out, diag, 4, "cpu.matmul: output\nwhy: type %u, last stride %lld\ntry: a dense f32 output", c.dtype, static_cast<long long>(c.stride[c.rank - 1]));
  if (kSmall && (s.n > kSmallSide || s.k > kSmallSide || s.m > 4 * kSmallSide))
    return decline(out, diag, 5, "cpu.matmul.micro_f32: too large\nwhy: m %lld, n %lld, k %lld pass 256, 64, 64\ntry: cpu.matmul.f32", static_cast<long long>(s.m), static_cast<long long>(s.n), static_cast<long long>(s.k));
  if (tn_status st = check_post(self, *op, TN_F32, out, diag); st != TN_OK) return st;
  const double flops = 2.0 * double(s.batch) * double(s.m) * double(s.n) * double(s.k);
  const bool vector = self_of(self).isa != Isa::Baseline;
  const double rate = !vector ? 6 : kSmall ? 80 : s.m < 4 ? 20 : 130;  // GFLOP/s of one thread
  const double packing = kSmall ? (s.b_col == 1 ? 0 : double(s.n * s.k)) : double(s.batch) * double(s.k) * double(s.n) * 0.15;
  const double ns = flops / rate + packing;
  out->est_ns = (kSmall ? 20 : 200) + (ns > 60000 && !kSmall ? ns / self_of(self).threads : ns);
  out->confidence = 0.6f;
  out->flops = uint64_t(flops);
  out->workspace_bytes = kSmall ? 0 : uint64_t(kPackedBytes) * self_of(self).threads;
  return TN_OK;
}

template <bool kSmall>
tn_status prepare(tn_instance* self, const tn_device_ref*, const tn_op* op, const tn_kernel_plan** out, tn_diag* diag) {
  return make_plan<MatmulPlan>(self, op, out, diag, kSmall ? launch_small : launch_large, [&](MatmulPlan& p) -> tn_status {
    p.shape = matmul_shape(*op);
    p.code = &matmul_code(p.instance->isa);
    if (!kSmall) p.workspace_bytes = uint64_t(kPackedBytes) * p.instance->threads;
    if (!p.post.build(*p.instance, *op))
      return fail(diag, TN_E_UNSUPPORTED, error_id(6, 60), "cpu.matmul: no code for the program\nwhy: supports() would have refused it\ntry: ask supports() before prepare()");
    if (p.shape.k == 0) p.shape.a_row = p.shape.a_col = 0;
    return TN_OK;
  });
}

constexpr tn_constraint kCons[] = {kOnCpu, dtype_in(0, bit(TN_F32)), dtype_in(1, bit(TN_F32)), dtype_in(TN_ANY_OPERAND, kAllMask), strided(TN_ANY_OPERAND)};

}  // namespace

void add_matmul_rows(Rows& rows) {
  for (const bool small : {true, false}) {
    tn_kernel_info k = kernel_row(small ? "cpu.matmul.micro_f32" : "cpu.matmul.f32", TN_OPID_MATMUL, TN_KERNEL_DETERMINISTIC, kCons, std::size(kCons));
    k.supports = small ? within<kCons, supports<true>> : within<kCons, supports<false>>;
    k.prepare = small ? prepare<true> : prepare<false>;
    k.retire = retire_plan<MatmulPlan>;
    rows.push_back(k);
  }
}

}  // namespace tenon::cpu
