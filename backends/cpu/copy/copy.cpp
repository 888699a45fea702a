// The copy primitive: bytes from any strides to dense rows. Transposes go through square tiles that fit the L1 cache.
#include "backends/cpu/constraints.h"
#include "backends/cpu/pointwise/block_ops.h"
#include "backends/cpu/pointwise/space.h"

#include <algorithm>

namespace tenon::cpu {
namespace {

constexpr int64_t kStreamBytes = 8 << 20;
constexpr int64_t kTile = 32;

struct CopyPlan : Plan {
  tn_type types[2];
  bool dynamic = false, dense = false;
  Space space;
};

// Runs copies of `n` elements with any strides on both sides.
template <class T>
void copy_row(T* to, int64_t to_stride, const T* from, int64_t from_stride, int64_t n) {
  if (to_stride == 1 && from_stride == 1) std::memcpy(to, from, size_t(n) * sizeof(T));
  else if (to_stride == 1) for (int64_t i = 0; i < n; ++i) to[i] = from[i * from_stride];
  else for (int64_t i = 0; i < n; ++i) to[i * to_stride] = from[i * from_stride];
}

// Axes of the output in row-major order; the input's fastest axis is `fast`. [begin, end): rows of axes other than the
// last two involved.
template <class T>
void copy_range(const Space& s, int fast, const T* from, T* to, int64_t begin, int64_t end) {
  const int last = s.rank - 1;
  const int64_t* in = s.operand[0].stride;
  const int64_t* out = s.operand[1].stride;
  const bool tiled = fast != last && fast >= 0;
  for (int64_t unit = begin; unit < end; ++unit) {
    int64_t at = 0, dst = 0, rest = unit;
    // With tiles, axis `fast` counts in steps of kTile.
    int64_t start = 0;
    for (int i = last - 1; i >= 0; --i) {
      const int64_t size = tiled && i == fast ? (s.dim[i] + kTile - 1) / kTile : s.dim[i];
      int64_t x = rest % size;
      rest /= size;
      if (tiled && i == fast) x *= kTile, start = x;
      at += x * in[i], dst += x * out[i];
    }
    if (!tiled) {
      copy_row(to + dst, out[last], from + at, in[last], s.dim[last]);
      continue;
    }
    const int64_t rows = std::min(kTile, s.dim[fast] - start);
    for (int64_t c = 0; c < s.dim[last]; c += kTile) {
      const int64_t cols = std::min(kTile, s.dim[last] - c);
      const T* p = from + at + c * in[last];
      T* q = to + dst + c * out[last];
      if (in[fast] == 1 && out[last] == 1 && rows == kTile && cols == kTile) {
        // Read along the input, then write along the output: each cache line is touched once on either side.
        alignas(64) T tile[kTile][kTile + 1];
        const T* next = p + kTile * in[last];
        for (int64_t j = 0; j < kTile; ++j) {
          for (int64_t i = 0; i < kTile; ++i) tile[i][j] = p[i + j * in[last]];
          if (c + 2 * kTile > s.dim[last]) continue;
          for (int64_t i = 0; i < kTile * int64_t(sizeof(T)); i += 64) __builtin_prefetch(reinterpret_cast<const char*>(next + j * in[last]) + i, 0, 3);
        }
        for (int64_t i = 0; i < kTile; ++i) std::memcpy(q + i * out[fast], tile[i], sizeof(T) * kTile);
      } else {
        for (int64_t i = 0; i < rows; ++i) copy_row(q + i * out[fast], out[last], p + i * in[fast], in[last], cols);
      }
    }
  }
}

void run_strided(const Instance& in, const Space& s, const char* from, char* to) {
  const int last = s.rank - 1;
  int fast = -1;
  for (int i = 0; i < s.rank; ++i)
    if (s.operand[0].stride[i] == 1 || s.operand[0].stride[i] == -1) fast = i;
  if (s.dim[last] < 8) fast = -1;  // short rows: tiles would be slivers
  int64_t units = 1;
  for (int i = 0; i < last; ++i) units *= fast == i ? (s.dim[i] + kTile - 1) / kTile : s.dim[i];
  const double ns = double(s.n) * (fast == last ? 0.2 : 0.6) * s.operand[0].size / 4 + double(units) * 5;
  const auto run = [&](auto t) {
    using T = decltype(t);
    parallel_for(in, units, ns, [&](int64_t b, int64_t e) { copy_range<T>(s, fast, reinterpret_cast<const T*>(from), reinterpret_cast<T*>(to), b, e); });
  };
  switch (s.operand[0].size) {
    case 1: run(uint8_t{}); break;
    case 2: run(uint16_t{}); break;
    case 4: run(uint32_t{}); break;
    case 8: run(uint64_t{}); break;
    default: run(Bytes16{}); break;
  }
}

void run_dense(const Instance& in, const char* from, char* to, int64_t bytes) {
  const bool stream = bytes >= kStreamBytes && reinterpret_cast<uintptr_t>(to) % 64 == 0;
  constexpr int64_t kPiece = 1 << 16;
  parallel_for(in, (bytes + kPiece - 1) / kPiece, double(bytes) / 10, [&](int64_t b, int64_t e) {
    const int64_t begin = b * kPiece, n = std::min(e * kPiece, bytes) - begin, even = stream ? n / 64 * 64 : 0;
    if (even) stream_copy(in.isa, to + begin, from + begin, even), stream_fence();
    std::memcpy(to + begin + even, from + begin + even, size_t(n - even));
  });
}

tn_status launch(const tn_kernel_plan* base, const tn_launch* l) {
  const auto& p = plan_of<CopyPlan>(base);
  auto* from = static_cast<const char*>(l->views[0].host);
  auto* to = static_cast<char*>(l->views[1].host);
  Space dynamic_space;
  const Space* s = &p.space;
  if (p.dynamic) {
    tn_type t[2] = {p.types[0], p.types[1]};
    resolve(&t[0], l->dyn), resolve(&t[1], l->dyn);
    dynamic_space.build(t[1], t, 2, 1);
    s = &dynamic_space;
  }
  if (s->n == 0) return TN_OK;
  if (s->operand[0].walk == Walk::Flat && s->operand[1].walk == Walk::Flat) run_dense(*p.instance, from, to, s->n * s->operand[0].size);
  else run_strided(*p.instance, *s, from, to);
  return TN_OK;
}

tn_status supports(tn_instance* self, const tn_device_ref*, const tn_op* op, tn_support* out, tn_diag* diag) {
  if (op->type[0].dtype != op->type[1].dtype || element_size(op->type[0].dtype) == 0)
    return decline(out, diag, 1, "cpu.copy: element type\nwhy: packed 4-bit types, or input and output differ\ntry: another kernel");
  if (has_symbols(*op)) return TN_OK;
  const double bytes = 2.0 * double(element_count(op->type[1])) * double(element_size(op->type[1].dtype));
  const bool plain = row_major(op->type[0]) && row_major(op->type[1]);
  const double ns = bytes / (bytes < 1 << 20 ? 40 : 12) * (plain ? 1 : 3);
  out->est_ns = 15 + (ns > 60000 ? ns / self_of(self).threads : ns);
  out->confidence = 0.5f;
  return TN_OK;
}

tn_status prepare(tn_instance* self, const tn_device_ref*, const tn_op* op, const tn_kernel_plan** out, tn_diag* diag) {
  return make_plan<CopyPlan>(self, op, out, diag, launch, [&](CopyPlan& p) -> tn_status {
    p.types[0] = op->type[0], p.types[1] = op->type[1];
    p.dynamic = has_symbols(*op);
    if (p.dynamic) p.flags |= TN_KERNEL_PLAN_DYNAMIC;
    else p.space.build(op->type[1], op->type, 2, 1);
    return TN_OK;
  });
}

constexpr uint64_t kAnyBytes = kAllMask | bit(TN_C64) | bit(TN_C128) | bit(TN_F8E4M3) | bit(TN_F8E5M2);
constexpr tn_constraint kCons[] = {kOnCpu, dtype_in(TN_ANY_OPERAND, kAnyBytes), strided(TN_ANY_OPERAND)};

}  // namespace

void add_copy_rows(Rows& rows) {
  tn_kernel_info k = kernel_row("cpu.copy", TN_OPID_COPY, TN_KERNEL_DETERMINISTIC | TN_KERNEL_DYNAMIC, kCons, std::size(kCons));
  k.supports = within<kCons, supports>;
  k.prepare = prepare;
  k.retire = retire_plan<CopyPlan>;
  rows.push_back(k);
}

}  // namespace tenon::cpu
