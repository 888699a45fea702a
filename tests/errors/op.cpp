// TN-OP: ops, their rules, scalar programs, graphs and plans.
#include <cstring>

#include "tests/errors/fake.h"
#include "tests/errors/stage.h"
#include "tests/errors/tables.h"

namespace tenon::errors {
namespace {

// ---- ops from outside, whose rules go wrong -----------------------------------------------------------------------

tn_status like_input(void*, const tn_op* op, const tn_dims*, tn_type* out, tn_diag*) { return *out = op->type[0], TN_OK; }

constexpr uint64_t own(uint64_t n) { return uint64_t{1} << 63 | n; }

tn_op_def definition(const char* name, uint64_t number) {
  tn_op_def def{};
  def.size = sizeof def;
  def.op_id = number;
  def.version = 1, def.n_in = 1, def.n_out = 1;
  def.name = name;
  def.infer = like_input;
  return def;
}

uint32_t define(Stage& s, const tn_op_def& def) {
  uint32_t id = 0;
  tn_op_define(s.rt, &def, &id, nullptr);
  return id;
}

tn_status emit(tn_builder* b, uint64_t op, std::vector<uint32_t> in, uint32_t* out, tn_diag* diag) {
  tn_emit e{};
  e.size = sizeof e;
  e.op_id = op;
  e.n_in = static_cast<uint16_t>(in.size());
  e.n_out = 1;
  e.in = in.data();
  e.out = out;
  return tn_builder_table()->emit(b, &e, diag);
}

tn_status goes_on_after_an_error(void*, tn_builder* b, const tn_rule* rule, tn_diag* diag) {
  emit(b, own(99), {rule->in[0]}, rule->result, diag);
  return TN_OK;
}
tn_status into_nothing(void*, tn_builder*, const tn_rule* rule, tn_diag*) { return rule->result[0] = TN_NONE, TN_OK; }
tn_status of_nothing(void*, tn_builder* b, const tn_rule* rule, tn_diag* diag) {
  uint32_t zero = 0;
  if (tn_status s = emit(b, own(1), {rule->in[0]}, &zero, diag)) return s;
  return emit(b, TN_OPID_ADD, {zero, rule->in[0]}, rule->result, diag);
}

Said call_own(tn_rule_fn expand) {
  Stage s;
  static tn_op_def nothing, def;
  nothing = definition("nothing", own(1));
  nothing.expand = into_nothing;
  define(s, nothing);
  def = definition("own", own(2));
  def.expand = expand;
  return s.call(define(s, def), {s.tensor("f32[2]")});
}

Said define_only(void (*change)(tn_op_def&)) {
  Stage s;
  static tn_op_def def;
  def = definition("own", own(2));
  change(def);
  uint32_t id;
  return refused([&](tn_diag* d) { return tn_op_define(s.rt, &def, &id, d); });
}

// ---- programs -------------------------------------------------------------------------------------------------------

Said intern(const tn_program& p) {
  Stage s;
  uint32_t id;
  return refused([&](tn_diag* d) { return tn_program_intern(s.rt, &p, &id, d); });
}
Said intern(const Program& p) { return intern(p.get()); }

constexpr tn_inst kIn{TN_OP_INPUT, TN_F32, 0, 0, 0};

// ---- builders ---------------------------------------------------------------------------------------------------------

Said build(const std::function<tn_status(Stage&, tn_builder*, tn_diag*)>& body) {
  Stage s;
  tn_builder* b = nullptr;
  if (tn_builder_create(s.rt, &b, nullptr)) return {};
  const Said said = refused([&](tn_diag* d) { return body(s, b, d); });
  tn_builder_destroy(b);
  return said;
}

Said derived(uint32_t rule, uint64_t need) {
  Stage s;
  tn_derive how{};
  how.size = sizeof how;
  how.rule = rule, how.seeds = 1, how.need = need;
  uint32_t id;
  return refused([&](tn_diag* d) { return tn_op_derive(s.rt, s.op("add"), &how, &id, d); });
}

// ---- kernels asked directly ------------------------------------------------------------------------------------------

Said ask(const char* plugin, const char* kernel, std::vector<tn_type> types, uint16_t n_in, uint64_t op_id, std::vector<tn_attr> attrs = {}, bool prepare = false) {
  Direct direct(plugin);
  const tn_kernel_info* row = direct.kernel(kernel);
  tn_op op{};
  op.size = sizeof op;
  op.op_id = op_id;
  op.op_version = 1;
  op.n_in = n_in, op.n_out = static_cast<uint16_t>(types.size() - n_in);
  op.type = types.data();
  op.attr = attrs.data(), op.n_attr = static_cast<uint16_t>(attrs.size());
  tn_support support{};
  support.size = sizeof support;
  const tn_kernel_plan* plan = nullptr;
  return refused([&](tn_diag* d) {
    if (!prepare) return row->supports(direct.instance, &direct.ref, &op, &support, d);
    const tn_status s = row->prepare(direct.instance, &direct.ref, &op, &plan, d);
    if (s == TN_OK) row->retire(direct.instance, &direct.ref, plan);
    return s;
  });
}

Table op_table_cases() {
  return {
      {"TN-OP-001", "", [] { return define_only([](tn_op_def& d) { d.infer = nullptr; }); }},
      {"TN-OP-002", "", [] { return define_only([](tn_op_def& d) { d.op_id = 1 << 20; }); }},
      {"TN-OP-003", "", [] { return define_only([](tn_op_def& d) { d.op_id = TN_OPID_ADD, d.name = "add"; }); }},
      {"TN-OP-004", "of a call", [] { Stage s; return s.call(999999, {s.tensor("f32[2]")}); }},
      {"TN-OP-004", "of a pin", [] { Stage s; return refused([&](tn_diag* d) { return tn_pin(s.rt, 999999, 0, "x", d); }); }},
      {"TN-OP-005", "", [] { return derived(TN_RULE_JVP, 1); }},
      {"TN-OP-005", "of a builder", [] {
         return build([](Stage&, tn_builder* b, tn_diag* d) {
           tn_rule rule{};
           rule.size = sizeof rule, rule.kind = TN_RULE_BATCH;
           return tn_builder_derive(b, 0, 0, &rule, d);
         });
       }},
      {"TN-OP-006", "", [] { return derived(TN_RULE_VJP, 0); }},
      {"TN-OP-007", "", [] { Stage s; uint32_t id; return refused([&](tn_diag* d) { return tn_op_find(s.rt, "sofmax", 0, &id, d); }); }},
      {"TN-OP-007", "of a version", [] { Stage s; uint32_t id; return refused([&](tn_diag* d) { return tn_op_find(s.rt, "softmax", 9, &id, d); }); }},
      {"TN-OP-008", "", [] { Stage s; return s.call(s.derive(s.op("add"), 1), {s.tensor("f32[2]")}); }},
      {"TN-OP-009", "", [] { return Stage().infer("add", "f32[2]"); }},
      {"TN-OP-016", "", [] {
         Stage s;
         static tn_op_def def;
         def = definition("own", own(2));
         tn_tensor* x = s.tensor("f32[2]");
         return s.call(s.derive(define(s, def), 1), {x, x, x});
       }},
      {"TN-OP-018", "", [] { return call_own(goes_on_after_an_error); }},
      {"TN-OP-019", "of an op without kernels", [] { return call_own(nullptr); }},
      {"TN-OP-019", "of a pinned kernel", [] {
         Stage s;
         tn_pin(s.rt, s.op("matmul"), 0, "other.matmul", nullptr);
         return s.call("matmul", "f32[2,2] f32[2,2]");
       }},
      {"TN-OP-050", "", [] {
         Stage s;
         fake = Fake{};
         uint32_t index = 0, device = 0;
         if (tn_plugin_link(s.rt, "test.fake", fake_query, &index, nullptr) || tn_device_find(s.rt, "fake:0", TN_POLICY_REQUIRE, &device, nullptr)) return Said{};
         if (tn_plugin_unload(s.rt, 0, TN_FOREVER, nullptr)) return Said{};  // and with it the only kernels of matmul
         const uint32_t t = s.type("f32[2,2]"), types[2] = {t, t};
         const tn_spec spec{s.op("matmul"), 0, device, 0, 2, 0, types};
         tn_plan* plan = nullptr;
         return refused([&](tn_diag* d) { return tn_plan_prepare(s.rt, &spec, &plan, d); });
       }},
      {"TN-OP-120", "", [] { return Stage().call("leaky_relu", "f32[2]"); }},
      {"TN-OP-122", "", [] { return call_own(of_nothing); }},
      {"TN-OP-123", "reads it", [] {
         Stage s;
         return s.call(s.op("add"), {TN_TYPE_ONLY(s.type("f32[2]")), s.tensor("f32[2]")});
       }},
      {"TN-OP-123", "returns it", [] {
         Stage s;
         return s.call(s.op("reshape"), {TN_TYPE_ONLY(s.type("f32[2]"))}, {list(TN_KEY_DIMS, {2, 1})});
       }},
      {"TN-OP-125", "", [] {
         Stage s;
         const uint32_t t = s.type("f32[2]"), types[2] = {t, t};
         const tn_spec spec{s.op("add"), 0, s.cpu, 0, 2, 0, types};
         uint64_t in, out;
         return refused([&](tn_diag* d) { return tn_op_reads(s.rt, &spec, &in, &out, d); });
       }},
      {"TN-OP-127", "saving", [] { return refused([&](tn_diag* d) { return tn_plan_save(nullptr, nullptr, nullptr, d); }); }},
      {"TN-OP-127", "loading", [] { return refused([&](tn_diag* d) { return tn_plan_load(nullptr, nullptr, 0, nullptr, d); }); }},
      {"TN-OP-128", "", [] {
         Stage s;
         const uint32_t t = s.type("f32[2]"), types[2] = {t, t};
         const tn_spec spec{s.op("add"), 0, s.cpu, 0, 2, 0, types};
         tn_plan* plan = nullptr;
         if (tn_plan_prepare(s.rt, &spec, &plan, nullptr)) return Said{};
         uint32_t n;
         const Said said = refused([&](tn_diag* d) { return tn_why_plan(plan, 99, nullptr, sizeof(tn_candidate), 0, &n, d); });
         tn_plan_release(plan);
         return said;
       }},
      {"TN-OP-129", "", [] { return refused([&](tn_diag* d) { return tn_tune(nullptr, nullptr, 0, d); }); }},
  };
}

Table program_cases() {
  return {
      {"TN-OP-020", "not filled in", [] { return intern(tn_program{}); }},
      {"TN-OP-020", "computes nothing", [] { return intern(Program({kIn}, 1, 0, {})); }},
      {"TN-OP-021", "", [] { return intern(Program(std::vector<tn_inst>(65, kIn), 1, 0, {0})); }},
      {"TN-OP-022", "", [] { return intern(Program({{63, TN_F32, 0, 0, 0}}, 1, 0, {0})); }},
      {"TN-OP-023", "of an input", [] { return intern(Program({{TN_OP_INPUT, TN_F32, 3, 0, 0}}, 1, 0, {0})); }},
      {"TN-OP-023", "of a push slot", [] { return intern(Program({{TN_OP_CONST, TN_F32, 1, 0, 0}}, 0, 1, {0})); }},
      {"TN-OP-024", "", [] { return intern(Program({kIn, {TN_OP_ADD, TN_F32, 0, 7, 0}}, 1, 0, {1})); }},
      {"TN-OP-025", "", [] { return intern(Program({kIn, {TN_OP_INPUT, TN_I32, 0, 0, 0}}, 1, 0, {1})); }},
      {"TN-OP-026", "", [] { return intern(Program({kIn, {TN_OP_INPUT, TN_F64, 1, 0, 0}, {TN_OP_ADD, TN_F32, 0, 1, 0}}, 2, 0, {2})); }},
      {"TN-OP-027", "", [] { return intern(Program({kIn, {TN_OP_LT, TN_F32, 0, 0, 0}}, 1, 0, {1})); }},
      {"TN-OP-028", "", [] { return intern(Program({kIn}, 1, 0, {5})); }},
      {"TN-OP-029", "", [] { return intern(Program({{TN_OP_INPUT, TN_F16, 0, 0, 0}, {TN_OP_ADD, TN_F16, 0, 0, 0}}, 1, 0, {1})); }},
  };
}

Table builder_cases() {
  return {
      {"TN-OP-010", "", [] { return build([](Stage&, tn_builder* b, tn_diag* d) { uint32_t v; return emit(b, TN_OPID_ABS, {99}, &v, d); }); }},
      {"TN-OP-011", "", [] { return build([](Stage&, tn_builder* b, tn_diag* d) { uint32_t v; return emit(b, 9999, {}, &v, d); }); }},
      {"TN-OP-012", "", [] {
         return build([](Stage&, tn_builder* b, tn_diag* d) {
           const tn_type t = type_of("f32[2,3]{1,2}");
           const float data[6] = {};
           uint32_t v;
           return tn_builder_table()->constant(b, &t, data, &v, d);
         });
       }},
      {"TN-OP-013", "", [] { return build([](Stage&, tn_builder* b, tn_diag* d) { const uint32_t v = 9; return tn_builder_table()->output(b, &v, 1, d); }); }},
      {"TN-OP-014", "", [] { return build([](Stage&, tn_builder* b, tn_diag* d) { tn_type t; return tn_builder_table()->type(b, 9, &t, d); }); }},
      {"TN-OP-015", "", [] { return build([](Stage&, tn_builder* b, tn_diag* d) { tn_builder* r; uint32_t v; return tn_builder_table()->region(b, &r, &v, d); }); }},
      {"TN-OP-124", "", [] {
         return build([](Stage&, tn_builder* b, tn_diag* d) {
           uint32_t v;
           emit(b, 9999, {}, &v, nullptr);
           tn_plan* plan;
           return tn_builder_compile(b, nullptr, &plan, d);
         });
       }},
      {"TN-OP-126", "", [] { return build([](Stage&, tn_builder* b, tn_diag* d) { tn_emit e{}; uint32_t n; return tn_builder_node(b, 5, &e, &n, d); }); }},
  };
}

Table kernel_cases() {
  return {
      {"TN-OP-040", "", [] { return ask("onednn", "onednn.matmul", {type_of("i64[2,2]"), type_of("i64[2,2]"), type_of("i64[2,2]")}, 2, TN_OPID_MATMUL); }},
      {"TN-OP-060", "", [] {
         return ask("cpu", "cpu.matmul.micro_f32", {type_of("f32[512,512]"), type_of("f32[512,512]"), type_of("f32[512,512]")}, 2, TN_OPID_MATMUL);
       }},
      {"TN-OP-060", "prepared without asking", [] {
         const Program complex({{TN_OP_INPUT, TN_C64, 0, 0, 0}, {TN_OP_NEG, TN_C64, 0, 0, 0}}, 1, 0, {1});
         const tn_program p = complex.get();
         tn_attr a{};
         a.key = TN_KEY_PROGRAM, a.type = TN_ATTR_PROGRAM, a.v.p = &p, a.len = 1;
         return ask("cpu", "cpu.pointwise.dense", {type_of("c64[4]"), type_of("c64[4]")}, 1, TN_OPID_POINTWISE, {a}, true);
       }},
      {"TN-OP-062", "", [] {
         Stage s;
         tn_diag diag{};
         if (tn_plugin_load(s.rt, plugin_file("cpu").c_str(), nullptr, &diag)) return Said{};
         tn_pin(s.rt, s.op("gather"), 0, "cpu.gather", nullptr);
         return s.call(s.op("gather"), {s.tensor("f32[6]"), s.i64({1, 6})}, {integer(TN_KEY_AXIS, 0)});
       }},
  };
}

}  // namespace

Table op_cases() {
  Table all = op_table_cases();
  for (Table more : {program_cases(), builder_cases(), kernel_cases()})
    for (Case& c : more) all.push_back(std::move(c));
  return all;
}

}  // namespace tenon::errors
