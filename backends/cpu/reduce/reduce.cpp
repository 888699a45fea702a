// The reduce primitive: sum, prod, max, min, and, or, argmax, argmin with programs before and after.
//
// Axes are ordered by the first input's strides and merged. Where the fastest axis is reduced, each output folds rows; where
// it is kept (or the reduced part is short), a tile of outputs folds rows of values side by side. Long reductions are
// cut into chunks whose number depends on the sizes alone, so that results do not depend on the thread count.
#include "backends/cpu/constraints.h"
#include "backends/cpu/pointwise/program.h"
#include "backends/cpu/pointwise/space.h"
#include "backends/cpu/reduce/fold.h"

#include <algorithm>
#include <memory>

namespace tenon::cpu {
namespace {

constexpr int64_t kTileWidth = 256;       // outputs folded side by side
constexpr int64_t kChunk = 128 * 1024;    // reduced elements of one chunk
constexpr int64_t kShortRow = 48;         // below this, folding side by side is faster even with gathers

// One launch's shape: reduced axes as a Space (operands = inputs), kept axes with their strides.
struct Layout {
  Space reduced;
  int n_kept = 0;
  int64_t kept_dim[TN_MAX_RANK], kept_stride[TN_PROGRAM_MAX_IN][TN_MAX_RANK], out_stride[TN_PROGRAM_MAX_OUT][TN_MAX_RANK];
  int64_t outputs = 1;
  bool by_tiles = false;
};

struct ReducePlan : Plan {
  std::vector<tn_type> types;
  uint32_t n_in = 1, n_out = 1, axes = 0;  // axes: bit per reduced axis
  uint32_t monoid = 0, value_dtype = 0;
  bool has_pre = false, has_post = false, dynamic = false;
  Program pre, post;
  const Fold* fold = nullptr;
  const IndexFold* index_fold = nullptr;
  Layout layout;
};

struct Axis { int64_t dim, key; bool reduced; int64_t in[TN_PROGRAM_MAX_IN], out[TN_PROGRAM_MAX_OUT]; };

// The common shape of all inputs.
tn_type broadcast_shape(const tn_type* types, uint32_t n) {
  tn_type t{};
  for (uint32_t k = 0; k < n; ++k) t.rank = std::max(t.rank, types[k].rank);
  for (int i = 0; i < t.rank; ++i) {
    t.dim[i] = 1;
    for (uint32_t k = 0; k < n; ++k) {
      const int j = i - (int(t.rank) - int(types[k].rank));
      if (j >= 0 && types[k].dim[j] != 1) t.dim[i] = types[k].dim[j];
    }
  }
  return t;
}

bool mergeable(const Axis& outer, const Axis& inner, const ReducePlan& p) {
  if (outer.reduced != inner.reduced) return false;
  for (uint32_t k = 0; k < p.n_in; ++k)
    if (outer.in[k] != inner.dim * inner.in[k]) return false;
  for (uint32_t o = 0; o < p.n_out && !inner.reduced; ++o)
    if (outer.out[o] != inner.dim * inner.out[o]) return false;
  return true;
}

void build_layout(const ReducePlan& p, const tn_type* types, Layout* l) {
  const tn_type shape = broadcast_shape(types, p.n_in);
  Axis axes[TN_MAX_RANK];
  int n = 0, kept_before = 0;
  const bool keepdims = types[p.n_in].rank == shape.rank;
  l->outputs = 1;
  l->reduced.n = 1;
  for (int i = 0; i < shape.rank; ++i) {
    Axis a{};
    a.dim = shape.dim[i];
    a.reduced = p.axes >> i & 1;
    (a.reduced ? l->reduced.n : l->outputs) *= a.dim;
    for (uint32_t k = 0; k < p.n_in; ++k) {
      const int j = i - (int(shape.rank) - int(types[k].rank));
      a.in[k] = j < 0 || types[k].dim[j] == 1 ? 0 : types[k].stride[j];
    }
    const int out_axis = keepdims ? i : kept_before;
    for (uint32_t o = 0; o < p.n_out && !a.reduced; ++o) a.out[o] = types[p.n_in + o].stride[out_axis];
    kept_before += !a.reduced;
    a.key = a.in[0] < 0 ? -a.in[0] : a.in[0];
    if (a.dim != 1) axes[n++] = a;
  }
  std::stable_sort(axes, axes + n, [](const Axis& x, const Axis& y) { return x.key > y.key; });
  int kept = 0;
  for (int i = 1; i < n; ++i) {
    if (mergeable(axes[kept], axes[i], p)) axes[i].dim *= axes[kept].dim, axes[kept] = axes[i];
    else axes[++kept] = axes[i];
  }
  n = n ? kept + 1 : 0;
  Space& r = l->reduced;
  r.rank = 0;
  r.n_operands = int(p.n_in);
  l->n_kept = 0;
  for (int i = 0; i < n; ++i) {
    if (axes[i].reduced) {
      r.dim[r.rank] = axes[i].dim;
      for (uint32_t k = 0; k < p.n_in; ++k) r.operand[k].stride[r.rank] = axes[i].in[k];
      ++r.rank;
    } else {
      l->kept_dim[l->n_kept] = axes[i].dim;
      for (uint32_t k = 0; k < p.n_in; ++k) l->kept_stride[k][l->n_kept] = axes[i].in[k];
      for (uint32_t o = 0; o < p.n_out; ++o) l->out_stride[o][l->n_kept] = axes[i].out[o];
      ++l->n_kept;
    }
  }
  if (r.rank == 0) {
    r.rank = 1, r.dim[0] = 1;
    for (uint32_t k = 0; k < p.n_in; ++k) r.operand[k].stride[0] = 1;
  }
  for (uint32_t k = 0; k < p.n_in; ++k) {
    Operand& op = r.operand[k];
    op.size = int32_t(element_size(types[k].dtype));
    int64_t expect = 1;
    bool flat = true;
    for (int i = r.rank - 1; i >= 0; --i) flat = flat && op.stride[i] == expect, expect *= r.dim[i];
    op.walk = flat ? Walk::Flat : Walk::Strided;
  }
  const bool inner_kept = n > 0 && !axes[n - 1].reduced;
  l->by_tiles = p.fold && l->n_kept > 0 && (inner_kept || (r.n < kShortRow && l->kept_dim[l->n_kept - 1] >= 8));
}

struct Job {
  const ReducePlan& plan;
  const Layout& layout;
  const char* in[TN_PROGRAM_MAX_IN];
  char* out[TN_PROGRAM_MAX_OUT];
  const void* push;
};

// Byte offsets of kept position `pos` (over the first `rank` kept axes).
int64_t kept_offset(const Layout& l, const int64_t* stride, int rank, int64_t pos) {
  int64_t at = 0;
  for (int i = rank - 1; i >= 0; --i) at += pos % l.kept_dim[i] * stride[i], pos /= l.kept_dim[i];
  return at;
}

// Everything a thread needs beside the job.
class Worker {
 public:
  Worker(const Job& job, char* scratch, char* post_scratch)
      : job_(job), p_(job.plan), l_(job.layout), pre_(p_.pre, job.push, scratch), post_(p_.post, job.push, post_scratch) {
    if (p_.has_pre) {
      for (uint32_t k = 0; k < p_.n_in; ++k) pre_.input(k, job.in[k]);
      for (uint32_t o = 0; o < p_.pre.n_out; ++o) pre_.output(o) = pre_.stage_out(o);
      pre_.start(p_.pre.block);
    }
    if (p_.has_post) post_.start(p_.post.block);
  }

