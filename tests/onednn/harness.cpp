#include "tests/onednn/harness.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <thread>

namespace onednn_test {
namespace {

uint64_t bytes_of(uint32_t dtype) {
  switch (dtype) {
#define BYTES(name, id, bits) case name: return (bits + 7) / 8;
    TN_DTYPES(BYTES)
#undef BYTES
    default: return 0;
  }
}

Dims row_major(const Dims& dims) {
  Dims strides(dims.size());
  int64_t next = 1;
  for (size_t i = dims.size(); i-- > 0;) strides[i] = next, next *= dims[i];
  return strides;
}

uint32_t pool_size(void* ctx) { return *static_cast<uint32_t*>(ctx); }

// Every piece of `grain` on a thread of its own, so that shards really overlap.
void run_parallel(void*, int64_t n, int64_t grain, tn_range_fn fn, void* arg) {
  std::vector<std::thread> threads;
  for (int64_t begin = 0; begin < n; begin += grain) {
    threads.emplace_back(fn, arg, begin, std::min(begin + grain, n), static_cast<uint32_t>(begin / grain));
  }
  for (std::thread& t : threads) t.join();
}

}  // namespace

float bf16_to_float(uint16_t bits) {
  const uint32_t wide = static_cast<uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &wide, 4);
  return value;
}

uint16_t float_to_bf16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  if (std::isnan(value)) return 0x7FC0;
  return static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

Tensor::Tensor(uint32_t dtype, Dims dims) : Tensor(dtype, dims, row_major(dims)) {}

Tensor::Tensor(uint32_t dtype, Dims dims, Dims strides) {
  type.dtype = static_cast<uint8_t>(dtype);
  type.rank = static_cast<uint8_t>(dims.size());
  int64_t reach = 1;
  for (size_t i = 0; i < dims.size(); ++i) {
    type.dim[i] = dims[i], type.stride[i] = strides[i];
    reach += (dims[i] - 1) * strides[i];
  }
  bytes.resize(static_cast<size_t>(std::max<int64_t>(reach, 1)) * bytes_of(dtype));
}

Tensor Tensor::channels_last(uint32_t dtype, Dims d) { return Tensor(dtype, d, {d[1] * d[2] * d[3], 1, d[3] * d[1], d[1]}); }

int64_t Tensor::offset(const int64_t* index) const {
  int64_t o = 0;
  for (uint32_t i = 0; i < type.rank; ++i) o += index[i] * type.stride[i];
  return o;
}

double Tensor::load(int64_t e) const {
  const unsigned char* p = bytes.data() + static_cast<size_t>(e) * bytes_of(type.dtype);
  const auto as = [&](auto value) { std::memcpy(&value, p, sizeof value); return value; };
  switch (type.dtype) {
    case TN_F32: return as(float{});
    case TN_BF16: return bf16_to_float(as(uint16_t{}));
    case TN_I32: return as(int32_t{});
    case TN_U8: return as(uint8_t{});
    case TN_I8: return as(int8_t{});
    default: ADD_FAILURE() << "dtype"; return 0;
  }
}

void Tensor::store(int64_t e, double v) {
  unsigned char* p = bytes.data() + static_cast<size_t>(e) * bytes_of(type.dtype);
  const auto as = [&](auto value) { std::memcpy(p, &value, sizeof value); };
  switch (type.dtype) {
    case TN_F32: as(static_cast<float>(v)); break;
    case TN_BF16: as(float_to_bf16(static_cast<float>(v))); break;
    case TN_I32: as(static_cast<int32_t>(v)); break;
    case TN_U8: as(static_cast<uint8_t>(v)); break;
    case TN_I8: as(static_cast<int8_t>(v)); break;
    default: ADD_FAILURE() << "dtype";
  }
}

void Tensor::each(const std::function<void(const Dims&)>& fn) const {
  Dims index(type.rank, 0);
  for (;;) {
    fn(index);
    uint32_t axis = type.rank;
    while (axis > 0 && ++index[axis - 1] == type.dim[axis - 1]) index[--axis] = 0;
    if (axis == 0) return;
  }
}

Tensor& Tensor::fill(uint32_t seed, double limit) {
  uint32_t state = seed * 2654435761u + 1;
  each([&](const Dims& index) {
    state = state * 1664525u + 1013904223u;
    const double unit = static_cast<double>(state >> 8) / (1 << 24);  // 0..1
    switch (type.dtype) {
      case TN_U8: set(index, std::floor(unit * 256)); break;
      case TN_I8: set(index, std::floor(unit * 256) - 128); break;
      default: set(index, (2 * unit - 1) * limit);
    }
  });
  return *this;
}

Tensor& Tensor::fill_bytes(unsigned char byte) {
  std::fill(bytes.begin(), bytes.end(), byte);
  return *this;
}

Attrs::Attrs() { kept.reserve(32); }
Attrs& Attrs::set(uint32_t key, int64_t value) {
  tn_attr a{key, TN_ATTR_I64, {}, 1};
  a.v.i = value;
  list.push_back(a);
  return *this;
}
Attrs& Attrs::set(uint32_t key, double value) {
  tn_attr a{key, TN_ATTR_F64, {}, 1};
  a.v.f = value;
  list.push_back(a);
  return *this;
}
Attrs& Attrs::set(uint32_t key, std::vector<int64_t> values) {
  kept.push_back(std::move(values));
  tn_attr a{key, TN_ATTR_I64S, {}, kept.back().size()};
  a.v.p = kept.back().data();
  list.push_back(a);
  return *this;
}
Attrs& Attrs::set(uint32_t key, const tn_program* program) {
  tn_attr a{key, TN_ATTR_PROGRAM, {}, 1};
  a.v.p = program;
  list.push_back(a);
  return *this;
}

