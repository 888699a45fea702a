#include "tools/conformance/machine.h"

#include <tenon/ops.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <stdexcept>

#include "ops/emit.h"

namespace tenon::conformance {
namespace {

tn_diag empty_diag() {
  tn_diag d{};
  d.size = sizeof d;
  return d;
}

void need(tn_status status, const tn_diag& diag, const char* what) {
  if (status != TN_OK) throw std::runtime_error(std::string(what) + ": " + tn_status_text(status) + "\n" + diag.msg);
}

constexpr uint32_t kMostRows = 256;

struct Held {
  std::vector<tn_tensor*> list;
  explicit Held(size_t n) : list(n, nullptr) {}
  ~Held() {
    for (tn_tensor* t : list) tn_tensor_release(t);
  }
};

}  // namespace

Machine::Machine(const std::vector<std::string>& files, uint32_t threads) {
  tn_runtime_options options{};
  options.size = sizeof options;
  options.flags = TN_RT_NO_SEARCH;
  options.threads = threads;
  tn_diag d = empty_diag();
  need(tn_runtime_create(&options, &runtime_, &d), d, "tn_runtime_create");
  for (const std::string& file : files) need(tn_plugin_load(runtime_, file.c_str(), nullptr, &d), d, file.c_str());
}

Machine::~Machine() {
  tn_diag d = empty_diag();
  if (tn_runtime_destroy(runtime_, TN_FOREVER, &d) != TN_OK) std::fprintf(stderr, "tn_runtime_destroy: %s\n", d.msg);
}

uint32_t Machine::device(const std::string& name) {
  const auto [at, fresh] = devices_.try_emplace(name, 0);
  if (fresh && tn_device_find(runtime_, name.c_str(), TN_POLICY_REQUIRE, &at->second, nullptr) != TN_OK) at->second = 0;
  return at->second;
}

uint32_t Machine::op(const std::string& name) {
  const auto [at, fresh] = ops_.try_emplace(name, 0);
  tn_diag d = empty_diag();
  if (fresh) need(tn_op_find(runtime_, name.c_str(), 0, &at->second, &d), d, name.c_str());
  return at->second;
}

// A call in the words of the C functions: ids of types and attributes.
struct Machine::Spec {
  tn_spec spec{};
  std::vector<uint32_t> types;
  tn_status status = TN_OK;
  std::string message;

  Spec(Machine* m, uint32_t op, const Call& call, uint32_t device) {
    spec.op = op;
    spec.device = device;
    spec.attr = m->intern_attrs(m->op(call.op), call, &status, &message);
    spec.push_bytes = static_cast<uint32_t>(8 * call.push.size());
    spec.flags = TN_CALL_REQUIRE;
    tn_diag d = empty_diag();
    for (const Array& a : call.in) {
      uint32_t id = 0;
      const tn_type t = place(a).type;
      if (!a.absent()) need(tn_type_intern(m->runtime_, &t, &id, &d), d, "tn_type_intern");
      types.push_back(id);
    }
    spec.in = types.data();
    spec.n_in = static_cast<uint32_t>(types.size());
  }
};

uint32_t Machine::intern_attrs(uint32_t op, const Call& call, tn_status* status, std::string* message) {
  std::vector<ops::CaseAttr> sorted = call.attrs;
  std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.key < b.key; });
  std::vector<tn_attr> attrs;
  std::vector<std::unique_ptr<ops::ProgramBuilder>> builders;
  // Push slots are numbered once for all programs of an op; cases give only slots of their own.
  for (const ops::CaseAttr& a : sorted) {
    tn_attr t{};
    t.key = a.key;
    switch (a.kind) {
      case ops::CaseAttr::Kind::I64: t.type = TN_ATTR_I64, t.v.i = a.i, t.len = 1; break;
      case ops::CaseAttr::Kind::F64: t.type = TN_ATTR_F64, t.v.f = a.f, t.len = 1; break;
      case ops::CaseAttr::Kind::I64s: t.type = TN_ATTR_I64S, t.v.p = a.list.data(), t.len = a.list.size(); break;
      case ops::CaseAttr::Kind::Program:
        builders.push_back(std::make_unique<ops::ProgramBuilder>(call.program_dtype));
        a.program(*builders.back());
        t.type = TN_ATTR_PROGRAM, t.v.p = builders.back()->finish(), t.len = 1;
        break;
    }
    attrs.push_back(t);
  }
  if (attrs.empty()) return 0;
  tn_diag d = empty_diag();
  uint32_t id = 0;
  *status = tn_attr_intern(runtime_, op, attrs.data(), static_cast<uint32_t>(attrs.size()), &id, &d);
  if (*status != TN_OK) *message = d.msg;
  return id;
}