  // Folds reduced positions [begin, end) of output `pos` into acc.
  void fold_output(int64_t pos, int64_t begin, int64_t end, void* acc, int64_t* index) {
    int64_t base[TN_PROGRAM_MAX_IN];
    for (uint32_t k = 0; k < p_.n_in; ++k) base[k] = kept_offset(l_, l_.kept_stride[k], l_.n_kept, pos) * l_.reduced.operand[k].size;
    const bool plain = !p_.has_pre && l_.reduced.operand[0].walk == Walk::Flat;
    if (plain) return take(acc, index, job_.in[0] + base[0] + begin * l_.reduced.operand[0].size, begin, end - begin);
    const int64_t block = p_.has_pre ? p_.pre.block : 512;
    const bool by_row = l_.reduced.row() >= block / 2;
    for (int64_t at = begin; at < end;) {
      int64_t n = std::min(block, end - at);
      if (by_row) n = std::min(n, l_.reduced.row() - at % l_.reduced.row());
      take(acc, index, values(base, l_.reduced, at, n, by_row), at, n);
      at += n;
    }
  }

  // Outputs [begin, end) one after the other, stored together in runs along the last kept axis.
  void fold_outputs(int64_t begin, int64_t end) {
    alignas(64) char acc[kTileWidth * 8];
    const int64_t width = element_size(p_.fold->wide), last = l_.n_kept ? l_.kept_dim[l_.n_kept - 1] : 1;
    for (int64_t pos = begin; pos < end;) {
      const int64_t n = std::min({kTileWidth, end - pos, last - pos % last});
      p_.fold->init(acc, n);
      for (int64_t i = 0; i < n; ++i) fold_output(pos + i, 0, l_.reduced.n, acc + i * width, nullptr);
      store(pos / last, pos % last, n, acc);
      pos += n;
    }
  }

