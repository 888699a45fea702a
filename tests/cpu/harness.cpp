#include "tests/cpu/harness.h"

#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>

namespace tenon::test {

tn_type Op::with_strides(uint32_t dtype, std::vector<int64_t> dims, std::vector<int64_t> strides) {
  tn_type t{};
  t.dtype = uint8_t(dtype);
  t.rank = uint8_t(dims.size());
  for (size_t i = 0; i < dims.size(); ++i) t.dim[i] = dims[i], t.stride[i] = strides[i];
  return t;
}
tn_type Op::dense(uint32_t dtype, std::vector<int64_t> dims) {
  std::vector<int64_t> strides(dims.size());
  int64_t s = 1;
  for (size_t i = dims.size(); i-- > 0; s *= dims[i]) strides[i] = s;
  return with_strides(dtype, std::move(dims), std::move(strides));
}
Op& Op::attr(uint32_t key, uint32_t type, int64_t i, double f, const void* p, uint64_t len) {
  tn_attr a{};
  a.key = key, a.type = type, a.len = len;
  if (type == TN_ATTR_I64) a.v.i = i;
  else if (type == TN_ATTR_F64) a.v.f = f;
  else a.v.p = p;
  attrs.push_back(a);
  return *this;
}
Op& Op::ints(uint32_t key, std::vector<int64_t> v) {
  lists.push_back(std::move(v));
  return attr(key, TN_ATTR_I64S, 0, 0, lists.back().data(), lists.back().size());
}
const tn_op* Op::get() {
  std::sort(attrs.begin(), attrs.end(), [](const tn_attr& x, const tn_attr& y) { return x.key < y.key; });
  op.type = types.data();
  op.attr = attrs.data();
  op.n_attr = uint16_t(attrs.size());
  op.push_bytes = uint32_t(8 * push.size());
  return &op;
}

namespace {
[[noreturn]] void stop(const std::string& what) {
  std::fprintf(stderr, "harness: %s\n", what.c_str());
  std::abort();
}
Pack& pack_of(void* ctx) { return *static_cast<Pack*>(ctx); }
void run_pieces(void* ctx, int64_t n, int64_t grain, tn_range_fn fn, void* arg) {
  const int64_t pieces = std::max<int64_t>(1, std::min<int64_t>(pack_of(ctx).threads, n / std::max<int64_t>(grain, 1)));
  std::vector<std::thread> team;
  for (int64_t i = 1; i < pieces; ++i)
    team.emplace_back([=] { fn(arg, n * i / pieces, n * (i + 1) / pieces, uint32_t(i)); });
  fn(arg, 0, n / pieces, 0);
  for (std::thread& t : team) t.join();
}
}  // namespace

Pack::Pack(const char* isa_cap, uint32_t n) : isa(isa_cap ? isa_cap : ""), threads(n) {
  library_ = dlopen(TENON_CPU_PLUGIN, RTLD_NOW | RTLD_LOCAL);
  if (!library_) stop(dlerror());
  auto query = reinterpret_cast<tn_plugin_query_fn>(dlsym(library_, "tn_plugin_query"));
  host_.size = sizeof host_;
  host_.abi = TN_ABI_CURRENT;
  host_.ctx = this;
  host_.log = [](void*, uint32_t, const char*, uint32_t) {};
  host_.alloc = [](void* ctx, uint64_t bytes, uint64_t align) -> void* {
    ++pack_of(ctx).live_allocs;
    return std::aligned_alloc(align, (bytes + align - 1) / align * align);
  };
  host_.free = [](void* ctx, void* p) { pack_of(ctx).live_allocs -= p != nullptr, std::free(p); };
  host_.config = [](void* ctx, const char* key) -> const char* {
    return std::strcmp(key, "cpu.isa") == 0 && !pack_of(ctx).isa.empty() ? pack_of(ctx).isa.c_str() : nullptr;
  };
  host_.threads = [](void* ctx) { return pack_of(ctx).threads; };
  host_.parallel = run_pieces;
  host_.cancelled = [](void*) { return 0; };
  table_ = query(TN_ABI_CURRENT, &host_);
  if (!table_) stop("no table");
  tn_diag diag{};
  if (table_->open(&host_, &instance_, &diag) != TN_OK) stop(diag.msg);
  uint32_t stride = 0;
  if (table_->kernels(instance_, &rows_, &stride, &n_rows_, &diag) != TN_OK || stride != sizeof(tn_kernel_info)) stop("kernels()");
  ref_.size = sizeof ref_;
  ref_.kind = TN_KIND_CPU;
}
Pack::~Pack() {
  uint32_t live = 1;
  table_->quiesce(instance_, 0, &live, nullptr);
  table_->close(instance_);
  dlclose(library_);
}
const tn_kernel_info* Pack::find(const std::string& name) const {
  for (uint32_t i = 0; i < n_rows_; ++i)
    if (name == rows_[i].name) return &rows_[i];
  return nullptr;
}
std::string Pack::refusal(const std::string& name, Op& op, double* est_ns) {
  const tn_kernel_info* k = find(name);
  if (!k) return "no row " + name;
  const tn_op* o = op.get();
  for (uint32_t i = 0; i < k->n_cons; ++i) {
    const tn_constraint& c = k->cons[i];
    for (uint32_t j = 0; j < uint32_t{o->n_in} + o->n_out; ++j) {
      const tn_type& t = o->type[j];
      if ((c.operand != TN_ANY_OPERAND && c.operand != j) || t.dtype == 0) continue;
      if (c.kind == TN_NEED_DTYPE && !(c.mask >> t.dtype & 1)) return "dtype of operand " + std::to_string(j);
      if (c.kind == TN_NEED_RANK && (t.rank < c.lo || t.rank > c.hi)) return "rank of operand " + std::to_string(j);
    }
  }
  tn_support s{};
  s.size = sizeof s;
  tn_diag d{};
  if (k->supports && k->supports(instance_, &ref_, o, &s, &d) != TN_OK) return d.msg[0] ? d.msg : "refused";
  if (est_ns) *est_ns = s.est_ns;
  return "";
}
const tn_kernel_plan* Pack::prepare(const std::string& name, Op& op) {
  if (std::string why = refusal(name, op); !why.empty()) stop(name + ": " + why);
  const tn_kernel_plan* plan = nullptr;
  tn_diag d{};
  if (find(name)->prepare(instance_, &ref_, op.get(), &plan, &d) != TN_OK) stop(name + ": " + d.msg);
  return plan;
}
void Pack::retire(const std::string& name, const tn_kernel_plan* plan) { find(name)->retire(instance_, &ref_, plan); }
tn_status Pack::launch(const tn_kernel_plan* plan, const std::vector<void*>& views, const Op& op, void* workspace, const int64_t* dyn, tn_diag* diag) {
  tn_view v[40] = {};
  for (size_t i = 0; i < views.size(); ++i) v[i].host = views[i];
  if (workspace) v[views.size()].host = workspace, v[views.size()].bytes = plan->workspace_bytes;
  tn_launch l{v, uint32_t(views.size() + (workspace ? 1 : 0)), uint32_t(8 * op.push.size()), op.push.data(), nullptr, diag, dyn};
  return plan->launch(plan, &l);
}
tn_status Pack::run(const std::string& name, Op& op, const std::vector<void*>& views, const int64_t* dyn, tn_diag* diag) {
  const tn_kernel_plan* plan = prepare(name, op);
  if (plan->n_views != views.size()) stop(name + ": views");
  std::unique_ptr<void, decltype(&std::free)> work(plan->workspace_bytes ? std::aligned_alloc(64, (plan->workspace_bytes + 63) / 64 * 64) : nullptr, &std::free);
  const tn_status s = launch(plan, views, op, work.get(), dyn, diag);
  retire(name, plan);
  return s;
}

namespace {
template <class T>
double distance(T got, long double exact, int digits, int least) {
  if (std::isnan(exact)) return std::isnan(got) ? 0 : INFINITY;
  if (std::isinf(static_cast<T>(exact)) || std::isinf(got)) {
    if (static_cast<long double>(got) == static_cast<long double>(static_cast<T>(exact))) return 0;
  }
  if (std::isnan(got)) return INFINITY;
  const int e = exact == 0 ? least : std::max(least, std::ilogb(exact));
  return double(std::fabs(static_cast<long double>(got) - exact) / std::ldexp(1.0L, e - digits + 1));
}
}  // namespace
double ulp_error(float got, long double exact) { return distance(got, exact, 24, -126); }
double ulp_error(double got, long double exact) { return distance(got, exact, 53, -1022); }

}  // namespace tenon::test
