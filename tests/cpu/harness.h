// tests/cpu/harness.h - drives the CPU kernel pack through its ABI table alone: a host of our own, ops from types.
//
//   Pack pack("avx2");  Op op(TN_OPID_POINTWISE);  op.in(TN_F32, {3, 4});  op.out(TN_F32, {3, 4});
//   pack.run("cpu.pointwise.dense", op, {x, y});
#pragma once
#include <tenon/ops.h>
#include <tenon/plugin.h>

#include <cstdint>
#include <cstring>
#include <deque>
#include <string>
#include <vector>

namespace tenon::test {

// A program written by hand.
struct Prog {
  std::vector<tn_inst> inst;
  tn_program p{};
  uint16_t add(uint32_t op, uint32_t type, uint32_t a = 0, uint32_t b = 0, uint32_t c = 0) {
    inst.push_back({uint8_t(op), uint8_t(type), uint16_t(a), uint16_t(b), uint16_t(c)});
    return uint16_t(inst.size() - 1);
  }
  uint16_t in(uint32_t k, uint32_t type) {
    if (k >= p.n_in) p.n_in = uint8_t(k + 1);
    return add(TN_OP_INPUT, type, k);
  }
  uint16_t slot(uint32_t k, uint32_t type) {
    if (k >= p.n_slots) p.n_slots = uint8_t(k + 1);
    return add(TN_OP_CONST, type, k);
  }
  Prog& out(uint16_t v) {
    p.out[p.n_out++] = v;
    p.size = sizeof p;
    p.n_inst = uint8_t(inst.size());
    p.inst = inst.data();
    return *this;
  }
};

struct Op {
  tn_op op{};
  std::vector<tn_type> types;
  std::vector<tn_attr> attrs;
  std::deque<std::vector<int64_t>> lists;
  std::vector<uint64_t> push;
  explicit Op(uint64_t id) { op.size = sizeof op, op.op_id = id, op.op_version = 1; }
  static tn_type dense(uint32_t dtype, std::vector<int64_t> dims);
  static tn_type with_strides(uint32_t dtype, std::vector<int64_t> dims, std::vector<int64_t> strides);
  Op& in(tn_type t) { types.push_back(t), ++op.n_in; return *this; }
  Op& in(uint32_t dtype, std::vector<int64_t> dims) { return in(dense(dtype, std::move(dims))); }
  Op& absent() { return in(tn_type{}); }
  Op& out(tn_type t) { types.push_back(t), ++op.n_out; return *this; }
  Op& out(uint32_t dtype, std::vector<int64_t> dims) { return out(dense(dtype, std::move(dims))); }
  Op& program(uint32_t key, Prog& p) {
    p.p.inst = p.inst.data();  // the program may have been copied since it was made
    return attr(key, TN_ATTR_PROGRAM, 0, 0, &p.p, 1);
  }
  Op& i64(uint32_t key, int64_t v) { return attr(key, TN_ATTR_I64, v, 0, nullptr, 0); }
  Op& f64(uint32_t key, double v) { return attr(key, TN_ATTR_F64, 0, v, nullptr, 0); }
  Op& ints(uint32_t key, std::vector<int64_t> v);
  template <class T>
  Op& scalar(T v) {
    push.push_back(0);
    std::memcpy(&push.back(), &v, sizeof v);
    return *this;
  }
  const tn_op* get();

 private:
  Op& attr(uint32_t key, uint32_t type, int64_t i, double f, const void* p, uint64_t len);
};

class Plan;
// The plugin opened with a cap on the instruction set ("baseline", "avx2", "avx512"; NULL = all) and n threads.
class Pack {
 public:
  explicit Pack(const char* isa = nullptr, uint32_t threads = 1);
  ~Pack();
  Pack(const Pack&) = delete;
  const tn_kernel_info* find(const std::string& name) const;
  // Empty when the row takes the op (constraints and supports()), else why not.
  std::string refusal(const std::string& name, Op& op, double* est_ns = nullptr);
  // Prepares and launches once; one view per operand, nullptr for an absent one. Returns the launch's status.
  tn_status run(const std::string& name, Op& op, const std::vector<void*>& views, const int64_t* dyn = nullptr, tn_diag* diag = nullptr);
  const tn_kernel_plan* prepare(const std::string& name, Op& op);
  void retire(const std::string& name, const tn_kernel_plan*);
  static tn_status launch(const tn_kernel_plan*, const std::vector<void*>& views, const Op& op, void* workspace = nullptr,
                          const int64_t* dyn = nullptr, tn_diag* diag = nullptr);
  std::string isa;
  uint32_t threads;
  int64_t live_allocs = 0;

 private:
  void* library_;
  const tn_plugin* table_;
  tn_host host_{};
  tn_instance* instance_ = nullptr;
  tn_device_ref ref_{};
  const tn_kernel_info* rows_ = nullptr;
  uint32_t n_rows_ = 0;
};

// Distance in units in the last place of the exact value.
double ulp_error(float got, long double exact);
double ulp_error(double got, long double exact);

}  // namespace tenon::test