  // A tile of outputs [first, first + width) along the last kept axis, below outer kept position `outer`.
  void fold_tile(int64_t outer, int64_t first, int64_t width, int64_t begin, int64_t end, void* acc) {
    const int last = l_.n_kept - 1;
    Space row;  // one row of the tile
    row.rank = 1, row.n = row.dim[0] = width, row.n_operands = int(p_.n_in);
    int64_t base[TN_PROGRAM_MAX_IN];
    for (uint32_t k = 0; k < p_.n_in; ++k) {
      const Operand& r = l_.reduced.operand[k];
      row.operand[k].size = r.size;
      row.operand[k].stride[0] = l_.kept_stride[k][last];
      row.operand[k].walk = row.operand[k].stride[0] == 1 || width == 1 ? Walk::Flat : Walk::Strided;
      base[k] = (kept_offset(l_, l_.kept_stride[k], last, outer) + first * l_.kept_stride[k][last]) * r.size;
    }
    const int64_t size = element_size(p_.value_dtype), inner = l_.reduced.row();
    const bool direct = !p_.has_pre && row.operand[0].walk == Walk::Flat;
    for (int64_t at = begin; at < end;) {
      const int64_t count = std::min({kFoldRows, end - at, inner - at % inner});
      const int64_t step0 = l_.reduced.operand[0].stride[l_.reduced.rank - 1] * l_.reduced.operand[0].size;
      if (direct) p_.fold->tile(acc, job_.in[0] + base[0] + position(0, at), step0, count, width);
      else {
        for (int64_t i = 0; i < count; ++i) {
          int64_t here[TN_PROGRAM_MAX_IN];
          for (uint32_t k = 0; k < p_.n_in; ++k) here[k] = base[k] + position(int(k), at + i);
          std::memcpy(rows_ + i * kTileWidth * size, values(here, row, 0, width, true), size_t(width * size));
        }
        p_.fold->tile(acc, rows_, kTileWidth * size, count, width);
      }
      at += count;
    }
  }

