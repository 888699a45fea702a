#include "tests/errors/stage.h"

#include <tenon/caps.h>

#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <sstream>
#include <stdexcept>

namespace tenon::errors {
namespace {

void must(tn_status status, const tn_diag& diag) {
  if (status != TN_OK) throw std::runtime_error(std::string("preparing the case failed: ") + diag.msg);
}

uint32_t dtype_of(const std::string& name) {
#define X(id, number, bits) if (name == #id) return number;
  std::string upper = "TN_";
  for (char c : name) upper += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  const struct { const char* text; uint32_t id; } rows[] = {
#undef X
#define X(id, number, bits) {#id, number},
      TN_DTYPES(X)
#undef X
  };
  for (const auto& row : rows)
    if (upper == row.text) return row.id;
  throw std::runtime_error("no element type " + name);
}

std::vector<int64_t> numbers(std::string text) {
  std::vector<int64_t> out;
  std::stringstream in(text);
  for (std::string one; std::getline(in, one, ',');) out.push_back(one == "?" ? TN_SYM(0) : std::stoll(one));
  return out;
}

}  // namespace

Program::Program(std::vector<tn_inst> code, uint8_t inputs, uint8_t slots, std::vector<uint16_t> outputs)
    : inst(std::move(code)), n_in(inputs), n_slots(slots), out(std::move(outputs)) {}

tn_program Program::get() const {
  tn_program p{};
  p.size = sizeof p;
  p.n_inst = static_cast<uint8_t>(inst.size());
  p.n_in = n_in;
  p.n_out = static_cast<uint8_t>(out.size());
  p.n_slots = n_slots;
  for (size_t i = 0; i < out.size() && i < TN_PROGRAM_MAX_OUT; ++i) p.out[i] = out[i];
  p.inst = inst.data();
  return p;
}

Attr integer(uint32_t key, int64_t value) { return {key, TN_ATTR_I64, value, {}, nullptr}; }
Attr list(uint32_t key, std::vector<int64_t> values) { return {key, TN_ATTR_I64S, 0, std::move(values), nullptr}; }
Attr program(uint32_t key, Program p) { return {key, TN_ATTR_PROGRAM, 0, {}, std::make_shared<Program>(std::move(p))}; }

tn_type type_of(const std::string& text) {
  tn_type t{};
  if (text == "-") return t;
  const size_t open = text.find('['), close = text.find(']');
  t.dtype = static_cast<uint8_t>(dtype_of(text.substr(0, open)));
  const std::vector<int64_t> dims = numbers(text.substr(open + 1, close - open - 1));
  t.rank = static_cast<uint8_t>(dims.size());
  int64_t stride = 1;
  for (size_t k = dims.size(); k-- > 0;) {
    t.dim[k] = dims[k];
    t.stride[k] = stride;
    if (!TN_IS_SYM(dims[k]) && !TN_IS_SYM(stride)) stride *= dims[k];
  }
  if (const size_t brace = text.find('{'); brace != std::string::npos) {
    const std::vector<int64_t> strides = numbers(text.substr(brace + 1, text.size() - brace - 2));
    for (size_t k = 0; k < strides.size(); ++k) t.stride[k] = strides[k];
  }
  return t;
}

std::string plugin_file(const char* name) { return std::string(TENON_PLUGINS "/libtenon_backend_") + name + ".so"; }

Stage::Stage(Plugins plugins, uint32_t flags, uint32_t policy) {
  tn_diag diag{};
  tn_runtime_options options{};
  options.size = sizeof options;
  options.flags = flags | TN_RT_NO_SEARCH;
  options.policy = policy;
  options.threads = 1;
  must(tn_runtime_create(&options, &rt, &diag), diag);
  must(tn_device_find(rt, "cpu:0", TN_POLICY_REQUIRE, &cpu, &diag), diag);
  must(tn_queue_get(rt, cpu, &queue, &diag), diag);
  if (plugins != kWithSim) return;
  must(tn_plugin_load(rt, plugin_file("sim").c_str(), nullptr, &diag), diag);
  if (flags & TN_RT_NO_EMULATED) return;
  must(tn_device_find(rt, "sim:0", TN_POLICY_REQUIRE, &sim, &diag), diag);
  must(tn_queue_get(rt, sim, &sim_queue, &diag), diag);
}

Stage::~Stage() {
  for (tn_tensor* t : tensors_) tn_tensor_release(t);
  tn_runtime_destroy(rt, TN_FOREVER, nullptr);
}

uint32_t Stage::op(const char* name) {
  tn_diag diag{};
  uint32_t id = 0;
  must(tn_op_find(rt, name, 0, &id, &diag), diag);
  return id;
}

uint32_t Stage::type(const std::string& text) {
  tn_diag diag{};
  uint32_t id = 0;
  const tn_type t = type_of(text);
  if (t.dtype) must(tn_type_intern(rt, &t, &id, &diag), diag);
  return id;
}

uint32_t Stage::attrs(uint32_t op, const std::vector<Attr>& given) {
  if (given.empty()) return 0;  // also where the op demands some: what then is said is a case, too
  std::vector<tn_attr> raw;
  std::vector<tn_program> programs;
  programs.reserve(given.size());
  for (const Attr& a : given) {
    tn_attr out{};
    out.key = a.key;
    out.type = a.type;
    out.v.i = a.i;
    if (a.type == TN_ATTR_I64S) out.v.p = a.list.data(), out.len = a.list.size();
    if (a.program) programs.push_back(a.program->get()), out.v.p = &programs.back(), out.len = 1;
    raw.push_back(out);
  }
  tn_diag diag{};
  uint32_t id = 0;
  must(tn_attr_intern(rt, op, raw.data(), static_cast<uint32_t>(raw.size()), &id, &diag), diag);
  return id;
}

tn_tensor* Stage::keep(tn_tensor* t) {
  tensors_.push_back(t);
  return t;
}

tn_tensor* Stage::tensor(const std::string& text, tn_queue* on) {
  tn_diag diag{};
  tn_tensor* t = nullptr;
  tn_queue* q = on ? on : queue;
  must(tn_tensor_create(q, type(text), &t, &diag), diag);
  uint64_t bytes = 1;
  const tn_type full = type_of(text);
  for (int k = 0; k < full.rank; ++k) bytes *= static_cast<uint64_t>(full.dim[k]);
  uint64_t bits = 0;
#define X(id, number, size) if (full.dtype == number) bits = size;
  TN_DTYPES(X)
#undef X
  const std::vector<char> zeros(bytes * bits / 8);
  must(tn_tensor_write(q, t, zeros.data(), zeros.size(), &diag), diag);
  return keep(t);
}

tn_tensor* Stage::i64(std::vector<int64_t> values) {
  tn_tensor* t = tensor("i64[" + std::to_string(values.size()) + "]");
  tn_diag diag{};
  must(tn_tensor_write(queue, t, values.data(), 8 * values.size(), &diag), diag);
  return t;
}

Said Stage::infer(const char* name, const std::string& operands, const std::vector<Attr>& given, uint32_t slots) {
  std::vector<uint32_t> types;
  std::stringstream in(operands);
  for (std::string one; in >> one;) types.push_back(type(one));
  const tn_spec spec{op(name), attrs(op(name), given), 0, 8 * slots, static_cast<uint32_t>(types.size()), 0, types.data()};
  uint32_t ids[16], n = 0;
  return refused([&](tn_diag* d) { return tn_infer(rt, &spec, ids, 16, &n, d); });
}

Said Stage::call(uint32_t id, std::vector<tn_tensor*> in, const std::vector<Attr>& given, uint32_t slots, uint32_t n_out) {
  std::vector<tn_tensor*> out(n_out, nullptr);
  const std::vector<uint64_t> push(slots, 0);
  const tn_call_args args{id, attrs(0, given), 0, 8 * slots, static_cast<uint32_t>(in.size()), n_out, in.data(), out.data(), push.data()};
  const Said s = refused([&](tn_diag* d) { return tn_call(queue, &args, d); });
  for (tn_tensor* t : out) tn_tensor_release(t);
  return s;
}

Said Stage::call(const char* name, const std::string& operands, const std::vector<Attr>& given, uint32_t slots, uint32_t n_out) {
  std::vector<tn_tensor*> tensors;
  std::stringstream in(operands);
  for (std::string one; in >> one;) tensors.push_back(one == "-" ? nullptr : tensor(one));
  return call(op(name), tensors, given, slots, n_out);
}

uint32_t Stage::derive(uint32_t base, uint64_t need, uint64_t seeds) {
  tn_derive how{};
  how.size = sizeof how;
  how.rule = TN_RULE_VJP;
  how.seeds = seeds;
  how.need = need;
  tn_diag diag{};
  uint32_t id = 0;
  must(tn_op_derive(rt, base, &how, &id, &diag), diag);
  return id;
}

// ---- a plugin without a runtime ---------------------------------------------------------------------------------------

namespace {

const char* config(void* ctx, const char* key) {
  const auto* d = static_cast<Direct*>(ctx);
  return d->key == key ? d->value.c_str() : nullptr;
}
void* alloc(void*, uint64_t bytes, uint64_t align) { return std::aligned_alloc(std::max<uint64_t>(align, 64), (bytes + 127) / 64 * 64); }
void release(void*, void* p) { std::free(p); }
void nothing(void*, uint32_t, const char*, uint32_t) {}
uint32_t one_thread(void*) { return 1; }
void inline_parallel(void*, int64_t n, int64_t, tn_range_fn fn, void* arg) { fn(arg, 0, n, 0); }
int32_t never(void*) { return 0; }
uint64_t no_trace(void*, uint64_t, const char*) { return 0; }
void no_progress(void*, tn_dev_timeline*, uint64_t) {}

}  // namespace

Direct::Direct(const char* name, const char* k, const char* v) : key(k), value(v) {
  void* library = dlopen(plugin_file(name).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) throw std::runtime_error(dlerror());
  const auto query = reinterpret_cast<tn_plugin_query_fn>(dlsym(library, "tn_plugin_query"));
  host.size = sizeof host;
  host.abi = TN_ABI_CURRENT;
  host.ctx = this;
  host.log = nothing;
  host.alloc = alloc;
  host.free = release;
  host.config = config;
  host.threads = one_thread;
  host.parallel = inline_parallel;
  host.cancelled = never;
  host.trace = no_trace;
  host.progress = no_progress;
  table = query(TN_ABI_CURRENT, &host);
  open_diag.size = sizeof open_diag;
  opened = table->open(&host, &instance, &open_diag);
  static tn_device_info info{};
  info.size = sizeof info;
  info.kind = TN_KIND_CPU;
  ref.size = sizeof ref;
  ref.index = 1;
  ref.kind = TN_KIND_CPU;
  ref.info = &info;
}

Direct::~Direct() {
  uint32_t live = 0;
  if (opened == TN_OK) table->quiesce(instance, 0, &live, nullptr), live == 0 ? table->close(instance) : void();
}

const tn_kernel_info* Direct::kernel(const std::string& name) const {
  const tn_kernel_info* rows = nullptr;
  uint32_t stride = 0, n = 0;
  table->kernels(instance, &rows, &stride, &n, nullptr);
  for (uint32_t i = 0; i < n; ++i) {
    const auto* row = reinterpret_cast<const tn_kernel_info*>(reinterpret_cast<const char*>(rows) + size_t{i} * stride);
    if (name == row->name) return row;
  }
  throw std::runtime_error("the plugin has no kernel " + name);
}

Said keep_rates(const char* cache, double value) {
  if (!cache) setenv("TENON_CONFIG", "loader.cache=off", 1);
  tn_runtime_options o{};
  o.size = sizeof o, o.flags = TN_RT_NO_SEARCH, o.threads = 1, o.cache_dir = cache;
  tn_runtime* rt = nullptr;
  const tn_status made = tn_runtime_create(&o, &rt, nullptr);
  if (!cache) unsetenv("TENON_CONFIG");
  uint32_t device = 0;
  if (made || tn_device_find(rt, "cpu:0", TN_POLICY_REQUIRE, &device, nullptr)) return {};
  tn_cap cap{TN_CAPKEY_BANDWIDTH, TN_CAP_F64, TN_FROM_MEASURED, {}};
  cap.v.f = value;
  const Said said = refused([&](tn_diag* d) { return tn_rates_keep(rt, device, &cap, 1, d); });
  tn_runtime_destroy(rt, TN_FOREVER, nullptr);
  return said;
}

}  // namespace tenon::errors
