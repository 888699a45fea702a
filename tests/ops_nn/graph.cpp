#include "tests/ops_nn/graph.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>

#include "ops/movement/rule_tools.h"
#include "tests/ops_nn/interpreter.h"

namespace tenon::ops::test {

int64_t count(const std::vector<int64_t>& dims) {
  int64_t n = 1;
  for (int64_t d : dims) n *= d;
  return n;
}

tn_op Node::op() const {
  tn_op op{};
  op.size = sizeof op;
  op.op_id = decl->def.op_id;
  op.op_version = 1;
  op.n_in = static_cast<uint16_t>(in.size());
  op.n_out = static_cast<uint16_t>(out.size());
  op.n_attr = static_cast<uint16_t>(attrs.size());
  op.attr = attrs.data();
  op.type = types.data();
  op.push_bytes = static_cast<uint32_t>(8 * push.size());
  return op;
}

const tn_dims* number_dims() {
  static const tn_dims dims{
      sizeof(tn_dims), 0, nullptr,
      [](void*, uint32_t op, int64_t a, int64_t b) -> int64_t {
        switch (op) {
          case TN_DIM_ADD: return a + b;
          case TN_DIM_SUB: return a - b;
          case TN_DIM_MUL: return a * b;
          case TN_DIM_FLOORDIV: return a / b - (a % b != 0 && (a < 0) != (b < 0));
          case TN_DIM_MOD: return ((a % b) + b) % b;
          case TN_DIM_MIN: return std::min(a, b);
          default: return std::max(a, b);
        }
      },
      [](void*, uint32_t relation, int64_t a, int64_t b, tn_diag*) -> tn_status {
        const bool holds = relation == TN_DIM_EQ ? a == b : relation == TN_DIM_LE ? a <= b : relation == TN_DIM_LT ? a < b : b % a == 0;
        return holds ? TN_OK : TN_E_SHAPE;
      },
      [](void*, int64_t lo, int64_t) -> int64_t { return lo; }};
  return &dims;
}

tn_type make_type(uint32_t dtype, const std::vector<int64_t>& dims) {
  tn_type t{};
  set_type(&t, dtype, dims, number_dims());
  return t;
}

tn_type channels_last_type(uint32_t dtype, const std::vector<int64_t>& d) {
  tn_type t = make_type(dtype, d);
  t.stride[1] = 1;
  t.stride[3] = d[1];
  t.stride[2] = d[1] * d[3];
  t.stride[0] = d[1] * d[3] * d[2];
  return t;
}

namespace {

void copy_attr(Node& node, const tn_attr& from) {
  tn_attr a = from;
  if (a.type == TN_ATTR_I64S) {
    const auto* p = static_cast<const int64_t*>(a.v.p);
    auto list = std::make_shared<std::vector<int64_t>>(p, p + a.len);
    a.v.p = list->data();
    node.keep.push_back(list);
  } else if (a.type == TN_ATTR_PROGRAM) {
    const auto* p = static_cast<const tn_program*>(a.v.p);
    auto inst = std::make_shared<std::vector<tn_inst>>(p->inst, p->inst + p->n_inst);
    auto program = std::make_shared<tn_program>(*p);
    program->inst = inst->data();
    a.v.p = program.get();
    node.keep.push_back(inst);
    node.keep.push_back(program);
  }
  node.attrs.push_back(a);
}

tn_status emit_node(tn_builder* b, const tn_emit* e, tn_diag* d) {
  Node node;
  node.decl = find_op(e->op_id);
  if (node.decl == nullptr) return fail(d, TN_E_NOT_FOUND, 0, "no op %llu", static_cast<unsigned long long>(e->op_id));
  for (uint32_t i = 0; i < e->n_attr; ++i) copy_attr(node, e->attr[i]);
  for (uint32_t i = 0; i < e->n_in; ++i) {
    node.in.push_back(e->in[i]);
    node.types.push_back(e->in[i] == TN_NONE ? tn_type{} : b->types.at(e->in[i]));
  }
  for (uint32_t i = 0; i < e->n_push; ++i)
    node.push.push_back(e->push[i].from == TN_NONE || b->slots == nullptr ? e->push[i] : b->slots->at(e->push[i].from));
  node.out.resize(e->n_out);
  std::vector<tn_type> out(e->n_out);
  const tn_op op = node.op();
  if (tn_status s = node.decl->def.infer(node.decl->def.ctx, &op, number_dims(), out.data(), d); s != TN_OK) return s;
  for (uint32_t i = 0; i < e->n_out; ++i) {
    node.out[i] = static_cast<uint32_t>(b->types.size());
    b->types.push_back(out[i]);
    node.types.push_back(out[i]);
    e->out[i] = node.out[i];
  }
  b->nodes.push_back(std::move(node));
  return TN_OK;
}

[[noreturn]] void raise(const std::string& what, const tn_diag& d) { throw std::runtime_error(what + ": " + d.msg); }

// The nodes `decl`'s expansion writes, into b, given values for its inputs.
std::vector<uint32_t> expand_into(tn_builder& b, const Node& node, const std::vector<uint32_t>& in) {
  std::vector<uint32_t> result(node.out.size(), TN_NONE);
  const tn_op op = node.op();
  tn_rule r{sizeof(tn_rule), TN_RULE_EXPAND};
  r.op = &op;
  r.in = in.data();
  r.result = result.data();
  r.need = ~uint64_t{0};
  const auto* before = b.slots;
  b.slots = &node.push;
  tn_diag d{};
  if (node.decl->def.expand == nullptr) throw std::runtime_error(std::string(node.decl->def.name) + " has no expansion");
  const tn_status s = node.decl->def.expand(node.decl->def.ctx, &b, &r, &d);
  b.slots = before;
  if (s != TN_OK) raise(std::string("expand of ") + node.decl->def.name, d);
  return result;
}

void check_type(const Node& node, size_t output, const tn_type& got, bool layouts) {
  const tn_type& want = node.types[node.in.size() + output];
  bool same = got.dtype == want.dtype && got.rank == want.rank && std::equal(got.dim, got.dim + got.rank, want.dim);
  bool empty = false;
  for (int i = 0; i < want.rank; ++i) empty = empty || want.dim[i] == 0;
  for (int i = 0; same && layouts && !empty && i < want.rank; ++i) same = want.dim[i] == 1 || got.stride[i] == want.stride[i];
  if (!same) throw std::runtime_error(std::string(node.decl->def.name) + ": expansion gives " + type_text(got) + " or other strides, infer says " + type_text(want));
}

std::vector<Array> evaluate_node(const Node& node, const std::vector<Array>& in, bool layouts) {
  std::vector<Array> out;
  if (interpret(node, in, &out)) return out;
  tn_builder sub;
  std::vector<uint32_t> ids;
  for (size_t i = 0; i < node.in.size(); ++i) {
    ids.push_back(node.types[i].dtype == 0 ? TN_NONE : static_cast<uint32_t>(sub.types.size()));
    if (ids.back() != TN_NONE) sub.types.push_back(node.types[i]);
  }
  const std::vector<uint32_t> result = expand_into(sub, node, ids);
  for (size_t i = 0; i < result.size(); ++i)
    if (result[i] != TN_NONE) check_type(node, i, sub.types[result[i]], layouts);
  return evaluate(sub, ids, in, result);
}

}  // namespace

std::vector<Array> evaluate(tn_builder& b, const std::vector<uint32_t>& inputs, const std::vector<Array>& arrays,
                            const std::vector<uint32_t>& wanted) {
  std::map<uint32_t, Array> values;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i] != TN_NONE) values[inputs[i]] = arrays[i];
  for (const Node& node : b.nodes) {
    std::vector<Array> in;
    for (uint32_t id : node.in) in.push_back(id == TN_NONE ? Array{0, {}, {}} : values.at(id));
    const std::vector<Array> out = evaluate_node(node, in, b.check_layouts);
    for (size_t i = 0; i < out.size(); ++i) values[node.out[i]] = out[i];
  }
  std::vector<Array> result;
  for (uint32_t id : wanted) result.push_back(id == TN_NONE ? Array{0, {}, {}} : values.at(id));
  return result;
}