  // Stores `n` finished accumulators of outputs that lie `stride` apart from flat kept position on.
  void store(int64_t outer, int64_t first, int64_t n, const void* acc) {
    const int last = l_.n_kept - 1;
    alignas(64) char value[kTileWidth * 8];
    p_.fold->finish(value, acc, n);
    const char* result[TN_PROGRAM_MAX_OUT] = {value};
    if (p_.has_post) {
      post_.input(0, value);
      for (uint32_t o = 0; o < p_.n_out; ++o) post_.output(o) = post_.stage_out(o), result[o] = post_.stage_out(o);
      post_.run((n + kGranule - 1) / kGranule * kGranule);
    }
    for (uint32_t o = 0; o < p_.n_out; ++o) {
      const int64_t size = element_size(p_.types[p_.n_in + o].dtype);
      const int64_t stride = last >= 0 ? l_.out_stride[o][last] : 1;
      char* to = job_.out[o] + ((last >= 0 ? kept_offset(l_, l_.out_stride[o], last, outer) : 0) + first * stride) * size;
      if (stride == 1) std::memcpy(to, result[o], size_t(n * size));
      else for (int64_t i = 0; i < n; ++i) std::memcpy(to + i * stride * size, result[o] + i * size, size_t(size));
    }
  }
  void store_index(int64_t pos, int64_t index) {
    std::memcpy(job_.out[0] + kept_offset(l_, l_.out_stride[0], l_.n_kept, pos) * 8, &index, 8);
  }

 private:
  int64_t position(int k, int64_t at) const {
    const Operand& op = l_.reduced.operand[k];
    int64_t offset = 0;
    for (int i = l_.reduced.rank - 1; i > 0; --i) offset += at % l_.reduced.dim[i] * op.stride[i], at /= l_.reduced.dim[i];
    return (offset + at * op.stride[0]) * op.size;
  }
  void take(void* acc, int64_t* index, const void* x, int64_t at, int64_t n) {
    if (p_.index_fold) p_.index_fold->row(acc, index, x, at, n);
    else p_.fold->row(acc, x, n);
  }
  // n values from position `at` of a space, after the program before the fold.
  const char* values(const int64_t* base, const Space& s, int64_t at, int64_t n, bool one_row) {
    if (!p_.has_pre) {
      const Operand& op = s.operand[0];
      const char* from = job_.in[0] + base[0];
      if (op.walk == Walk::Flat) return from + at * op.size;
      gather_block(s, 0, from, at, n, gathered_);
      return gathered_;
    }
    for (uint32_t k = 0; k < p_.n_in; ++k) {
      if (p_.pre.uniform >> k & 1) continue;
      const Operand& op = s.operand[k];
      const char* from = job_.in[k] + base[k];
      const bool dense = op.walk == Walk::Flat || (one_row && op.stride[s.rank - 1] == 1);
      if (dense && n % kGranule == 0) pre_.input(k, from + (op.walk == Walk::Flat ? at * op.size : s.offset(int(k), at)));
      else pre_.input(k, pre_.stage_in(k)), gather_block(s, int(k), from, at, n, pre_.stage_in(k));
    }
    pre_.run((n + kGranule - 1) / kGranule * kGranule);
    return pre_.output(0);
  }

