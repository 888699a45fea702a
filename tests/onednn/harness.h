// tests/onednn/harness.h - drives the plugin's table as the core would: dlopen, open, supports, prepare, launch, retire.
#pragma once
#include <tenon/ops.h>
#include <tenon/plugin.h>

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <vector>

namespace onednn_test {

using Dims = std::vector<int64_t>;

// A tensor with its memory; elements are read and written as double.
struct Tensor {
  tn_type type{};
  std::vector<unsigned char> bytes;

  Tensor() = default;                    // an absent operand
  Tensor(uint32_t dtype, Dims dims);     // row-major
  Tensor(uint32_t dtype, Dims dims, Dims strides);
  static Tensor channels_last(uint32_t dtype, Dims nchw);

  double at(std::initializer_list<int64_t> index) const { return load(offset(index.begin())); }
  double at(const Dims& index) const { return load(offset(index.data())); }
  void set(const Dims& index, double value) { store(offset(index.data()), value); }
  // Calls fn with every index in row-major order.
  void each(const std::function<void(const Dims&)>& fn) const;
  // Pseudo-random values of the dtype, in -1..1 for floats, the whole range (or +-limit) for integers.
  Tensor& fill(uint32_t seed, double limit = 1);
  Tensor& fill_bytes(unsigned char byte);

  int64_t offset(const int64_t* index) const;
  double load(int64_t element) const;
  void store(int64_t element, double value);
};

float bf16_to_float(uint16_t bits);
uint16_t float_to_bf16(float value);

struct Attrs {
  std::vector<tn_attr> list;
  std::vector<std::vector<int64_t>> kept;  // lists behind attributes
  Attrs();
  Attrs& set(uint32_t key, int64_t value);
  Attrs& set(uint32_t key, double value);
  Attrs& set(uint32_t key, std::vector<int64_t> values);
  Attrs& set(uint32_t key, const tn_program* program);
};

struct Call {
  const char* kernel = "";
  uint64_t op_id = 0;
  std::vector<Tensor*> in, out;
  Attrs attrs;
  std::vector<uint64_t> push;
  uint32_t math_flags = 0;
};

// A plugin opened with a pool of `threads`. One instance per thread count lives until the process ends.
class Plugin {
 public:
  static Plugin& with_threads(uint32_t threads);  // opened once, closed at exit
  ~Plugin();
  const tn_kernel_info* find(const std::string& name) const;
  tn_status supports(const Call&, tn_diag* diag = nullptr, tn_support* out = nullptr);
  // supports, prepare, launch twice (the second time on fresh memory objects or the spare ones), retire.
  tn_status run(const Call&, tn_diag* diag = nullptr);
  const tn_kernel_plan* prepare(const Call&, tn_diag* diag = nullptr);
  tn_status launch(const tn_kernel_plan*, const Call&, tn_diag* diag = nullptr);
  void retire(const Call&, const tn_kernel_plan*);
  uint32_t live();

 private:
  explicit Plugin(uint32_t threads);
  struct Op;
  tn_host host_{};
  uint32_t threads_;
  const tn_plugin* table_ = nullptr;
  tn_instance* instance_ = nullptr;
  const tn_kernel_info* kernels_ = nullptr;
  uint32_t stride_ = 0, count_ = 0;
};

// |got - want| <= tolerance * (1 + |want|), NaN equal to NaN; reports the first few differences.
void expect_close(const Tensor& got, const std::function<double(const Dims&)>& want, double tolerance);

}  // namespace onednn_test
