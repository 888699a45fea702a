// Packed operands: the errors of several families. A kernel pack made by hand stores b; see tests/pack/reversed.h.
#include <tenon/tenon.hpp>

#include "tests/errors/fake.h"
#include "tests/errors/stage.h"
#include "tests/errors/tables.h"
#include "tests/pack/reversed.h"

namespace tenon::errors {
namespace {

using test::Reversed;

// A stage with the hand-made matmul, b: f32[5,3], and p: b packed.
struct Packs : Stage {
  explicit Packs(Plugins plugins = kReference, void (*change)(Reversed&) = nullptr) : Stage(plugins) {
    test::reset_reversed();
    if (change) change(test::reversed(0));
    linked = refused([&](tn_diag* d) { return tn_plugin_link(rt, "test.reversed", test::reversed_query(0), nullptr, d); });
    b = tensor("f32[5,3]");
    packed = pack("f32[4,5] f32[5,3]", 1, b, &p);
    keep(p);
  }
  Said pack(const std::string& types, uint32_t operand, tn_tensor* t, tn_tensor** out = nullptr, tn_queue* on = nullptr) {
    const size_t space = types.find(' ');
    const uint32_t in[2] = {type(types.substr(0, space)), type(types.substr(space + 1))};
    const tn_spec spec{op("matmul"), 0, cpu, 0, 2, 0, in};
    tn_tensor* unwanted = nullptr;
    const Said s = refused([&](tn_diag* d) { return tn_tensor_pack(on ? on : queue, &spec, operand, t, out ? out : &unwanted, d); });
    tn_tensor_release(unwanted);
    return s;
  }
  // The error that made the last plugin unusable.
  Said in_cause() {
    uint32_t n = 0;
    tn_plugins(rt, nullptr, 0, 0, &n, nullptr);
    std::vector<tn_plugin_entry> all(n);
    tn_plugins(rt, all.data(), sizeof all[0], n, &n, nullptr);
    return said_in_cause(all.back());
  }
  Said linked, packed;
  tn_tensor *b = nullptr, *p = nullptr;
};

// ---- what packed tensors do not do -------------------------------------------------------------------------------------

Said backward_through_it() {
  Packs s;
  tn_tensor *a = s.tensor("f32[4,5]"), *y = s.tensor("f32[4,3]");
  return s.call(s.derive(s.op("matmul"), 1), {a, s.p, y, y});
}

Said result_into_it() {
  Packs s;
  tn_tensor *in[2] = {s.b, s.b}, *out = s.p;
  const tn_call_args args{s.op("add"), 0, 0, 0, 2, 1, in, &out, nullptr};
  return refused([&](tn_diag* d) { return tn_call(s.queue, &args, d); });
}

Said product_elsewhere() {
  Packs s(Stage::kWithSim);
  tn_tensor *in[2] = {s.tensor("f32[4,5]"), s.p}, *out = nullptr;
  const tn_call_args args{s.op("matmul"), 0, 0, 0, 2, 1, in, &out, nullptr};
  return refused([&](tn_diag* d) { return tn_call(s.sim_queue, &args, d); });
}

Table use_cases() {
  return {
      {"TN-OP-130", "of a read", [] {
         Packs s;
         float host[15];
         return refused([&](tn_diag* d) { return tn_tensor_read(s.queue, s.p, host, sizeof host, d); });
       }},
      {"TN-OP-130", "of a copy", [] { Packs s; return refused([&](tn_diag* d) { return tn_tensor_copy(s.queue, s.p, s.b, d); }); }},
      {"TN-OP-130", "of a result", result_into_it},
      {"TN-OP-131", "", [] { Packs s; return s.call(s.op("permute"), {s.p}, {list(TN_KEY_PERM, {1, 0})}); }},
      {"TN-OP-132", "", backward_through_it},
      {"TN-OP-134", "", product_elsewhere},
      {"TN-OP-138", "of no kind", [] { Stage s; tn_type t = type_of("f32[2]"); t.layout = 1; uint32_t id; return refused([&](tn_diag* d) { return tn_type_intern(s.rt, &t, &id, d); }); }},
      {"TN-OP-138", "of no plugin", [] { Stage s; tn_type t = type_of("f32[2]"); t.layout = 200; uint32_t id; return refused([&](tn_diag* d) { return tn_type_intern(s.rt, &t, &id, d); }); }},
  };
}

// ---- what cannot be packed -----------------------------------------------------------------------------------------------

Said pinned_elsewhere() {
  Packs s;
  tn_pin(s.rt, s.op("matmul"), s.cpu, "reference.matmul", nullptr);
  return s.pack("f32[4,5] f32[5,3]", 1, s.b);
}

Table pack_cases() {
  return {
      {"TN-OP-133", "no kernel at all", [] {
         Stage s;
         tn_tensor *b = s.tensor("f32[5,3]"), *out = nullptr;
         const uint32_t in[2] = {s.type("f32[4,5]"), s.type("f32[5,3]")};
         const tn_spec spec{s.op("matmul"), 0, s.cpu, 0, 2, 0, in};
         return refused([&](tn_diag* d) { return tn_tensor_pack(s.queue, &spec, 1, b, &out, d); });
       }},
      {"TN-OP-133", "the nearest kernel declines", [] { return Packs(Stage::kReference, [](Reversed& r) { r.refuse_supports = true; }).packed; }},
      {"TN-OP-133", "the kernel cannot store it", [] { return Packs(Stage::kReference, [](Reversed& r) { r.refuse_bytes = true; }).packed; }},
      {"TN-OP-133", "another operand", [] { Packs s; return s.pack("f32[4,5] f32[5,3]", 0, s.tensor("f32[4,5]")); }},
      {"TN-OP-133", "another kernel is pinned", pinned_elsewhere},
      {"TN-OP-135", "", [] { Packs s; return s.pack("f32[4,5] f32[5,3]", 1, s.p); }},
      {"TN-OP-136", "", [] { Packs s; return s.pack("f32[4,5] f32[5,3]", 2, s.b); }},
      {"TN-OP-137", "", [] { Packs s; return s.pack("f32[4,5] f32[5,3]", 1, s.tensor("f32[5,4]")); }},
      {"TN-OP-139", "of a tensor", [] { Packs s(Stage::kWithSim); return s.pack("f32[4,5] f32[5,3]", 1, s.tensor("f32[5,3]", s.sim_queue)); }},
      {"TN-OP-139", "of a queue", [] { Packs s(Stage::kWithSim); return s.pack("f32[4,5] f32[5,3]", 1, s.b, nullptr, s.sim_queue); }},
      {"TN-SHAPE-112", "", [] { return thrown([] { prepack(zeros({3, 4, 5})); }); }},
      {"TN-ARG-118", "", [] { return thrown([] { prepack(zeros({4, 4}), 0); }); }},
      {"TN-GRAD-016", "of a weight", [] { return thrown([] { prepack(zeros({4, 4}).set_requires_grad(true)); }); }},
  };
}

// A product in training. Which layout the weight has depends on the machine, and is no part of the text that is compared.
Said product_in_training() {
  const Tensor p = prepack(zeros({48, 20}), 4);
  Said s = thrown([&] { matmul(zeros({4, 48}).set_requires_grad(true), p); });
  const size_t name = s.why.find("packed as "), end = s.why.find(',', name);
  if (name != std::string::npos && end != std::string::npos) s.why.replace(name, end - name, "packed as (its layout)");
  return s;
}

// ---- plugins that go wrong with it ---------------------------------------------------------------------------------------

// One row more than there are numbers for layouts.
Said one_layout_too_many() {
  constexpr size_t kRows = 129;
  static std::vector<std::string> names(kRows);
  static std::vector<tn_kernel_packed> packs(kRows);
  fake = Fake{};
  fake.kernels.resize(kRows);
  for (size_t i = 0; i < kRows; ++i) {
    names[i] = "test.layout" + std::to_string(i);
    packs[i] = {{sizeof packs[i], TN_EXT_KERNEL_PACKED, nullptr}, 1, 0, names[i].c_str(),
                [](tn_instance*, const tn_device_ref*, const tn_op*, uint64_t*, tn_diag*) { return tn_status{TN_E_UNSUPPORTED}; },
                [](tn_instance*, const tn_device_ref*, const tn_op*, const tn_view*, const tn_view*, tn_dev_queue*, tn_diag*) { return tn_status{TN_E_UNSUPPORTED}; }};
    tn_kernel_info& row = fake.kernels[i];
    row.size = sizeof row, row.next = &packs[i].ext, row.name = names[i].c_str(), row.op_id = TN_OPID_MATMUL;
    row.prepare = [](tn_instance*, const tn_device_ref*, const tn_op*, const tn_kernel_plan**, tn_diag*) { return tn_status{TN_E_UNSUPPORTED}; };
    row.retire = [](tn_instance*, const tn_device_ref*, const tn_kernel_plan*) {};
  }
  Packs s;  // its own layout is one of them
  tn_plugin_link(s.rt, "test.fake", fake_query, nullptr, nullptr);
  return s.in_cause();
}

Table plugin_cases() {
  return {
      {"TN-ABI-008", "", [] { return Packs(Stage::kReference, [](Reversed& r) { r.layout = "has a space"; }).in_cause(); }},
      {"TN-ABI-009", "", [] { return Packs(Stage::kReference, [](Reversed& r) { r.bytes = UINT64_MAX; }).packed; }},
      {"TN-STATE-013", "", one_layout_too_many},
      {"TN-LOAD-019", "by the layout of a row", [] { return Packs(Stage::kReference, [](Reversed& r) { r.layout = "has a space"; }).linked; }},
      {"TN-GRAD-016", "of a product", product_in_training},
  };
}

}  // namespace

Table packed_cases() {
  Table all = use_cases();
  for (Table more : {pack_cases(), plugin_cases()})
    for (Case& c : more) all.push_back(std::move(c));
  return all;
}

}  // namespace tenon::errors
