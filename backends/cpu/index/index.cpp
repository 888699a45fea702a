// The gather and scatter primitives. Elements that lie together on both sides and share an index move as one row.
#include <algorithm>
#include <iterator>
#include <memory>
#include <type_traits>

#include "backends/cpu/constraints.h"
#include "backends/cpu/core.h"

namespace tenon::cpu {
namespace {

// Axes that need an index each ("outer"), and `inner` elements below them that are contiguous on both sides.
struct IndexPlan : Plan {
  int rank = 0, axis = 0;                 // outer axes; which of them is indexed (-1: its index sits in no outer axis)
  int64_t dim[TN_MAX_RANK]{};             // of the index space: gather's output, scatter's updates
  int64_t index_stride[TN_MAX_RANK]{}, data_stride[TN_MAX_RANK]{}, own_stride[TN_MAX_RANK]{};  // own: output or updates
  int64_t outer = 1, inner = 1, axis_size = 0, axis_stride = 0;
  int64_t size = 0;
  bool wide_index = false;
  uint32_t dtype = 0, mode = 0;
  tn_type data{}, out{};
};

int64_t index_at(const IndexPlan& p, const void* index, int64_t at) {
  int64_t i = p.wide_index ? static_cast<const int64_t*>(index)[at] : static_cast<const int32_t*>(index)[at];
  return i < 0 ? i + p.axis_size : i;
}

// Calls f(index offset, data offset without the axis, own offset) for outer positions [begin, end) in row-major order.
template <class F>
void walk(const IndexPlan& p, int64_t begin, int64_t end, F&& f) {
  int64_t at[TN_MAX_RANK] = {}, rest = begin, i_at = 0, d_at = 0, o_at = 0;
  for (int i = p.rank - 1; i >= 0; --i) {
    at[i] = rest % p.dim[i];
    rest /= p.dim[i];
    i_at += at[i] * p.index_stride[i], d_at += at[i] * p.data_stride[i], o_at += at[i] * p.own_stride[i];
  }
  for (int64_t pos = begin; pos < end; ++pos) {
    f(i_at, d_at, o_at);
    for (int i = p.rank - 1; i >= 0; --i) {
      i_at += p.index_stride[i], d_at += p.data_stride[i], o_at += p.own_stride[i];
      if (++at[i] < p.dim[i]) break;
      i_at -= p.dim[i] * p.index_stride[i], d_at -= p.dim[i] * p.data_stride[i], o_at -= p.dim[i] * p.own_stride[i];
      at[i] = 0;
    }
  }
}

// Nothing is written when an index is outside.
tn_status check_indices(const IndexPlan& p, const void* index, tn_diag* diag) {
  int64_t bad = 0;
  bool found = false;
  walk(p, 0, p.outer, [&](int64_t i_at, int64_t, int64_t) {
    const int64_t i = index_at(p, index, i_at);
    if (i < 0 || i >= p.axis_size) bad = i, found = true;
  });
  if (!found) return TN_OK;
  return fail(diag, TN_E_FAILED, error_id(6, 62), "gather or scatter: an index is outside\nwhy: one is %lld, or that less %lld; the axis has %lld\ntry: use indices in -%lld..%lld",
              static_cast<long long>(bad), static_cast<long long>(p.axis_size), static_cast<long long>(p.axis_size), static_cast<long long>(p.axis_size), static_cast<long long>(p.axis_size - 1));
}

template <class T>
void gather_range(const IndexPlan& p, const T* data, const void* index, T* out, int64_t b, int64_t e) {
  walk(p, b, e, [&](int64_t i_at, int64_t d_at, int64_t o_at) {
    const T* from = data + d_at + index_at(p, index, i_at) * p.axis_stride;
    if (p.inner == 1) out[o_at] = *from;
    else std::memcpy(out + o_at, from, size_t(p.inner) * sizeof(T));
  });
}
template <class F>
void by_size(int64_t size, F&& f) {
  switch (size) {
    case 1: f(uint8_t{}); break;
    case 2: f(uint16_t{}); break;
    case 4: f(uint32_t{}); break;
    case 8: f(uint64_t{}); break;
    default: f(Bytes16{}); break;
  }
}

tn_status launch_gather(const tn_kernel_plan* base, const tn_launch* l) {
  const auto& p = plan_of<IndexPlan>(base);
  if (p.outer == 0 || p.inner == 0) return TN_OK;
  const void* index = l->views[1].host;
  if (tn_status s = check_indices(p, index, l->diag); s != TN_OK) return s;
  by_size(p.size, [&](auto t) {
    using T = decltype(t);
    const double ns = double(p.outer) * (3 + double(p.inner * p.size) / 12);
    parallel_for(*p.instance, p.outer, ns, [&](int64_t b, int64_t e) {
      gather_range(p, static_cast<const T*>(l->views[0].host), index, static_cast<T*>(l->views[2].host), b, e);
    });
  });
  return TN_OK;
}

// a (old value) and b (update) by the mode; maxima and minima with the rules of TN_OP_MAX and TN_OP_MIN.
template <class T>
T merge(uint32_t mode, T a, T b) {
  using W = std::conditional_t<std::is_floating_point_v<T>, T, uint64_t>;
  switch (mode) {
    case TN_SCATTER_ADD: return T(W(a) + W(b));
    case TN_SCATTER_MUL: return T(W(a) * W(b));
    case TN_SCATTER_MIN:
    case TN_SCATTER_MAX: {
      if (a != a) return a;
      if (b != b) return b;
      const bool want_max = mode == TN_SCATTER_MAX;
      if constexpr (std::is_floating_point_v<T>) {
        if (a == b) return __builtin_signbit(a) == want_max ? b : a;
      }
      return (a < b) == want_max ? b : a;
    }
    default: return b;
  }
}
template <class T>
void scatter_columns(const IndexPlan& p, const void* index, const T* updates, T* out, int64_t first, int64_t last) {
  const auto rows = [&](auto f) {
    walk(p, 0, p.outer, [&](int64_t i_at, int64_t d_at, int64_t u_at) {
      T* to = out + d_at + index_at(p, index, i_at) * p.axis_stride;
      const T* from = updates + u_at;
      for (int64_t i = first; i < last; ++i) to[i] = f(to[i], from[i]);
    });
  };
  switch (p.mode) {
    case TN_SCATTER_ADD: return rows([](T a, T b) { return merge(TN_SCATTER_ADD, a, b); });
    case TN_SCATTER_MUL: return rows([](T a, T b) { return merge(TN_SCATTER_MUL, a, b); });
    case TN_SCATTER_MIN: return rows([](T a, T b) { return merge(TN_SCATTER_MIN, a, b); });
    case TN_SCATTER_MAX: return rows([](T a, T b) { return merge(TN_SCATTER_MAX, a, b); });
    default: return rows([](T, T b) { return b; });
  }
}

tn_status launch_scatter(const tn_kernel_plan* base, const tn_launch* l) {
  const auto& p = plan_of<IndexPlan>(base);
  const void* index = l->views[1].host;
  if (p.outer > 0 && p.inner > 0)
    if (tn_status s = check_indices(p, index, l->diag); s != TN_OK) return s;
  if (l->views[3].host != l->views[0].host) std::memcpy(l->views[3].host, l->views[0].host, size_t(element_count(p.out) * p.size));
  if (p.outer == 0 || p.inner == 0) return TN_OK;
  const auto run = [&](auto t) {
    using T = decltype(t);
    constexpr int64_t kColumns = 64;  // threads own columns, so that equal indices meet in order
    const double ns = double(p.outer) * (4 + double(p.inner) * 0.2);
    parallel_for(*p.instance, (p.inner + kColumns - 1) / kColumns, ns, [&](int64_t b, int64_t e) {
      scatter_columns(p, index, static_cast<const T*>(l->views[2].host), static_cast<T*>(l->views[3].host), b * kColumns, std::min(e * kColumns, p.inner));
    });
  };
  switch (p.dtype) {
    case TN_F32: run(float{}); break;
    case TN_F64: run(double{}); break;
    case TN_I8: run(int8_t{}); break;
    case TN_I16: run(int16_t{}); break;
    case TN_I32: run(int32_t{}); break;
    case TN_I64: run(int64_t{}); break;
    case TN_BOOL: case TN_U8: run(uint8_t{}); break;
    case TN_U32: run(uint32_t{}); break;
    case TN_U64: run(uint64_t{}); break;
    default: run(uint16_t{}); break;  // u16; f16 and bf16 are only set
  }
  return TN_OK;
}

// `space`: the type whose dims are walked; `own`: its strides.
void build(IndexPlan& p, const tn_op& op, const tn_type& space) {
  const tn_type& data = op.type[0];
  const tn_type& index = op.type[1];
  int64_t axis = attr_i64(op, TN_KEY_AXIS, 0);
  if (axis < 0) axis += data.rank;
  p.axis_size = data.dim[axis];
  p.axis_stride = data.stride[axis];
  p.size = element_size(data.dtype);
  p.dtype = data.dtype;
  p.wide_index = index.dtype == TN_I64;
  int end = space.rank;  // axes [end, rank) form the inner row
  int64_t expect = 1;
  while (end - 1 > axis) {
    const int i = end - 1;
    const bool shared = index.dim[i] == 1 || index.stride[i] == 0;
    if (space.dim[i] != 1 && (!shared || space.stride[i] != expect || data.stride[i] != expect)) break;
    expect *= space.dim[i];
    end = i;
  }
  p.inner = expect;
  p.rank = end;
  p.outer = 1;
  for (int i = 0; i < end; ++i) {
    p.dim[i] = space.dim[i];
    p.outer *= space.dim[i];
    p.index_stride[i] = index.dim[i] == 1 ? 0 : index.stride[i];
    p.data_stride[i] = i == axis ? 0 : data.stride[i];
    p.own_stride[i] = space.stride[i];
  }
}

tn_status supports_gather(tn_instance* self, const tn_device_ref*, const tn_op* op, tn_support* out, tn_diag* diag) {
  if (op->type[0].rank == 0 || op->type[0].rank != op->type[1].rank || op->type[2].rank != op->type[0].rank)
    return decline(out, diag, 1, "cpu.gather: ranks\nwhy: data has %u axes, index %u\ntry: equal ranks of at least 1", op->type[0].rank, op->type[1].rank);
  const double n = double(element_count(op->type[2])) * double(element_size(op->type[2].dtype));
  const double ns = n * 0.4;
  out->est_ns = 30 + (ns > 60000 ? ns / self_of(self).threads : ns);
  out->confidence = 0.4f;
  return TN_OK;
}
tn_status prepare_gather(tn_instance* self, const tn_device_ref*, const tn_op* op, const tn_kernel_plan** out, tn_diag* diag) {
  return make_plan<IndexPlan>(self, op, out, diag, launch_gather, [&](IndexPlan& p) -> tn_status {
    build(p, *op, op->type[2]);
    return TN_OK;
  });
}
tn_status supports_scatter(tn_instance*, const tn_device_ref*, const tn_op* op, tn_support* out, tn_diag* diag) {
  const tn_type& data = op->type[0];
  const tn_type& index = op->type[1];
  const tn_type& updates = op->type[2];
  const auto mode = attr_i64(*op, TN_KEY_MODE, 0);
  if (data.rank == 0 || data.rank != index.rank || data.rank != updates.rank)
    return decline(out, diag, 1, "cpu.scatter: ranks\nwhy: data has %u axes, index %u\ntry: equal ranks of at least 1", data.rank, index.rank);
  const bool narrow = data.dtype == TN_F16 || data.dtype == TN_BF16;
  if ((narrow || data.dtype == TN_BOOL) && mode != TN_SCATTER_SET)
    return decline(out, diag, 2, "cpu.scatter: type %u can only be set\nwhy: sums of narrow floats need a wide accumulator\ntry: cast to f32", data.dtype);
  if (!row_major(data) || !row_major(op->type[3]))
    return decline(out, diag, 3, "cpu.scatter: data is not dense\nwhy: it is copied whole first\ntry: copy it");
  const double n = double(element_count(updates)), bytes = double(element_count(data)) * double(element_size(data.dtype));
  out->est_ns = 40 + n + bytes / 8;
  out->confidence = 0.4f;
  return TN_OK;
}
tn_status prepare_scatter(tn_instance* self, const tn_device_ref*, const tn_op* op, const tn_kernel_plan** out, tn_diag* diag) {
  return make_plan<IndexPlan>(self, op, out, diag, launch_scatter, [&](IndexPlan& p) -> tn_status {
    build(p, *op, op->type[2]);
    p.mode = uint32_t(attr_i64(*op, TN_KEY_MODE, 0));
    p.out = op->type[3];
    return TN_OK;
  });
}

constexpr uint64_t kAnyBytes = kAllMask | bit(TN_C64) | bit(TN_C128) | bit(TN_F8E4M3) | bit(TN_F8E5M2);
constexpr uint64_t kIndexTypes = bit(TN_I32) | bit(TN_I64);
constexpr tn_constraint kGather[] = {kOnCpu, strided(TN_ANY_OPERAND), dtype_in(0, kAnyBytes), dtype_in(1, kIndexTypes)};
constexpr tn_constraint kScatter[] = {kOnCpu, strided(TN_ANY_OPERAND), dtype_in(0, kAllMask), dtype_in(1, kIndexTypes)};

}  // namespace

void add_index_rows(Rows& rows) {
  tn_kernel_info g = kernel_row("cpu.gather", TN_OPID_GATHER, TN_KERNEL_DETERMINISTIC, kGather, std::size(kGather));
  g.supports = within<kGather, supports_gather>, g.prepare = prepare_gather, g.retire = retire_plan<IndexPlan>;
  rows.push_back(g);
  tn_kernel_info s = kernel_row("cpu.scatter", TN_OPID_SCATTER, TN_KERNEL_DETERMINISTIC | TN_KERNEL_INPLACE, kScatter, std::size(kScatter));
  s.inplace_mask = 1;
  s.supports = within<kScatter, supports_scatter>, s.prepare = prepare_scatter, s.retire = retire_plan<IndexPlan>;
  rows.push_back(s);
}

}  // namespace tenon::cpu