namespace {

void add_to(tn_builder& b, std::map<uint32_t, uint32_t>& cotangent, uint32_t value, uint32_t more) {
  auto [at, fresh] = cotangent.emplace(value, more);
  if (!fresh) at->second = emit(b, {TN_OPID_ADD, {}, {}, 1}, {at->second, more})[0];
}

}  // namespace

std::vector<uint32_t> derive(tn_builder& b, const std::vector<uint32_t>& in, const std::vector<uint32_t>& out,
                             const std::vector<uint32_t>& seeds) {
  std::map<uint32_t, uint32_t> cotangent;
  for (size_t i = 0; i < out.size(); ++i)
    if (seeds[i] != TN_NONE) add_to(b, cotangent, out[i], seeds[i]);
  for (size_t k = b.nodes.size(); k-- > 0;) {
    const Node node = b.nodes[k];  // a copy: rules add nodes
    std::vector<uint32_t> seed;
    bool any = false;
    for (uint32_t id : node.out) {
      const auto at = cotangent.find(id);
      seed.push_back(at == cotangent.end() ? TN_NONE : at->second);
      any = any || seed.back() != TN_NONE;
      // A value asked for is where the chain begins: nothing flows past it.
      if (std::find(in.begin(), in.end(), id) != in.end()) any = false, seed.back() = TN_NONE;
    }
    if (!any) continue;
    std::vector<uint32_t> result(node.in.size(), TN_NONE);
    if (node.decl->def.vjp != nullptr) {
      const tn_op op = node.op();
      tn_rule r{sizeof(tn_rule), TN_RULE_VJP};
      r.op = &op;
      r.in = node.in.data();
      r.out = node.out.data();
      r.seed = seed.data();
      r.result = result.data();
      r.need = ~uint64_t{0};
      const auto* before = b.slots;
      b.slots = &node.push;
      tn_diag d{};
      const tn_status s = node.decl->def.vjp(node.decl->def.ctx, &b, &r, &d);
      b.slots = before;
      if (s != TN_OK) raise(std::string("vjp of ") + node.decl->def.name, d);
    } else {
      const std::vector<uint32_t> expanded = expand_into(b, node, node.in);
      result = derive(b, node.in, expanded, seed);
    }
    for (size_t i = 0; i < node.in.size(); ++i) {
      if (result[i] == TN_NONE || node.in[i] == TN_NONE) continue;
      // An expansion's derivative by a value that is two operands holds both shares already.
      const auto first = std::find(node.in.begin(), node.in.end(), node.in[i]) - node.in.begin();
      if (node.decl->def.vjp == nullptr && first != static_cast<long>(i)) continue;
      const tn_type &want = b.types[node.in[i]], &got = b.types[result[i]];
      if (want.dtype != got.dtype || want.rank != got.rank || !std::equal(want.dim, want.dim + want.rank, got.dim))
        throw std::runtime_error(std::string(node.decl->def.name) + ": cotangent " + std::to_string(i) + " is " + type_text(got) + ", operand is " + type_text(want));
      add_to(b, cotangent, node.in[i], result[i]);
    }
  }
  std::vector<uint32_t> result;
  for (uint32_t id : in) result.push_back(cotangent.count(id) ? cotangent[id] : TN_NONE);
  return result;
}

