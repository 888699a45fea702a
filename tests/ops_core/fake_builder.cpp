#include "tests/ops_core/fake_builder.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "kernel/dims.h"
#include "ops/op.h"

struct tn_builder {
  tenon::test::Lab::State* state = nullptr;
};

namespace tenon::test {

using Index = std::vector<int64_t>;

Real& Tensor::at(const Index& index) const {
  int64_t p = offset;
  for (uint32_t i = 0; i < type.rank; ++i) p += index[i] * type.stride[i];
  return data->at(static_cast<size_t>(p));
}

namespace {

void each(const Index& dims, const std::function<void(const Index&)>& body) {
  if (std::find(dims.begin(), dims.end(), 0) != dims.end()) return;
  Index i(dims.size(), 0);
  for (;;) {
    body(i);
    size_t k = dims.size();
    while (k > 0 && ++i[k - 1] == dims[k - 1]) i[--k] = 0;
    if (k == 0) return;
  }
}

Index dims_of(const tn_type& t) { return {t.dim, t.dim + t.rank}; }

// Element of a tensor broadcast to the rank of `index`.
Real broadcast_at(const Tensor& t, const Index& index) {
  Index own(t.type.rank);
  for (uint32_t i = 0; i < t.type.rank; ++i) own[i] = t.type.dim[i] == 1 ? 0 : index[index.size() - t.type.rank + i];
  return t.at(own);
}

Real identity(int64_t monoid, uint32_t dtype) {
  const Real inf = std::numeric_limits<Real>::infinity();
  switch (monoid) {
    case TN_MONOID_SUM: case TN_MONOID_OR: return 0;
    case TN_MONOID_PROD: return 1;
    case TN_MONOID_AND: return dtype == TN_BOOL ? 1 : -1;
    case TN_MONOID_MAX: return -inf;
    default: return inf;
  }
}

Real combine(int64_t monoid, Real a, Real x) {
  switch (monoid) {
    case TN_MONOID_SUM: return a + x;
    case TN_MONOID_PROD: return a * x;
    case TN_MONOID_AND: return a != 0 && x != 0;
    case TN_MONOID_OR: return a != 0 || x != 0;
    case TN_MONOID_MAX: return std::isnan(a) || std::isnan(x) ? NAN : std::max(a, x);
    default: return std::isnan(a) || std::isnan(x) ? NAN : std::min(a, x);
  }
}

}  // namespace

struct Lab::State {
  tn_builder handle{this};
  std::vector<Tensor> values;
  std::vector<Node> tape;
  std::vector<Node>* record = nullptr;
  std::vector<uint64_t> slots;  // of the op whose rule runs
  kernel::ConcreteDims dims;
  tn_dims table = dims.table();
  tn_diag* error = nullptr;

  uint32_t add(Tensor t) {
    values.push_back(std::move(t));
    return static_cast<uint32_t>(values.size() - 1);
  }

  uint32_t fresh(tn_type type) {
    size_t n = 1;
    for (int64_t d : dims_of(type)) n *= static_cast<size_t>(d);
    return add({type, 0, std::make_shared<std::vector<Real>>(n)});
  }

  static tn_op op_of(const Node& n, const std::vector<tn_type>& types) {
    tn_op op{};
    op.size = sizeof op;
    op.op_id = n.op_id;
    op.op_version = 1;
    op.n_in = static_cast<uint16_t>(n.in.size());
    op.n_out = static_cast<uint16_t>(n.out.size());
    op.n_attr = static_cast<uint16_t>(n.attr.size());
    op.type = types.data();
    op.attr = n.attr.data();
    op.push_bytes = static_cast<uint32_t>(n.push.size() * 8);
    return op;
  }

  std::vector<tn_type> types_of(const Node& n, bool outputs) const {
    std::vector<tn_type> t;
    for (uint32_t v : n.in) t.push_back(v == TN_NONE ? tn_type{} : values[v].type);
    for (uint32_t v : n.out) t.push_back(outputs ? values[v].type : tn_type{});
    return t;
  }

  static Node copy_of(const tn_emit& e, const std::vector<uint64_t>& slots) {
    Node n;
    n.op_id = e.op_id;
    n.in.assign(e.in, e.in + e.n_in);
    n.out.assign(e.n_out, TN_NONE);
    n.attr.assign(e.attr, e.attr + e.n_attr);
    for (tn_attr& a : n.attr) own(a, &n);
    for (uint32_t k = 0; k < e.n_push; ++k) n.push.push_back(e.push[k].from == TN_NONE ? e.push[k].bits : slots.at(e.push[k].from));
    return n;
  }