tn_tensor* Machine::make(const Array& a, tn_queue* queue, std::string* message) {
  const Placement p = place(a);
  const tn_type whole = place({a.dtype, {p.elements}, {}}).type;
  tn_diag d = empty_diag();
  uint32_t whole_id = 0, id = 0;
  need(tn_type_intern(runtime_, &whole, &whole_id, &d), d, "tn_type_intern");
  need(tn_type_intern(runtime_, &p.type, &id, &d), d, "tn_type_intern");
  const std::vector<unsigned char> bytes = laid_out(a, p);
  Held storage(1);
  tn_tensor* view = nullptr;
  if (tn_tensor_create(queue, whole_id, &storage.list[0], &d) != TN_OK || tn_tensor_write(queue, storage.list[0], bytes.data(), bytes.size(), &d) != TN_OK ||
      tn_tensor_view(storage.list[0], id, static_cast<uint64_t>(p.first) * byte_size(a.dtype), &view, &d) != TN_OK)
    *message = d.msg;
  return view;
}

std::vector<tn_candidate> Machine::why(const Call& call, const std::string& device_name) {
  const Spec s(this, op(call.op), call, device(device_name));
  std::vector<tn_candidate> rows(kMostRows);
  uint32_t n = 0;
  tn_diag d = empty_diag();
  if (s.status != TN_OK || tn_why(runtime_, &s.spec, rows.data(), sizeof rows[0], static_cast<uint32_t>(rows.size()), &n, &d) != TN_OK) n = 0;
  rows.resize(std::min<size_t>(n, rows.size()));
  return rows;
}

std::vector<tn_candidate> Machine::planned(const Call& call, const std::string& device_name) {
  const Spec s(this, op(call.op), call, device(device_name));
  std::vector<tn_candidate> all, rows(kMostRows);
  tn_diag d = empty_diag();
  tn_plan* plan = nullptr;
  if (s.status != TN_OK || tn_plan_prepare(runtime_, &s.spec, &plan, &d) != TN_OK) return all;
  uint32_t n = 0;
  for (uint32_t step = 0; tn_why_plan(plan, step, rows.data(), sizeof rows[0], kMostRows, &n, &d) == TN_OK; ++step)
    all.insert(all.end(), rows.begin(), rows.begin() + std::min(n, kMostRows));
  tn_plan_release(plan);
  return all;
}

std::vector<Candidate> Machine::candidates(const Call& call, const std::string& device_name, bool parts) {
  std::vector<Candidate> list;
  for (const tn_candidate& row : why(call, device_name)) {
    if (row.why != TN_WHY_WON && row.why != TN_WHY_SLOWER && row.why != TN_WHY_TIER && row.why != TN_WHY_NAME) continue;
    list.push_back({row.kernel, {}, {}});
    if (row.kind != TN_ROW_EXPAND || !parts) continue;
    for (const char* part : {"pointwise", "reduce"})
      for (const std::string& kernel : rows_of(part, device_name)) list.push_back({row.kernel, part, kernel});
  }
  return list;
}

// Names of the kernels that a device's primitive has, whether or not they take one small call.
std::vector<std::string> Machine::rows_of(const std::string& name, const std::string& device_name) {
  const auto [at, fresh] = rows_.try_emplace(name + device_name);
  if (!fresh) return at->second;
  Call probe{name, {}, {array(TN_F32, {2}, {1, 2})}};
  ops::CaseAttr a;
  if (name == "pointwise") {
    a.key = TN_KEY_PROGRAM, a.kind = ops::CaseAttr::Kind::Program;
    a.program = [](ops::ProgramBuilder& p) { p.output(p.op(TN_OP_NEG, p.input(0))); };
    probe.attrs = {a};
  } else {
    a.key = TN_KEY_AXES, a.kind = ops::CaseAttr::Kind::I64s, a.list = {0};
    ops::CaseAttr monoid;
    monoid.key = TN_KEY_MONOID, monoid.i = TN_MONOID_SUM;
    probe.attrs = {a, monoid};
  }
  for (const tn_candidate& row : why(probe, device_name))
    if (row.kind == TN_ROW_KERNEL && row.why != TN_WHY_DEVICE) at->second.push_back(row.kernel);
  return at->second;
}

Outcome Machine::infer(const Call& call) {
  Outcome o;
  const Spec s(this, op(call.op), call, 0);
  if ((o.status = s.status) != TN_OK) return o.message = s.message, o;
  std::vector<uint32_t> types(16);
  uint32_t n = 0;
  tn_diag d = empty_diag();
  o.status = tn_infer(runtime_, &s.spec, types.data(), static_cast<uint32_t>(types.size()), &n, &d);
  if (o.status != TN_OK) return o.message = d.msg, o;
  for (uint32_t i = 0; i < n; ++i) {
    tn_type t{};
    if (types[i] != 0) need(tn_type_get(runtime_, types[i], &t, &d), d, "tn_type_get");
    o.out.push_back({t.dtype, {t.dim, t.dim + t.rank}, {}});
  }
  return o;
}

