// TN-ARG: arguments of a call, of the C interface and of the C++ API.
#include <tenon/tenon.hpp>

#include <cstdlib>

#include "tests/errors/stage.h"
#include "tests/errors/tables.h"

namespace tenon::errors {
namespace {

const Program kAdd({{TN_OP_INPUT, TN_F32, 0, 0, 0}, {TN_OP_INPUT, TN_F32, 1, 0, 0}, {TN_OP_ADD, TN_F32, 0, 1, 0}}, 2, 0, {2});
const Program kTwice({{TN_OP_INPUT, TN_F32, 0, 0, 0}}, 1, 0, {0, 0});

Said intern(tn_type type) {
  Stage s;
  uint32_t id;
  return refused([&](tn_diag* d) { return tn_type_intern(s.rt, &type, &id, d); });
}
Said intern(const char* op, std::vector<tn_attr> attrs) {
  Stage s;
  uint32_t id;
  return refused([&](tn_diag* d) { return tn_attr_intern(s.rt, op ? s.op(op) : 0, attrs.data(), static_cast<uint32_t>(attrs.size()), &id, d); });
}
tn_attr attr(uint32_t key, uint32_t type, const void* p = nullptr, uint64_t len = 0) {
  tn_attr a{};
  a.key = key, a.type = type, a.v.p = p, a.len = len;
  return a;
}

// An addition called with raw arguments.
Said add_with(void (*change)(Stage&, tn_call_args&)) {
  Stage s;
  tn_tensor* in[2] = {s.tensor("f32[2]"), s.tensor("f32[2]")};
  tn_tensor* out[2] = {nullptr, nullptr};
  tn_call_args args{s.op("add"), 0, 0, 0, 2, 1, in, out, nullptr};
  change(s, args);
  return refused([&](tn_diag* d) { return tn_call(s.queue, &args, d); });
}

Said launch(const char* type, uint32_t n_in) {
  Stage s;
  const uint32_t t = s.type("f32[2]"), types[2] = {t, t};
  const tn_spec spec{s.op("add"), 0, s.cpu, 0, 2, 0, types};
  tn_plan* plan = nullptr;
  if (tn_plan_prepare(s.rt, &spec, &plan, nullptr)) return {};
  tn_tensor* in[2] = {s.tensor(type), s.tensor("f32[2]")};
  tn_tensor* out = nullptr;
  const tn_call_args args{0, 0, 0, 0, n_in, 1, in, &out, nullptr};
  const Said said = refused([&](tn_diag* d) { return tn_plan_launch(s.queue, plan, &args, d); });
  tn_plan_release(plan);
  return said;
}

Said wrap(const char* type, uint64_t bytes, size_t offset = 0) {
  Stage s;
  alignas(64) char memory[128];
  tn_tensor* t = nullptr;
  const uint32_t id = s.type(type);
  return refused([&](tn_diag* d) { return tn_tensor_from_host(s.rt, s.cpu, id, memory + offset, bytes, nullptr, nullptr, &t, d); });
}

tn_type f32(int64_t dim) {
  tn_type t{};
  t.dtype = TN_F32, t.rank = 1, t.dim[0] = dim, t.stride[0] = 1;
  return t;
}

Table interface_cases() {
  return {
      {"TN-ARG-001", "", [] { return Stage().infer("pointwise", "f32[2]", {program(TN_KEY_PROGRAM, kAdd)}); }},
      {"TN-ARG-002", "", [] { return Stage().infer("pointwise", "f32[2]"); }},
      {"TN-ARG-003", "", [] { return Stage().infer("add", "- -", {}, 1); }},
      {"TN-ARG-004", "", [] { return Stage().infer("reduce", "f32[2]", {integer(TN_KEY_MONOID, 99), list(TN_KEY_AXES, {0})}); }},
      {"TN-ARG-005", "without an operand", [] { return Stage().infer("reduce", "", {integer(TN_KEY_MONOID, TN_MONOID_SUM), list(TN_KEY_AXES, {})}); }},
      {"TN-ARG-005", "pre of two values", [] {
         return Stage().infer("reduce", "f32[2]", {integer(TN_KEY_MONOID, TN_MONOID_SUM), list(TN_KEY_AXES, {0}), program(TN_KEY_PRE, kTwice)});
       }},
      {"TN-ARG-006", "", [] { return Stage().infer("reduce", "f32[2]", {integer(TN_KEY_MONOID, TN_MONOID_SUM), list(TN_KEY_AXES, {0}), program(TN_KEY_POST, kAdd)}); }},
      {"TN-ARG-050", "", [] { return Stage().infer("matmul", "f32[2,2] f32[2,2] f32[2]"); }},
      {"TN-ARG-051", "", [] { return Stage().infer("matmul", "f32[2,2] f32[2,2]", {program(TN_KEY_POST, kAdd)}); }},
      {"TN-ARG-052", "", [] { return Stage().infer("scatter", "f32[3] i64[2] f32[2]", {integer(TN_KEY_AXIS, 0), integer(TN_KEY_MODE, 9)}); }},
      {"TN-ARG-201", "", [] { tn_type t = f32(2); t.dtype = 15; return intern(t); }},
      {"TN-ARG-202", "", [] { tn_type t = f32(2); t.rank = 9; return intern(t); }},
      {"TN-ARG-203", "", [] { tn_type t = f32(2); t.align_log2 = 40, t.reserved = 3; return intern(t); }},
      {"TN-ARG-204", "of a negative size", [] { return intern(f32(-2)); }},
      {"TN-ARG-204", "beyond the rank", [] { tn_type t = f32(2); t.dim[3] = 7; return intern(t); }},
      {"TN-ARG-205", "", [] { return intern(f32(INT64_MAX / 2)); }},
      {"TN-ARG-206", "", [] { return intern(nullptr, {attr(6, 77)}); }},
      {"TN-ARG-207", "", [] { return intern(nullptr, {attr(5, TN_ATTR_I64S, nullptr, 3)}); }},
      {"TN-ARG-208", "", [] { static const std::vector<int64_t> many((1 << 20) + 1); return intern(nullptr, {attr(5, TN_ATTR_I64S, many.data(), many.size())}); }},
      {"TN-ARG-209", "", [] { return intern(nullptr, {attr(6, TN_ATTR_I64), attr(6, TN_ATTR_I64)}); }},
      {"TN-ARG-210", "", [] {
         Stage s;
         const uint32_t derived = s.derive(s.op("sign"), 1);
         tn_tensor *x = s.tensor("f32[2]"), *in[3] = {x, x, x}, *out = s.tensor("f32[2]");
         const tn_call_args args{derived, 0, 0, 0, 3, 1, in, &out, nullptr};
         return refused([&](tn_diag* d) { return tn_call(s.queue, &args, d); });
       }},
      {"TN-ARG-211", "", [] { return add_with([](Stage& s, tn_call_args& a) { a.out[0] = s.tensor("f32[3]"); }); }},
      {"TN-ARG-212", "of half a slot", [] { return add_with([](Stage&, tn_call_args& a) { static uint64_t v = 0; a.push_bytes = 4, a.push = &v; }); }},
      {"TN-ARG-212", "without an address", [] { return add_with([](Stage&, tn_call_args& a) { a.push_bytes = 8; }); }},
      {"TN-ARG-213", "", [] {
         Stage s;
         return s.call(s.op("concat"), std::vector<tn_tensor*>(5000, s.tensor("f32[1]")));
       }},
      {"TN-ARG-214", "", [] {
         Stage other(Stage::kWithSim), s;
         tn_tensor* x = other.tensor("f32[2]", other.sim_queue);
         return s.call(s.op("add"), {x, x});
       }},
      {"TN-ARG-215", "", [] { return add_with([](Stage&, tn_call_args& a) { a.n_out = 2; }); }},
      {"TN-ARG-216", "", [] { return launch("f32[2]", 1); }},
      {"TN-ARG-217", "", [] { return launch("f32[3]", 2); }},
      {"TN-ARG-218", "", [] {
         Stage s;
         tn_tensor *a = s.tensor("f32[2]"), *b = s.tensor("f32[3]");
         return refused([&](tn_diag* d) { return tn_tensor_copy(s.queue, a, b, d); });
       }},
      {"TN-ARG-219", "", [] {
         Stage s;
         tn_tensor* a = s.tensor("f32[2]");
         const float one = 1;
         return refused([&](tn_diag* d) { return tn_tensor_write(s.queue, a, &one, 4, d); });
       }},
      {"TN-ARG-220", "", [] {
         Stage s;
         const tn_hooks hooks{};
         return refused([&](tn_diag* d) { return tn_set_hooks(s.rt, &hooks, d); });
       }},
      {"TN-ARG-221", "", [] { return intern("softmax", {attr(TN_KEY_AXES, TN_ATTR_I64S)}); }},
      {"TN-ARG-222", "", [] { return intern("softmax", {attr(TN_KEY_AXIS, TN_ATTR_F64)}); }},
      {"TN-ARG-223", "", [] { return intern("permute", {}); }},
      {"TN-ARG-224", "of a tensor", [] {
         Stage s;
         tn_tensor* t = nullptr;
         const uint32_t id = s.type("f32[?,3]");
         return refused([&](tn_diag* d) { return tn_tensor_create(s.queue, id, &t, d); });
       }},
      {"TN-ARG-224", "of a choice", [] {
         Stage s;
         const uint32_t type = s.type("f32[?,3]");
         const tn_spec spec{s.op("abs"), 0, s.cpu, 0, 1, 0, &type};
         uint32_t n = 0;
         return refused([&](tn_diag* d) { return tn_why(s.rt, &spec, nullptr, sizeof(tn_candidate), 0, &n, d); });
       }},
      {"TN-ARG-225", "", [] { return wrap("f32[4]{-1}", 16); }},
      {"TN-ARG-226", "", [] { return wrap("f32[4]", 12); }},
      {"TN-ARG-227", "", [] { return wrap("f32[4]", 16, 2); }},
      {"TN-ARG-240", "", [] { return keep_rates("/nonexistent", -1); }},
      {"TN-ARG-228", "", [] {
         Stage s;
         tn_tensor *t = s.tensor("f32[16]"), *view = nullptr;
         const uint32_t id = s.type("f32[8]");
         return refused([&](tn_diag* d) { return tn_tensor_view(t, id, 40, &view, d); });
       }},
  };
}

Table api_cases() {
  return {
      {"TN-ARG-101", "", [] { return thrown([] { add(Tensor(), tensor({1.f})); }); }},
      {"TN-ARG-102", "", [] { return thrown([] { zeros({6}).slice({Slice{0, 5, 0}}); }); }},
      {"TN-ARG-103", "", [] { return thrown([] { arange(0, 1, 0); }); }},
      {"TN-ARG-104", "", [] { return thrown([] { add(1, 2); }); }},
      {"TN-ARG-105", "", [] { return thrown([] { dropout(zeros({2}), 1); }); }},
      {"TN-ARG-106", "", [] { return thrown([] { concat({}); }); }},
  };
}

}  // namespace

Table arg_cases() {
  Table all = interface_cases();
  for (Case& c : api_cases()) all.push_back(std::move(c));
  return all;
}

}  // namespace tenon::errors