  const Job& job_;
  const ReducePlan& p_;
  const Layout& l_;
  Runner pre_, post_;
  alignas(64) char gathered_[512 * 8];
  alignas(64) char rows_[kFoldRows * kTileWidth * 8];
};

// A unit of work is a tile of outputs, or one output; `chunks` parts of the reduced range each.
struct Units { int64_t outer, tiles, width, chunks; };
Units split(const Layout& l) {
  Units u{l.outputs, 1, 1, 1};
  if (l.by_tiles) {
    const int64_t inner = l.kept_dim[l.n_kept - 1];
    u.tiles = (inner + kTileWidth - 1) / kTileWidth;
    u.width = std::min(inner, kTileWidth);
    u.outer = l.outputs / std::max<int64_t>(inner, 1);
  }
  if (u.outer * u.tiles < 64) u.chunks = std::max<int64_t>(1, l.reduced.n * u.width / kChunk);
  u.chunks = std::min<int64_t>(u.chunks, std::max<int64_t>(1, l.reduced.n));
  return u;
}

tn_status run_job(const Job& job, double ns, tn_diag* diag) {
  const Layout& l = job.layout;
  const ReducePlan& p = job.plan;
  const Units u = split(l);
  const int64_t bytes = u.width * 16;  // an accumulator and an index at most
  std::unique_ptr<char[]> parts;
  if (u.chunks > 1) {
    parts.reset(new (std::nothrow) char[size_t(u.outer * u.tiles * u.chunks * bytes)]);
    if (!parts) return fail(diag, TN_E_OOM, error_id(5, 1), "cpu.reduce: no memory for partial results\nwhy: %lld bytes\ntry: free memory", static_cast<long long>(u.outer * u.tiles * u.chunks * bytes));
  }
  const int64_t inner = l.by_tiles ? l.kept_dim[l.n_kept - 1] : 1;
  const auto place = [&](int64_t unit, int64_t* outer, int64_t* first, int64_t* width) {
    *outer = unit / u.tiles, *first = unit % u.tiles * kTileWidth, *width = l.by_tiles ? std::min(kTileWidth, inner - *first) : 1;
  };
  const auto finish = [&](Worker& w, int64_t unit, int64_t outer, int64_t first, int64_t width, const void* acc, int64_t index) {
    if (p.index_fold) return w.store_index(unit, index);
    if (l.by_tiles) return w.store(outer, first, width, acc);
    const int64_t last_dim = l.n_kept ? l.kept_dim[l.n_kept - 1] : 1;
    w.store(unit / last_dim, unit % last_dim, 1, acc);
  };
  parallel_for(*p.instance, u.outer * u.tiles * u.chunks, ns, [&](int64_t b, int64_t e) {
    alignas(64) char pre[kScratchBytes], post[kScratchBytes];
    alignas(64) char acc[kTileWidth * 8];
    Worker w(job, pre, post);
    if (p.fold && !l.by_tiles && u.chunks == 1) return w.fold_outputs(b, e);
    for (int64_t i = b; i < e; ++i) {
      const int64_t unit = i / u.chunks, c = i % u.chunks;
      const int64_t begin = l.reduced.n * c / u.chunks, end = l.reduced.n * (c + 1) / u.chunks;
      int64_t outer, first, width, index = -1;
      place(unit, &outer, &first, &width);
      if (p.fold) p.fold->init(acc, width);
      if (l.by_tiles) w.fold_tile(outer, first, width, begin, end, acc);
      else w.fold_output(unit, begin, end, acc, &index);
      if (u.chunks == 1) finish(w, unit, outer, first, width, acc, index);
      else std::memcpy(parts.get() + i * bytes, acc, size_t(width * 8)), std::memcpy(parts.get() + i * bytes + u.width * 8, &index, 8);
    }
  });
  if (u.chunks == 1) return TN_OK;
  alignas(64) char pre[kScratchBytes], post[kScratchBytes];
  Worker w(job, pre, post);
  for (int64_t unit = 0; unit < u.outer * u.tiles; ++unit) {
    char* acc = parts.get() + unit * u.chunks * bytes;
    int64_t outer, first, width, index;
    place(unit, &outer, &first, &width);
    std::memcpy(&index, acc + u.width * 8, 8);
    for (int64_t c = 1; c < u.chunks; ++c) {
      char* other = acc + c * bytes;
      if (p.fold) {
        p.fold->combine(acc, other, width);
        continue;
      }
      int64_t at;
      std::memcpy(&at, other + u.width * 8, 8);
      int64_t better = index;
      p.index_fold->row(acc, &better, other, at, 1);
      index = better;
    }
    finish(w, unit, outer, first, width, acc, index);
  }
  return TN_OK;
}

tn_status launch(const tn_kernel_plan* base, const tn_launch* l) {
  const auto& p = plan_of<ReducePlan>(base);
  Layout dynamic_layout;
  const Layout* layout = &p.layout;
  if (p.dynamic) {
    tn_type types[kMaxOperands];
    for (size_t k = 0; k < p.types.size(); ++k) types[k] = p.types[k], resolve(&types[k], l->dyn);
    build_layout(p, types, &dynamic_layout);
    layout = &dynamic_layout;
  }
  if (layout->outputs == 0) return TN_OK;
  Job job{p, *layout, {}, {}, l->push};
  for (uint32_t k = 0; k < p.n_in; ++k) job.in[k] = static_cast<const char*>(l->views[k].host);
  for (uint32_t o = 0; o < p.n_out; ++o) job.out[o] = static_cast<char*>(l->views[p.n_in + o].host);
  const double n = double(layout->outputs) * double(layout->reduced.n);
  return run_job(job, n * (p.pre.ns_per_element + 0.3), l->diag);
}

bool has_index(const tn_program* p) {
  for (int i = 0; p && i < p->n_inst; ++i)
    if (p->inst[i].op == TN_OP_INDEX) return true;
  return false;
}
// Input 0's type where there is no `pre`, else the program's result.
uint32_t value_dtype(const tn_op& op, const tn_program* pre) { return pre ? pre->inst[pre->out[0]].type : op.type[0].dtype; }
// Narrow floats without `pre` are widened by a program of one cast.
struct Widen {
  tn_inst inst[2];
  tn_program program{};
  explicit Widen(uint32_t dtype) : inst{{TN_OP_INPUT, uint8_t(dtype), 0, 0, 0}, {TN_OP_CAST, TN_F32, 0, 0, 0}} {
    program.size = sizeof program, program.n_inst = 2, program.n_in = program.n_out = 1, program.out[0] = 1, program.inst = inst;
  }
};
struct Narrow {
  tn_inst inst[2];
  tn_program program{};
  explicit Narrow(uint32_t dtype) : inst{{TN_OP_INPUT, TN_F32, 0, 0, 0}, {TN_OP_CAST, uint8_t(dtype), 0, 0, 0}} {
    program.size = sizeof program, program.n_inst = 2, program.n_in = program.n_out = 1, program.out[0] = 1, program.inst = inst;
  }
};

tn_status supports(tn_instance* self, const tn_device_ref*, const tn_op* op, tn_support* out, tn_diag* diag) {
  const tn_program* pre = attr_program(*op, TN_KEY_PRE);
  const tn_program* post = attr_program(*op, TN_KEY_POST);
  const auto monoid = uint32_t(attr_i64(*op, TN_KEY_MONOID, 0));
  const Isa isa = self_of(self).isa;
  if (has_index(pre) || has_index(post)) return decline(out, diag, 1, "cpu.reduce: a program reads indices\nwhy: axes are reordered here\ntry: another kernel");
  if (op->math_flags & TN_MATH_SUBNORMAL) return decline(out, diag, 5, "cpu.reduce: subnormal results were asked for\nwhy: vector functions may flush them\ntry: drop TN_MATH_SUBNORMAL");
  if (op->n_in > TN_PROGRAM_MAX_IN || (!pre && op->n_in != 1) || (pre && (pre->n_in != op->n_in || pre->n_out != 1)))
    return decline(out, diag, 2, "cpu.reduce: operands do not match the program before the fold\nwhy: %u inputs\ntry: rebuild the op", op->n_in);
  uint32_t value = value_dtype(*op, pre);
  const bool index = monoid == TN_MONOID_ARGMAX || monoid == TN_MONOID_ARGMIN;
  uint8_t dtypes[TN_PROGRAM_MAX_IN];
  for (uint32_t k = 0; k < op->n_in; ++k) dtypes[k] = op->type[k].dtype;
  value = compute_dtype(value);
  const auto value8 = uint8_t(value);
  const bool known = index ? find_index_fold(isa, monoid, value) != nullptr : find_fold(isa, monoid, value) != nullptr;
  if (!known) return decline(out, diag, 3, "cpu.reduce: no code for this reduction\nwhy: monoid %u over type %u\ntry: another kernel", monoid, value);
  if ((pre && Program::find_unsupported(isa, *pre, dtypes) >= 0) || (post && (post->n_in != 1 || post->n_out != op->n_out || Program::find_unsupported(isa, *post, &value8) >= 0)))
    return decline(out, diag, 4, "cpu.reduce: no code for an instruction\nwhy: a program holds an opcode or type outside this kernel\ntry: another kernel");
  if (!has_symbols(*op)) {
    const tn_type shape = broadcast_shape(op->type, op->n_in);
    const double n = double(element_count(shape)), outputs = double(element_count(op->type[op->n_in]));
    const bool inner = !attr_ints(*op, TN_KEY_AXES).empty() && attr_ints(*op, TN_KEY_AXES).back() == shape.rank - 1;
    const double ns = n * (0.1 + (pre ? 0.03 * pre->n_inst : 0) + (index ? 0.6 : 0)) + outputs * (inner ? 25 : 1);
    out->est_ns = 60 + (ns > 60000 ? ns / self_of(self).threads : ns);
    out->confidence = 0.5f;
  }
  return TN_OK;
}

tn_status prepare(tn_instance* self, const tn_device_ref*, const tn_op* op, const tn_kernel_plan** out, tn_diag* diag) {
  return make_plan<ReducePlan>(self, op, out, diag, launch, [&](ReducePlan& p) -> tn_status {
    const Isa isa = p.instance->isa;
    const tn_program* pre = attr_program(*op, TN_KEY_PRE);
    const tn_program* post = attr_program(*op, TN_KEY_POST);
    p.n_in = op->n_in, p.n_out = op->n_out;
    p.types.assign(op->type, op->type + op->n_in + op->n_out);
    for (int64_t a : attr_ints(*op, TN_KEY_AXES)) p.axes |= 1u << a;
    p.monoid = uint32_t(attr_i64(*op, TN_KEY_MONOID, 0));
    const uint32_t raw = value_dtype(*op, pre);
    p.value_dtype = compute_dtype(raw);
    const Widen widen(raw);
    const Narrow narrow(op->type[op->n_in].dtype);
    const bool index = p.monoid == TN_MONOID_ARGMAX || p.monoid == TN_MONOID_ARGMIN;
    if (!pre && raw != p.value_dtype) pre = &widen.program;
    if (!post && !index && op->type[op->n_in].dtype != p.value_dtype) post = &narrow.program;
    uint8_t dtypes[TN_PROGRAM_MAX_IN];
    uint32_t uniform = 0;
    for (uint32_t k = 0; k < op->n_in; ++k) {
      dtypes[k] = op->type[k].dtype;
      bool same = true;
      for (int i = 0; i < op->type[k].rank; ++i) same = same && (op->type[k].stride[i] == 0 || op->type[k].dim[i] == 1);
      uniform |= uint32_t{same} << k;
    }
    const auto value8 = uint8_t(p.value_dtype);
    p.has_pre = pre != nullptr, p.has_post = post != nullptr;
    if ((pre && !p.pre.compile(isa, *pre, dtypes, uniform)) || (post && !p.post.compile(isa, *post, &value8, 0)))
      return fail(diag, TN_E_UNSUPPORTED, error_id(6, 60), "cpu.reduce: no code for the program\nwhy: supports() would have refused it\ntry: ask supports() before prepare()");
    if (index) p.index_fold = find_index_fold(isa, p.monoid, p.value_dtype);
    else p.fold = find_fold(isa, p.monoid, p.value_dtype);
    p.dynamic = has_symbols(*op);
    if (p.dynamic) p.flags |= TN_KERNEL_PLAN_DYNAMIC;
    else build_layout(p, p.types.data(), &p.layout);
    return TN_OK;
  });
}

constexpr tn_constraint kCons[] = {kOnCpu, dtype_in(TN_ANY_OPERAND, kAllMask), strided(TN_ANY_OPERAND)};

}  // namespace

void add_reduce_rows(Rows& rows) {
  tn_kernel_info k = kernel_row("cpu.reduce", TN_OPID_REDUCE, TN_KERNEL_DETERMINISTIC | TN_KERNEL_DYNAMIC, kCons, std::size(kCons));
  k.supports = within<kCons, supports>;
  k.prepare = prepare;
  k.retire = retire_plan<ReducePlan>;
  rows.push_back(k);
}

}  // namespace tenon::cpu