std::vector<uint32_t> emit(tn_builder& b, const Call& call, const std::vector<uint32_t>& in) {
  tn_diag d{};
  tn_rule none{sizeof(tn_rule)};
  Emit e(&b, &none, &d);
  std::vector<Value> values;
  for (uint32_t id : in) values.push_back({id});
  const std::vector<Value> out = e.ops(call.op_id, values, call.attrs, call.push, call.n_out);
  if (!e.ok()) raise("emit", d);
  std::vector<uint32_t> ids;
  for (Value v : out) ids.push_back(v.id);
  return ids;
}

std::vector<Array> run_typed(const Call& call, const std::vector<Array>& in, const std::vector<tn_type>& types) {
  tn_builder b;
  std::vector<uint32_t> ids;
  for (size_t i = 0; i < in.size(); ++i) {
    ids.push_back(in[i].dtype == 0 ? TN_NONE : static_cast<uint32_t>(b.types.size()));
    if (ids.back() != TN_NONE) b.types.push_back(types[i]);
  }
  return evaluate(b, ids, in, emit(b, call, ids));
}

std::vector<Array> run(const Call& call, const std::vector<Array>& in) {
  std::vector<tn_type> types;
  for (const Array& a : in) types.push_back(make_type(a.dtype, a.dims));
  return run_typed(call, in, types);
}

tn_status infer_only(const Call& call, const std::vector<tn_type>& in, std::vector<tn_type>* out, tn_diag* d) {
  tn_builder b;
  std::vector<Value> ids;
  for (const tn_type& t : in) {
    ids.push_back(t.dtype == 0 ? Value{} : Value{static_cast<uint32_t>(b.types.size())});
    if (t.dtype != 0) b.types.push_back(t);
  }
  tn_rule none{sizeof(tn_rule)};
  Emit e(&b, &none, d);
  for (Value v : e.ops(call.op_id, ids, call.attrs, call.push, call.n_out))
    if (out != nullptr && e.ok()) out->push_back(b.types[v.id]);
  return e.status();
}

namespace {

std::vector<Number> weights_for(size_t n, unsigned salt) {
  std::vector<Number> w(n);
  for (size_t i = 0; i < n; ++i) w[i] = std::sin(1.7L * static_cast<Number>(i) + 0.3L + salt);
  return w;
}

// The graph of op (and, for order 2, of its derivative), with weights on every floating result.
struct Scalar {
  tn_builder b;
  std::vector<uint32_t> in, out, grads;
  std::vector<Array> arrays;
  size_t n_operands = 0;