tn_status Machine::infer_types(const Call& call, const std::vector<tn_type>& in, std::vector<tn_type>* out, std::string* message) {
  tn_status status = TN_OK;
  const uint32_t op_id = op(call.op), attr = intern_attrs(op_id, call, &status, message);
  if (status != TN_OK) return status;
  tn_diag d = empty_diag();
  std::vector<uint32_t> ids(in.size()), types(16);
  for (size_t i = 0; i < in.size(); ++i)
    if (in[i].dtype != 0) need(tn_type_intern(runtime_, &in[i], &ids[i], &d), d, "tn_type_intern");
  uint32_t n = 0;
  const tn_spec spec{op_id, attr, 0, static_cast<uint32_t>(8 * call.push.size()), static_cast<uint32_t>(in.size()), 0, ids.data()};
  status = tn_infer(runtime_, &spec, types.data(), static_cast<uint32_t>(types.size()), &n, &d);
  if (status != TN_OK) return *message = d.msg, status;
  for (uint32_t i = 0; i < n; ++i) {
    out->push_back({});
    if (types[i] != 0) need(tn_type_get(runtime_, types[i], &out->back(), &d), d, "tn_type_get");
  }
  return TN_OK;
}

Outcome Machine::run_op(uint32_t op_id, const Call& call, const std::string& device_name) {
  Outcome o;
  Spec s(this, op_id, call, device(device_name));
  if ((o.status = s.status) != TN_OK) return o.message = s.message, o;
  tn_diag d = empty_diag();
  tn_queue* queue = nullptr;
  need(tn_queue_get(runtime_, s.spec.device, &queue, &d), d, "tn_queue_get");
  uint32_t types[32], n = 0;
  if ((o.status = tn_infer(runtime_, &s.spec, types, 32, &n, &d)) != TN_OK) return o.message = d.msg, o;
  Held in(call.in.size()), out(n);
  for (size_t i = 0; i < call.in.size(); ++i)
    if (!call.in[i].absent() && (in.list[i] = make(call.in[i], queue, &o.message)) == nullptr) return o.status = TN_E_FAILED, o;
  const tn_call_args args{s.spec.op, s.spec.attr, TN_CALL_REQUIRE, s.spec.push_bytes, s.spec.n_in, n, in.list.data(), out.list.data(), call.push.data()};
  if ((o.status = tn_call(queue, &args, &d)) != TN_OK) return o.message = d.msg, o;
  for (tn_tensor* t : out.list) {
    Array a;
    if (t != nullptr) {
      tn_type type;
      tn_tensor_describe(t, &type);
      a = {type.dtype, {type.dim, type.dim + type.rank}, {}};
      std::vector<unsigned char> bytes(count(a.dims) * byte_size(a.dtype));
      if ((o.status = tn_tensor_read(queue, t, bytes.data(), bytes.size(), &d)) != TN_OK) return o.message = d.msg, o;
      for (size_t i = 0; i < count(a.dims); ++i) a.v.push_back(decode(a.dtype, &bytes[i * byte_size(a.dtype)]));
    }
    o.out.push_back(std::move(a));
  }
  return o;
}

Outcome Machine::run(const Call& call, const std::string& device_name) { return run_op(op(call.op), call, device_name); }

Outcome Machine::run(const Call& call, const std::string& device_name, const Candidate& c) {
  const uint32_t id = op(call.op), dev = device(device_name);
  tn_diag d = empty_diag();
  need(tn_pin(runtime_, id, dev, c.kernel.c_str(), &d), d, "tn_pin");
  if (!c.part.empty()) need(tn_pin(runtime_, op(c.part), dev, c.part_kernel.c_str(), &d), d, "tn_pin");
  Outcome o = run(call, device_name);
  tn_pin(runtime_, id, dev, nullptr, nullptr);
  if (!c.part.empty()) tn_pin(runtime_, op(c.part), dev, nullptr, nullptr);
  return o;
}

uint32_t Machine::derive(uint32_t op_id, uint64_t seeds, uint64_t needed) {
  tn_derive how{};
  how.size = sizeof how;
  how.rule = TN_RULE_VJP;
  how.seeds = seeds;
  how.need = needed;
  uint32_t id = 0;
  tn_diag d = empty_diag();
  need(tn_op_derive(runtime_, op_id, &how, &id, &d), d, "tn_op_derive");
  return id;
}

tn_status Machine::attributes(const Call& call, const tn_attr** out, uint32_t* out_n, std::string* message) {
  tn_status status = TN_OK;
  const uint32_t id = intern_attrs(op(call.op), call, &status, message);
  *out = nullptr, *out_n = 0;
  if (status != TN_OK || id == 0) return status;
  tn_diag d = empty_diag();
  status = tn_attr_get(runtime_, id, out, out_n, &d);
  if (status != TN_OK) *message = d.msg;
  return status;
}

Machine& reference_machine() {
  static Machine m({});
  return m;
}

}  // namespace tenon::conformance