  static void own(tn_attr& a, Node* n) {
    if (a.type == TN_ATTR_I64S) {
      const auto* p = static_cast<const int64_t*>(a.v.p);
      auto list = std::make_shared<Index>(p, p + a.len);
      a.v.p = list->data();
      n->keep.push_back(list);
    } else if (a.type == TN_ATTR_PROGRAM) {
      auto p = std::make_shared<tn_program>(*static_cast<const tn_program*>(a.v.p));
      auto inst = std::make_shared<std::vector<tn_inst>>(p->inst, p->inst + p->n_inst);
      p->inst = inst->data();
      a.v.p = p.get();
      n->keep.push_back(p);
      n->keep.push_back(inst);
    }
  }

  tn_status emit(const tn_emit& e, tn_diag* diag) {
    Node n = copy_of(e, slots);
    const ops::OpDecl* decl = ops::find_op(n.op_id);
    std::vector<tn_type> types = types_of(n, false);
    const tn_op op = op_of(n, types);
    tn_status s = decl->def.infer(decl->def.ctx, &op, &table, types.data() + n.in.size(), diag);
    if (s == TN_OK) s = dims.status(diag);
    std::vector<Node>* outer = std::exchange(record, nullptr);  // an op is one node, not its parts
    if (s == TN_OK) s = compute(n, *decl, types, diag);
    record = outer;
    if (s != TN_OK) return s;
    std::copy(n.out.begin(), n.out.end(), e.out);
    if (record) record->push_back(std::move(n));
    return TN_OK;
  }

  tn_status compute(Node& n, const ops::OpDecl& decl, const std::vector<tn_type>& types, tn_diag* diag) {
    const tn_op op = op_of(n, types);
    if (decl.def.view) {
      int64_t offset = 0;
      const tn_status s = decl.def.view(decl.def.ctx, &op, &table, &offset, diag);
      const Tensor& x = values[n.in[0]];
      if (s == TN_OK) n.out[0] = add({types[1], x.offset + offset, x.data});
      if (s != TN_E_UNSUPPORTED) return s;
    }
    if (n.op_id == TN_OPID_POINTWISE || n.op_id == TN_OPID_REDUCE || n.op_id == TN_OPID_COPY) {
      for (size_t k = 0; k < n.out.size(); ++k) n.out[k] = fresh(types[n.in.size() + k]);
      return primitive(n, op), TN_OK;
    }
    if (n.op_id == TN_OPID_PAD) return pad(n, op, types[1]), TN_OK;
    return run_rule(n, decl.def.expand, decl.def.ctx, {}, types, ~uint64_t{0}, &n.out, diag);
  }

  void primitive(const Node& n, const tn_op& op) {
    if (n.op_id == TN_OPID_POINTWISE) return pointwise(n, op);
    if (n.op_id == TN_OPID_REDUCE) return reduce(n, op);
    each(dims_of(op.type[0]), [&](const Index& i) { values[n.out[0]].at(i) = values[n.in[0]].at(i); });
  }

  std::vector<Real> inputs_at(const Node& n, const Index& i) const {
    std::vector<Real> in;
    for (uint32_t v : n.in) in.push_back(broadcast_at(values[v], i));
    return in;
  }

  void pointwise(const Node& n, const tn_op& op) {
    const tn_program& p = *ops::attr_program(op, TN_KEY_PROGRAM);
    const Index dims = dims_of(values[n.out[0]].type);
    each(dims, [&](const Index& i) {
      const std::vector<Real> out = run_program(p, inputs_at(n, i), n.push, i, dims);
      for (size_t k = 0; k < out.size(); ++k) values[n.out[k]].at(i) = out[k];
    });
  }