  void add_seeds(std::vector<uint32_t>* seeds, unsigned salt) {
    for (size_t i = 0; i < out.size(); ++i) {
      const tn_type t = b.types[out[i]];
      seeds->push_back(TN_NONE);
      if (!is_float(t.dtype)) continue;
      Array w{t.dtype, {t.dim, t.dim + t.rank}, {}};
      w.data = weights_for(static_cast<size_t>(count(w.dims)), salt + static_cast<unsigned>(i));
      seeds->back() = static_cast<uint32_t>(b.types.size());
      b.types.push_back(make_type(t.dtype, w.dims));
      in.push_back(seeds->back());
      arrays.push_back(w);
    }
  }
  Number value(const std::vector<Array>& at) {
    const std::vector<Array> got = evaluate(b, in, at, out);
    Number sum = 0;
    size_t seed = n_operands + first_seed;
    for (const Array& a : got) {
      if (!is_float(a.dtype)) continue;
      for (size_t i = 0; i < a.data.size(); ++i) sum += a.data[i] * at[seed].data[i];
      ++seed;
    }
    return sum;
  }
  size_t first_seed = 0;
};

}  // namespace

double gradient_error(const Call& call, const std::vector<Array>& operands, int order) {
  Scalar s;
  s.n_operands = operands.size();
  for (const Array& a : operands) {
    s.in.push_back(a.dtype == 0 ? TN_NONE : static_cast<uint32_t>(s.b.types.size()));
    if (a.dtype != 0) s.b.types.push_back(make_type(a.dtype, a.dims));
    s.arrays.push_back(a);
  }
  s.out = emit(s.b, call, s.in);
  std::vector<uint32_t> wanted;
  for (size_t i = 0; i < operands.size(); ++i) wanted.push_back(s.in[i]);
  for (int pass = 1;; ++pass) {
    std::vector<uint32_t> seeds;
    s.first_seed = s.in.size() - s.n_operands;
    s.add_seeds(&seeds, static_cast<unsigned>(pass * 10));
    s.grads = derive(s.b, wanted, s.out, seeds);
    if (pass == order) break;
    s.out.clear();
    for (uint32_t g : s.grads)
      if (g != TN_NONE) s.out.push_back(g);
  }
  const std::vector<Array> by_rule = evaluate(s.b, s.in, s.arrays, s.grads);
  Number worst = 0, scale = 1e-3L;
  for (size_t i = 0; i < operands.size(); ++i) {
    if (!is_float(operands[i].dtype)) continue;
    for (size_t k = 0; k < operands[i].data.size(); ++k) {
      const Number h = 1e-5L;
      std::vector<Array> up = s.arrays, down = s.arrays;
      up[i].data[k] += h;
      down[i].data[k] -= h;
      const Number measured = (s.value(up) - s.value(down)) / (2 * h), ruled = by_rule[i].dtype == 0 ? 0 : by_rule[i].data[k];
      worst = std::max(worst, std::fabs(measured - ruled));
      scale = std::max(scale, std::fabs(measured));
      if (!(std::fabs(measured - ruled) < 1e300L)) return INFINITY;
    }
  }
  return static_cast<double>(worst / scale);
}

}  // namespace tenon::ops::test

// ---- the two functions of runtime.h that rules call --------------------------------------------------------------------
extern "C" const tn_builder_api* tn_builder_table(void) {
  static const tn_builder_api api = [] {
    tn_builder_api a{};
    a.size = sizeof a;
    a.emit = tenon::ops::test::emit_node;
    a.type = [](tn_builder* b, uint32_t v, tn_type* out, tn_diag* d) -> tn_status {
      if (v >= b->types.size()) return tenon::ops::fail(d, TN_E_ARG, 0, "no value %u", v);
      *out = b->types[v];
      return TN_OK;
    };
    a.dims = [](tn_builder*) { return tenon::ops::test::number_dims(); };
    return a;
  }();
  return &api;
}

extern "C" tn_status tn_builder_derive(tn_builder* b, uint32_t n_in, uint32_t n_out, const tn_rule* r, tn_diag*) {
  const auto* before = b->slots;
  const std::vector<uint32_t> result = tenon::ops::test::derive(*b, {r->in, r->in + n_in}, {r->out, r->out + n_out}, {r->seed, r->seed + n_out});
  b->slots = before;
  std::copy(result.begin(), result.end(), r->result);
  return TN_OK;
}