struct Plugin::Op {
  tn_op op{};
  std::vector<tn_type> types;
  explicit Op(const Call& call) {
    for (const Tensor* t : call.in) types.push_back(t->type);
    for (const Tensor* t : call.out) types.push_back(t->type);
    op.size = sizeof op, op.op_id = call.op_id, op.op_version = 1, op.math_flags = call.math_flags;
    op.n_in = static_cast<uint16_t>(call.in.size()), op.n_out = static_cast<uint16_t>(call.out.size());
    op.n_attr = static_cast<uint16_t>(call.attrs.list.size());
    op.type = types.data(), op.attr = call.attrs.list.data();
    op.push_bytes = static_cast<uint32_t>(call.push.size() * 8);
  }
};

Plugin& Plugin::with_threads(uint32_t threads) {
  static std::map<uint32_t, std::unique_ptr<Plugin>> plugins;
  auto& p = plugins[threads];
  if (p == nullptr) p.reset(new Plugin(threads));
  return *p;
}

Plugin::Plugin(uint32_t threads) : threads_(threads) {
  void* library = dlopen(TENON_ONEDNN_PLUGIN, RTLD_NOW | RTLD_LOCAL);
  EXPECT_NE(library, nullptr) << dlerror();
  const auto query = reinterpret_cast<tn_plugin_query_fn>(dlsym(library, "tn_plugin_query"));
  host_.size = sizeof host_, host_.abi = TN_ABI_CURRENT, host_.ctx = &threads_;
  host_.threads = pool_size, host_.parallel = run_parallel;
  table_ = query(TN_ABI_CURRENT, &host_);
  tn_diag diag{};
  EXPECT_EQ(table_->open(&host_, &instance_, &diag), TN_OK) << diag.msg;
  EXPECT_EQ(table_->kernels(instance_, &kernels_, &stride_, &count_, &diag), TN_OK);
}

Plugin::~Plugin() {
  if (instance_ != nullptr) table_->close(instance_);
}

const tn_kernel_info* Plugin::find(const std::string& name) const {
  for (uint32_t i = 0; i < count_; ++i) {
    const auto* k = reinterpret_cast<const tn_kernel_info*>(reinterpret_cast<const char*>(kernels_) + i * stride_);
    if (name == k->name) return k;
  }
  return nullptr;
}

tn_status Plugin::supports(const Call& call, tn_diag* diag, tn_support* out) {
  const Op op(call);
  tn_support ignored{};
  tn_support* s = out != nullptr ? out : &ignored;
  s->size = sizeof *s;
  return find(call.kernel)->supports(instance_, nullptr, &op.op, s, diag);
}

const tn_kernel_plan* Plugin::prepare(const Call& call, tn_diag* diag) {
  const Op op(call);
  const tn_kernel_plan* plan = nullptr;
  const tn_status status = find(call.kernel)->prepare(instance_, nullptr, &op.op, &plan, diag);
  EXPECT_EQ(status, TN_OK) << (diag != nullptr ? diag->msg : "");
  return plan;
}

tn_status Plugin::launch(const tn_kernel_plan* plan, const Call& call, tn_diag* diag) {
  std::vector<tn_view> views;
  for (const auto& group : {call.in, call.out}) {
    for (Tensor* t : group) views.push_back({1, 0, t->bytes.size(), t->type.dtype != 0 ? t->bytes.data() : nullptr});
  }
  EXPECT_EQ(views.size(), plan->n_views);
  // Poisoned, and one byte off the best alignment: a plan must not rely on what it was not promised.
  std::vector<unsigned char> workspace(plan->workspace_bytes + 8, 0xA5);
  if (plan->workspace_bytes > 0) views.push_back({1, 0, plan->workspace_bytes, workspace.data() + 8});
  const tn_launch l{views.data(), static_cast<uint32_t>(views.size()), plan->push_bytes, call.push.data(),
                    nullptr, diag, nullptr};
  return plan->launch(plan, &l);
}

void Plugin::retire(const Call& call, const tn_kernel_plan* plan) { find(call.kernel)->retire(instance_, nullptr, plan); }

uint32_t Plugin::live() {
  uint32_t n = 0;
  EXPECT_EQ(table_->quiesce(instance_, 0, &n, nullptr), TN_OK);
  return n;
}

tn_status Plugin::run(const Call& call, tn_diag* diag) {
  tn_diag own{};
  tn_diag* d = diag != nullptr ? diag : &own;
  if (const tn_status s = supports(call, d); s < 0) return s;
  const tn_kernel_plan* plan = prepare(call, d);
  if (plan == nullptr) return TN_E_BUG;
  tn_status status = TN_OK;
  for (int i = 0; i < 2 && status == TN_OK; ++i) {
    for (Tensor* t : call.out) t->fill_bytes(0xCD);
    status = launch(plan, call, d);
  }
  retire(call, plan);
  return status;
}

void expect_close(const Tensor& got, const std::function<double(const Dims&)>& want, double tolerance) {
  int reported = 0;
  got.each([&](const Dims& index) {
    const double w = want(index), g = got.at(index);
    const bool good = std::isnan(w) ? std::isnan(g) : std::isinf(w) ? g == w : std::abs(g - w) <= tolerance * (1 + std::abs(w));
    if (good || ++reported > 3) return;
    std::string where;
    for (int64_t i : index) where += std::to_string(i) + ",";
    ADD_FAILURE() << "at [" << where << "]: got " << g << ", want " << w;
  });
  EXPECT_LE(reported, 3) << "differences in all: " << reported;
}

}  // namespace onednn_test