  void reduce(const Node& n, const tn_op& op) {
    const tn_program *pre = ops::attr_program(op, TN_KEY_PRE), *post = ops::attr_program(op, TN_KEY_POST);
    const int64_t monoid = ops::attr_i64(op, TN_KEY_MONOID, 0);
    const Index axes = ops::attr_ints(op, TN_KEY_AXES);
    const bool keep = ops::attr_i64(op, TN_KEY_KEEPDIMS, 0) != 0;
    tn_type full{};
    kernel::ConcreteDims d;
    const tn_dims t = d.table();
    ops::broadcast(&op, &t, &full, nullptr);
    const auto squeeze = [&](const Index& i) {
      Index o;
      for (size_t k = 0; k < i.size(); ++k) {
        const bool reduced = std::find(axes.begin(), axes.end(), static_cast<int64_t>(k)) != axes.end();
        if (!reduced || keep) o.push_back(reduced ? 0 : i[k]);
      }
      return o;
    };
    const Index out_dims = dims_of(values[n.out[0]].type);
    std::map<Index, Real> acc, best;
    each(out_dims, [&](const Index& i) { acc[i] = identity(monoid, op.type[0].dtype); });
    each(dims_of(full), [&](const Index& i) {
      const std::vector<Real> in = inputs_at(n, i);
      const Real x = pre ? run_program(*pre, in, n.push)[0] : in[0];
      const Index o = squeeze(i);
      if (monoid < TN_MONOID_ARGMAX) acc[o] = combine(monoid, acc[o], x);
      else if (!best.count(o) || (monoid == TN_MONOID_ARGMAX ? x > best[o] : x < best[o])) best[o] = x, acc[o] = static_cast<Real>(i[axes[0]]);
    });
    each(out_dims, [&](const Index& i) {
      const std::vector<Real> out = post ? run_program(*post, {acc[i]}, n.push) : std::vector<Real>{acc[i]};
      for (size_t k = 0; k < out.size(); ++k) values[n.out[k]].at(i) = out[k];
    });
  }

  void pad(Node& n, const tn_op& op, const tn_type& type) {
    const Index lo = ops::attr_ints(op, TN_KEY_LO), interior = ops::attr_ints(op, TN_KEY_INTERIOR, Index(type.rank));
    n.out[0] = fresh(type);
    each(dims_of(type), [&](const Index& i) { values[n.out[0]].at(i) = number_of(n.push.at(0), ops::compute_type(type.dtype)); });
    each(dims_of(op.type[0]), [&](const Index& i) {
      Index o = i;
      for (size_t k = 0; k < o.size(); ++k) {
        o[k] = lo[k] + i[k] * (interior[k] + 1);
        if (o[k] < 0 || o[k] >= type.dim[k]) return;
      }
      values[n.out[0]].at(o) = values[n.in[0]].at(i);
    });
  }

  tn_status run_rule(const Node& n, tn_rule_fn rule, void* ctx, const std::vector<uint32_t>& seeds,
                     const std::vector<tn_type>& types, uint64_t need, std::vector<uint32_t>* result, tn_diag* diag) {
    const tn_op op = op_of(n, types);
    tn_rule r{};
    r.size = sizeof r;
    r.op = &op;
    r.in = n.in.data();
    r.out = n.out.data();
    r.seed = seeds.data();
    r.result = result->data();
    r.need = need;
    const std::vector<uint64_t> saved = std::exchange(slots, n.push);
    const tn_status s = rule(ctx, &handle, &r, diag);
    slots = saved;
    return s;
  }

  // Adds the gradients of one node's inputs. An op without vjp is expanded and its parts are asked.
  tn_status back(const Node& n, std::map<uint32_t, uint32_t>* g, tn_diag* diag) {
    std::vector<uint32_t> seeds, result(n.in.size(), TN_NONE);
    for (uint32_t v : n.out) seeds.push_back(g->count(v) ? g->at(v) : TN_NONE);
    if (std::all_of(seeds.begin(), seeds.end(), [](uint32_t v) { return v == TN_NONE; })) return TN_OK;
    const ops::OpDecl& decl = *ops::find_op(n.op_id);
    const std::vector<tn_type> types = types_of(n, true);
    if (!decl.def.vjp) return back_through_expansion(n, decl, seeds, types, g, diag);
    const tn_status s = run_rule(n, decl.def.vjp, decl.def.ctx, seeds, types, ~uint64_t{0}, &result, diag);
    for (size_t i = 0; s == TN_OK && i < result.size(); ++i)
      if (result[i] != TN_NONE && n.in[i] != TN_NONE) accumulate(n.in[i], result[i], g);
    return s;
  }

