// backends/cpu/core.h - what all CPU kernels share: the plugin's state, instruction sets, launch geometry, plans.
//
// Owns: an Instance belongs to open()/close(); a plan to its kernel's prepare/retire.
// Threads: plans are immutable; launches keep their scratch on the stack or in the launch's workspace.
#pragma once
#include <tenon/ops.h>
#include <tenon/plugin.h>

#include <cstdint>
#include <cstring>
#include <new>
#include <vector>

namespace tenon::cpu {

// Instruction sets with their own code. Numbers grow with ability.
enum class Isa : uint8_t { Baseline = 0, Avx2 = 1, Avx512 = 2 };

// The best set this machine and its OS allow, or `cap` ("baseline", "avx2", "avx512") if that is less; NULL = no cap.
Isa detect_isa(const char* cap);
bool detect_amx(Isa isa);  // AMX bf16 and int8 usable, with the kernel's permission taken

struct Instance {
  const tn_host* host = nullptr;
  Isa isa = Isa::Baseline;
  bool amx = false;
  uint32_t threads = 1;
};
inline Instance& self_of(tn_instance* p) { return *reinterpret_cast<Instance*>(p); }

constexpr int64_t element_size(uint32_t dtype) {
  switch (dtype) {
    case TN_BOOL: case TN_U8: case TN_I8: case TN_F8E4M3: case TN_F8E5M2: return 1;
    case TN_U16: case TN_I16: case TN_F16: case TN_BF16: return 2;
    case TN_U32: case TN_I32: case TN_F32: return 4;
    case TN_U64: case TN_I64: case TN_F64: case TN_C64: return 8;
    case TN_C128: return 16;
    default: return 0;  // sub-byte
  }
}
struct Bytes16 { uint64_t half[2]; };  // an element of 16 bytes that is only moved
constexpr uint64_t bit(uint32_t dtype) { return uint64_t{1} << dtype; }
constexpr uint64_t kIntMask = bit(TN_U8) | bit(TN_I8) | bit(TN_U16) | bit(TN_I16) | bit(TN_U32) | bit(TN_I32) | bit(TN_U64) | bit(TN_I64);
constexpr uint64_t kFloatMask = bit(TN_F16) | bit(TN_BF16) | bit(TN_F32) | bit(TN_F64);
constexpr uint64_t kAllMask = kIntMask | kFloatMask | bit(TN_BOOL);
constexpr uint32_t compute_dtype(uint32_t dtype) { return dtype == TN_F16 || dtype == TN_BF16 ? uint32_t{TN_F32} : dtype; }

// A size or stride with the launch's values put in for symbols.
inline int64_t value_of(int64_t d, const int64_t* dyn) { return TN_IS_SYM(d) ? dyn[d - INT64_MIN] : d; }
inline void resolve(tn_type* t, const int64_t* dyn) {
  for (uint32_t i = 0; i < t->rank; ++i) t->dim[i] = value_of(t->dim[i], dyn), t->stride[i] = value_of(t->stride[i], dyn);
}
inline bool has_symbols(const tn_type& t) {
  for (uint32_t i = 0; i < t.rank; ++i)
    if (TN_IS_SYM(t.dim[i]) || TN_IS_SYM(t.stride[i])) return true;
  return false;
}
inline bool has_symbols(const tn_op& op) {
  for (uint32_t i = 0; i < uint32_t{op.n_in} + op.n_out; ++i)
    if (op.type[i].dtype != 0 && has_symbols(op.type[i])) return true;
  return false;
}
inline int64_t element_count(const tn_type& t) {
  int64_t n = 1;
  for (uint32_t i = 0; i < t.rank; ++i) n *= t.dim[i];
  return n;
}
inline bool row_major(const tn_type& t) {
  int64_t expect = 1;
  for (int i = int(t.rank) - 1; i >= 0; --i) {
    if (t.dim[i] != 1 && t.stride[i] != expect) return false;
    expect *= t.dim[i];
  }
  return true;
}

inline const tn_attr* find_attr(const tn_op& op, uint32_t key) {
  for (uint32_t i = 0; i < op.n_attr; ++i)
    if (op.attr[i].key == key) return &op.attr[i];
  return nullptr;
}
inline int64_t attr_i64(const tn_op& op, uint32_t key, int64_t fallback) {
  const tn_attr* a = find_attr(op, key);
  return a ? a->v.i : fallback;
}
inline double attr_f64(const tn_op& op, uint32_t key, double fallback) {
  const tn_attr* a = find_attr(op, key);
  return a ? a->v.f : fallback;
}
inline const tn_program* attr_program(const tn_op& op, uint32_t key) {
  const tn_attr* a = find_attr(op, key);
  return a ? static_cast<const tn_program*>(a->v.p) : nullptr;
}
// Elements of a list attribute; empty when absent.
inline std::vector<int64_t> attr_ints(const tn_op& op, uint32_t key) {
  const tn_attr* a = find_attr(op, key);
  if (!a || !a->v.p) return {};
  auto* p = static_cast<const int64_t*>(a->v.p);
  return {p, p + a->len};
}

// "No" from supports(): a reason a reader can act on. Returns TN_E_UNSUPPORTED.
tn_status decline(tn_support* out, tn_diag* diag, uint32_t reason, const char* format, ...) __attribute__((format(printf, 4, 5)));
// Failure of a launch or of prepare with a stable id (family << 16 | number).
tn_status fail(tn_diag* diag, tn_status status, uint32_t id, const char* format, ...) __attribute__((format(printf, 4, 5)));
constexpr uint32_t error_id(uint32_t family, uint32_t number) { return family << 16 | number; }

// Every plan of this plugin: the ABI head, then what the kernel needs. `T` derives from Plan.
struct Plan : tn_kernel_plan {
  const Instance* instance = nullptr;
};
template <class T>
const T& plan_of(const tn_kernel_plan* p) { return *static_cast<const T*>(static_cast<const Plan*>(p)); }

// Allocates a plan, lets `fill` set it, and hands it out. fill: tn_status(T&).
template <class T, class Fill>
tn_status make_plan(tn_instance* self, const tn_op* op, const tn_kernel_plan** out, tn_diag* diag,
                    tn_status (*launch)(const tn_kernel_plan*, const tn_launch*), Fill fill) {
  try {
    T* plan = new T();
    plan->launch = launch;
    plan->self = self;
    plan->instance = &self_of(self);
    uint32_t views = 0;
    for (uint32_t i = 0; i < uint32_t{op->n_in} + op->n_out; ++i) views += op->type[i].dtype != 0;
    plan->n_views = views;
    plan->push_bytes = op->push_bytes;
    if (tn_status s = fill(*plan); s != TN_OK) {
      delete plan;
      return s;
    }
    *out = plan;
    return TN_OK;
  } catch (const std::bad_alloc&) {
    return fail(diag, TN_E_OOM, error_id(5, 1), "cpu: no memory for a plan\nwhy: the process is out of memory\ntry: free memory");
  }
}
template <class T>
void retire_plan(tn_instance*, const tn_device_ref*, const tn_kernel_plan* p) { delete static_cast<const T*>(static_cast<const Plan*>(p)); }

// Calls f(begin, end) over [0, n) on the host's pool, or inline when the work is small. `ns` = guess for all of it.
template <class F>
void parallel_for(const Instance& in, int64_t n, double ns, F&& f) {
  constexpr double kWorthSplitting = 30000;  // ns; waking a worker costs about 5 us
  if (n <= 1 || ns < kWorthSplitting || in.threads < 2) {
    if (n > 0) f(int64_t{0}, n);
    return;
  }
  const double pieces = ns / (kWorthSplitting / 2);
  const int64_t grain = pieces >= double(n) ? 1 : int64_t(double(n) / pieces) + 1;
  using Fn = std::remove_reference_t<F>;
  in.host->parallel(in.host->ctx, n, grain, [](void* arg, int64_t b, int64_t e, uint32_t) { (*static_cast<Fn*>(arg))(b, e); },
                    const_cast<void*>(static_cast<const void*>(&f)));
}

// Rows of the kernel table, one function per file of kernels.
using Rows = std::vector<tn_kernel_info>;
void add_pointwise_rows(Rows&);
void add_reduce_rows(Rows&);
void add_copy_rows(Rows&);
void add_matmul_rows(Rows&);
void add_amx_rows(Rows&);
void add_packed_rows(Rows&);
void add_amx_packed_rows(Rows&);
void add_norm_rows(Rows&);
void add_index_rows(Rows&);
void add_pool_rows(Rows&);
void add_batch_norm_rows(Rows&);

// Condition of every row: the device is addressed as plain memory by this process.
constexpr tn_constraint kOnCpu{TN_ANY_OPERAND, TN_NEED_DEVICE_KIND, TN_KIND_CPU, 0, 0, 0};
constexpr tn_constraint dtype_in(uint16_t operand, uint64_t mask) { return {operand, TN_NEED_DTYPE, 0, mask, 0, 0}; }
constexpr tn_constraint strided(uint16_t operand) { return {operand, TN_NEED_LAYOUT, 0, uint64_t{1} << TN_LAYOUT_STRIDED, 0, 0}; }
inline tn_kernel_info kernel_row(const char* name, uint64_t op_id, uint32_t flags, const tn_constraint* cons, uint32_t n_cons) {
  tn_kernel_info k{};
  k.size = sizeof k;
  k.flags = flags;
  k.name = name;
  k.op_id = op_id;
  k.op_min = 0;
  k.op_max = 0xFFFF;
  k.tier = TN_TIER_NATIVE;
  k.cons = cons;
  k.n_cons = n_cons;
  return k;
}

}  // namespace tenon::cpu