  tn_status back_through_expansion(const Node& n, const ops::OpDecl& decl, const std::vector<uint32_t>& seeds,
                                   const std::vector<tn_type>& types, std::map<uint32_t, uint32_t>* g, tn_diag* diag) {
    std::vector<Node> parts;
    std::vector<Node>* outer = std::exchange(record, &parts);
    std::vector<uint32_t> out(n.out.size(), TN_NONE);
    const tn_status s = run_rule(n, decl.def.expand, decl.def.ctx, {}, types, ~uint64_t{0}, &out, diag);
    record = outer;
    if (outer) outer->insert(outer->end(), parts.begin(), parts.end());
    for (size_t k = 0; k < out.size(); ++k)
      if (seeds[k] != TN_NONE) accumulate(out[k], seeds[k], g);
    for (size_t k = parts.size(); s == TN_OK && k-- > 0;) {
      const tn_status part = back(parts[k], g, diag);
      if (part != TN_OK) return part;
    }
    return s;
  }

  void accumulate(uint32_t v, uint32_t add_value, std::map<uint32_t, uint32_t>* g) {
    const auto found = g->find(v);
    if (found == g->end()) {
      (*g)[v] = add_value;
      return;
    }
    const uint32_t in[2] = {found->second, add_value};
    tn_emit e{};
    uint32_t out = TN_NONE;
    e.size = sizeof e, e.op_id = TN_OPID_ADD, e.n_in = 2, e.n_out = 1, e.in = in, e.out = &out;
    emit(e, nullptr);
    found->second = out;
  }
};

Lab::Lab() : s_(new State) {
  s_->error = &error;
  s_->record = &s_->tape;
}
Lab::~Lab() = default;
tn_builder* Lab::builder() { return &s_->handle; }
const Tensor& Lab::tensor(uint32_t v) const { return s_->values.at(v); }

uint32_t Lab::value(uint32_t dtype, const Index& dims, const std::vector<Real>& data) {
  tn_type t{};
  t.dtype = static_cast<uint8_t>(dtype);
  t.rank = static_cast<uint8_t>(dims.size());
  std::copy(dims.begin(), dims.end(), t.dim);
  ops::set_dense(&t, &s_->table);
  const uint32_t v = s_->fresh(t);
  *s_->values[v].data = data;
  return v;
}

std::vector<Real> Lab::read(uint32_t v) const {
  std::vector<Real> out;
  const Tensor& t = tensor(v);
  each(dims_of(t.type), [&](const Index& i) { out.push_back(t.at(i)); });
  return out;
}

std::vector<uint32_t> Lab::call(uint64_t op_id, const std::vector<uint32_t>& in, const std::vector<ops::Attr>& attrs,
                                const std::vector<tn_push>& push, uint32_t n_out) {
  tn_rule rule{};
  ops::Emit e(builder(), &rule, &error);
  std::vector<ops::Value> values;
  for (uint32_t v : in) values.push_back({v});
  std::vector<uint32_t> out;
  for (ops::Value v : e.ops(op_id, values, attrs, push, n_out)) out.push_back(v.id);
  return e.ok() ? out : std::vector<uint32_t>{};
}

std::vector<uint32_t> Lab::gradient(const std::vector<uint32_t>& of, const std::vector<uint32_t>& seeds, const std::vector<uint32_t>& to) {
  std::map<uint32_t, uint32_t> g;
  for (size_t k = 0; k < of.size(); ++k) s_->accumulate(of[k], seeds[k], &g);
  for (size_t k = s_->tape.size(); k-- > 0;) {
    const Node n = s_->tape[k];  // rules grow the tape
    if (s_->back(n, &g, &error) != TN_OK) return {};
  }
  std::vector<uint32_t> result;
  for (uint32_t v : to) result.push_back(g.count(v) ? g[v] : TN_NONE);
  return result;
}

}  // namespace tenon::test

// The builder table that the kernel provides in the real library.
extern "C" const tn_builder_api* tn_builder_table(void) {
  static const tn_builder_api api = [] {
    tn_builder_api a{};
    a.size = sizeof a;
    a.emit = [](tn_builder* b, const tn_emit* e, tn_diag* d) { return b->state->emit(*e, d); };
    a.type = [](tn_builder* b, uint32_t v, tn_type* out, tn_diag*) { return *out = b->state->values.at(v).type, tn_status{TN_OK}; };
    a.dims = [](tn_builder* b) -> const tn_dims* { return &b->state->table; };
    return a;
  }();
  return &api;
}

// Needed by ops of other suites, which do not run here.
extern "C" tn_status tn_builder_derive(tn_builder*, uint32_t, uint32_t, const tn_rule*, tn_diag*) { return TN_E_UNSUPPORTED; }
