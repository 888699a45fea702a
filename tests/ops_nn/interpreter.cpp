#include "tests/ops_nn/interpreter.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>

namespace tenon::ops::test {
namespace {

using Index = std::vector<int64_t>;

// Calls f(index, flat) for every element of dims in row-major order.
template <class F>
void each(const Index& dims, F f) {
  const int64_t n = count(dims);
  Index at(dims.size(), 0);
  for (int64_t flat = 0; flat < n; ++flat) {
    f(at, flat);
    for (size_t i = dims.size(); i-- > 0;) {
      if (++at[i] < dims[i]) break;
      at[i] = 0;
    }
  }
}

int64_t flat_of(const Index& dims, const Index& at) {
  int64_t flat = 0;
  for (size_t i = 0; i < dims.size(); ++i) flat = flat * dims[i] + at[i];
  return flat;
}

// The element of a at an index of a shape that a broadcasts to.
Number broadcast_at(const Array& a, const Index& at) {
  Index own(a.dims.size());
  for (size_t i = 0; i < own.size(); ++i) own[i] = a.dims[i] == 1 ? 0 : at[at.size() - own.size() + i];
  return a.data[static_cast<size_t>(flat_of(a.dims, own))];
}

bool floating(uint32_t t) { return is_float(t); }

Number round_to(Number v, uint32_t dtype) {
  switch (dtype) {
    case TN_F32: return static_cast<float>(v);
    case TN_F64: return static_cast<double>(v);
    default: return v;
  }
}

struct Limits { Number lo, hi; int bits; bool is_signed; };
Limits limits(uint32_t t) {
  switch (t) {
    case TN_U8: return {0, 255, 8, false};
    case TN_I8: return {-128, 127, 8, true};
    case TN_U32: return {0, 4294967295.0L, 32, false};
    case TN_I32: return {-2147483648.0L, 2147483647.0L, 32, true};
    case TN_U64: return {0, 18446744073709551615.0L, 64, false};
    default: return {-9223372036854775808.0L, 9223372036854775807.0L, 64, true};
  }
}

uint64_t bits_of(Number v) { return v < 0 ? static_cast<uint64_t>(static_cast<int64_t>(v)) : static_cast<uint64_t>(v); }

Number wrap(uint64_t bits, uint32_t t) {
  const Limits l = limits(t);
  if (l.bits < 64) bits &= (uint64_t{1} << l.bits) - 1;
  if (!l.is_signed) return static_cast<Number>(bits);
  const uint64_t sign = uint64_t{1} << (l.bits - 1);
  if (l.bits == 64) return static_cast<Number>(static_cast<int64_t>(bits));
  return static_cast<Number>(static_cast<int64_t>(bits ^ sign) - static_cast<int64_t>(sign));
}

Number cast(Number v, uint32_t from, uint32_t to) {
  if (to == TN_BOOL) return v != 0;
  if (floating(to)) return round_to(v, to);
  if (!floating(from)) return wrap(bits_of(v), to);
  if (std::isnan(v)) return 0;
  const Limits l = limits(to);
  return std::clamp(std::trunc(v), l.lo, l.hi);
}

Number from_bits(uint64_t bits, uint32_t t) {
  if (t == TN_F64) { double d; std::memcpy(&d, &bits, 8); return d; }
  if (floating(t)) { float f; std::memcpy(&f, &bits, 4); return f; }
  if (t == TN_BOOL) return (bits & 1) != 0;
  return wrap(bits, t);
}

// Philox4x32-10, from its published definition.
uint32_t philox(uint64_t counter, uint64_t key, uint32_t word) {
  uint32_t c[4] = {static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32), 0, 0};
  uint32_t k[2] = {static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32)};
  for (int round = 0; round < 10; ++round) {
    const uint64_t p = uint64_t{0xD2511F53} * c[0], q = uint64_t{0xCD9E8D57} * c[2];
    const uint32_t next[4] = {static_cast<uint32_t>(q >> 32) ^ c[1] ^ k[0], static_cast<uint32_t>(q), static_cast<uint32_t>(p >> 32) ^ c[3] ^ k[1], static_cast<uint32_t>(p)};
    std::copy(next, next + 4, c);
    k[0] += 0x9E3779B9;
    k[1] += 0xBB67AE85;
  }
  return c[word];
}

Number unary(uint32_t op, Number a) {
  switch (op) {
    case TN_OP_NEG: return -a;
    case TN_OP_ABS: return std::fabs(a);
    case TN_OP_SIGN: return std::isnan(a) ? a : a > 0 ? 1 : a < 0 ? -1 : a;
    case TN_OP_FLOOR: return std::floor(a);
    case TN_OP_CEIL: return std::ceil(a);
    case TN_OP_TRUNC: return std::trunc(a);
    case TN_OP_RINT: return std::nearbyint(a);
    case TN_OP_SQRT: return std::sqrt(a);
    case TN_OP_RSQRT: return 1 / std::sqrt(a);
    case TN_OP_EXP: return std::exp(a);
    case TN_OP_EXPM1: return std::expm1(a);
    case TN_OP_LOG: return std::log(a);
    case TN_OP_LOG1P: return std::log1p(a);
    case TN_OP_SIN: return std::sin(a);
    case TN_OP_COS: return std::cos(a);
    case TN_OP_ATAN: return std::atan(a);
    case TN_OP_TANH: return std::tanh(a);
    case TN_OP_ERF: return std::erf(a);
    default: throw std::runtime_error("opcode " + std::to_string(op));
  }
}

Number extreme(Number a, Number b, bool largest) {
  if (std::isnan(a) || std::isnan(b)) return NAN;
  return largest ? std::max(a, b) : std::min(a, b);
}

Number float_binary(uint32_t op, Number a, Number b) {
  switch (op) {
    case TN_OP_ADD: return a + b;
    case TN_OP_SUB: return a - b;
    case TN_OP_MUL: return a * b;
    case TN_OP_DIV: return a / b;
    case TN_OP_REM: return std::fmod(a, b);
    case TN_OP_POW: return std::pow(a, b);
    case TN_OP_MIN: return extreme(a, b, false);
    case TN_OP_MAX: return extreme(a, b, true);
    case TN_OP_ATAN2: return std::atan2(a, b);
    default: throw std::runtime_error("opcode " + std::to_string(op));
  }
}

Number int_binary(uint32_t op, Number a, Number b, uint32_t t) {
  const uint64_t x = bits_of(a), y = bits_of(b);
  switch (op) {
    case TN_OP_ADD: return wrap(x + y, t);
    case TN_OP_SUB: return wrap(x - y, t);
    case TN_OP_MUL: return wrap(x * y, t);
    case TN_OP_DIV: return b == 0 ? 0 : std::trunc(a / b);
    case TN_OP_REM: return b == 0 ? 0 : std::fmod(a, b);
    case TN_OP_MIN: return std::min(a, b);
    case TN_OP_MAX: return std::max(a, b);
    case TN_OP_AND: return wrap(x & y, t);
    case TN_OP_OR: return wrap(x | y, t);
    case TN_OP_XOR: return wrap(x ^ y, t);
    case TN_OP_SHL: return b < 0 || b >= limits(t).bits ? 0 : wrap(x << y, t);
    case TN_OP_SHR: return std::floor(std::ldexp(a, -static_cast<int>(b)));
    default: throw std::runtime_error("opcode " + std::to_string(op));
  }
}

Number logic(uint32_t op, Number a, Number b) {
  return op == TN_OP_AND ? (a != 0 && b != 0) : op == TN_OP_OR ? (a != 0 || b != 0) : (a != 0) != (b != 0);
}

Number compare(uint32_t op, Number a, Number b) {
  return op == TN_OP_LT ? a < b : op == TN_OP_LE ? a <= b : op == TN_OP_EQ ? a == b : a != b;
}

struct Place {
  const Index* at = nullptr;
  int64_t flat = 0;
};

std::vector<Number> run_program(const tn_program& p, const std::vector<Number>& in, const std::vector<tn_push>& push, const Place& place) {
  std::vector<Number> v(p.n_inst);
  for (uint32_t i = 0; i < p.n_inst; ++i) {
    const tn_inst& k = p.inst[i];
    const auto a = [&] { return v[k.a]; };
    const auto b = [&] { return v[k.b]; };
    const auto type_a = [&] { return static_cast<uint32_t>(p.inst[k.a].type); };
    switch (k.op) {
      case TN_OP_INPUT: v[i] = in.at(k.a); break;
      case TN_OP_CONST: v[i] = from_bits(push.at(k.a).bits, k.type); break;
      case TN_OP_INDEX: v[i] = static_cast<Number>(k.a == TN_INDEX_FLAT ? place.flat : place.at->at(k.a)); break;
      case TN_OP_CAST: v[i] = cast(a(), type_a(), k.type); break;
      case TN_OP_SELECT: v[i] = a() != 0 ? b() : v[k.c]; break;
      case TN_OP_ISNAN: v[i] = floating(type_a()) && std::isnan(a()); break;
      case TN_OP_PHILOX: v[i] = philox(bits_of(a()), bits_of(b()), k.c); break;
      case TN_OP_FMA: v[i] = round_to(a() * b() + v[k.c], k.type); break;
      case TN_OP_NOT: v[i] = k.type == TN_BOOL ? static_cast<Number>(a() == 0) : wrap(~bits_of(a()), k.type); break;
      default:
        if (k.op >= TN_OP_LT && k.op <= TN_OP_NE) v[i] = compare(k.op, a(), b());
        else if (k.op < TN_OP_ADD) v[i] = round_to(unary(k.op, a()), k.type);
        else if (k.type == TN_BOOL) v[i] = logic(k.op, a(), b());
        else v[i] = floating(k.type) ? round_to(float_binary(k.op, a(), b()), k.type) : int_binary(k.op, a(), b(), k.type);
    }
  }
  std::vector<Number> out;
  for (uint32_t i = 0; i < p.n_out; ++i) out.push_back(v[p.out[i]]);
  return out;
}

std::vector<Array> blank(const Node& node) {
  std::vector<Array> out;
  for (size_t i = 0; i < node.out.size(); ++i) {
    const tn_type& t = node.types[node.in.size() + i];
    out.push_back({t.dtype, {t.dim, t.dim + t.rank}, {}});
    out.back().data.resize(static_cast<size_t>(count(out.back().dims)));
  }
  return out;
}

void pointwise(const Node& node, const std::vector<Array>& in, std::vector<Array>* out) {
  const tn_op op = node.op();
  const tn_program& p = *attr_program(op, TN_KEY_PROGRAM);
  each((*out)[0].dims, [&](const Index& at, int64_t flat) {
    std::vector<Number> args;
    for (const Array& a : in) args.push_back(broadcast_at(a, at));
    const std::vector<Number> r = run_program(p, args, node.push, {&at, flat});
    for (size_t k = 0; k < r.size(); ++k) (*out)[k].data[static_cast<size_t>(flat)] = r[k];
  });
}

Number identity(int64_t monoid, uint32_t t) {
  switch (monoid) {
    case TN_MONOID_PROD: case TN_MONOID_AND: return 1;
    case TN_MONOID_MAX: return floating(t) ? -INFINITY : t == TN_BOOL ? 0 : limits(t).lo;
    case TN_MONOID_MIN: return floating(t) ? INFINITY : t == TN_BOOL ? 1 : limits(t).hi;
    default: return 0;
  }
}

Number combine(int64_t monoid, Number a, Number b) {
  switch (monoid) {
    case TN_MONOID_SUM: return a + b;
    case TN_MONOID_PROD: return a * b;
    case TN_MONOID_MAX: return extreme(a, b, true);
    case TN_MONOID_MIN: return extreme(a, b, false);
    case TN_MONOID_AND: return a != 0 && b != 0;
    default: return a != 0 || b != 0;
  }
}

void reduce(const Node& node, const std::vector<Array>& in, std::vector<Array>* out) {
  const tn_op op = node.op();
  const tn_program *pre = attr_program(op, TN_KEY_PRE), *post = attr_program(op, TN_KEY_POST);
  const Index axes = attr_ints(op, TN_KEY_AXES);
  const int64_t monoid = attr_i64(op, TN_KEY_MONOID, 0);
  const bool keep = attr_i64(op, TN_KEY_KEEPDIMS, 0) != 0, arg = monoid == TN_MONOID_ARGMAX || monoid == TN_MONOID_ARGMIN;
  Index full;
  for (const Array& a : in) {
    if (a.dims.size() > full.size()) full.insert(full.begin(), a.dims.size() - full.size(), 1);
    for (size_t i = 0; i < a.dims.size(); ++i)
      if (a.dims[i] != 1) full[full.size() - a.dims.size() + i] = a.dims[i];
  }
  const uint32_t type = pre ? pre->inst[pre->out[0]].type : in[0].dtype;
  const size_t n = (*out)[0].data.size();
  std::vector<Number> acc(n, identity(monoid, type)), best(n);
  std::vector<bool> started(n, false);
  each(full, [&](const Index& at, int64_t flat) {
    Index to;
    for (size_t i = 0; i < at.size(); ++i) {
      const bool reduced = std::find(axes.begin(), axes.end(), static_cast<int64_t>(i)) != axes.end();
      if (!reduced) to.push_back(at[i]);
      else if (keep) to.push_back(0);
    }
    const auto o = static_cast<size_t>(flat_of((*out)[0].dims, to));
    std::vector<Number> args;
    for (const Array& a : in) args.push_back(broadcast_at(a, at));
    const Number v = pre ? run_program(*pre, args, node.push, {&at, flat})[0] : args[0];
    if (!arg) {
      acc[o] = combine(monoid, acc[o], v);
      return;
    }
    const bool better = !started[o] || (!std::isnan(best[o]) && (std::isnan(v) || (monoid == TN_MONOID_ARGMAX ? v > best[o] : v < best[o])));
    if (better) best[o] = v, acc[o] = static_cast<Number>(at[static_cast<size_t>(axes[0])]), started[o] = true;
  });
  for (size_t i = 0; i < n; ++i) {
    const std::vector<Number> r = post ? run_program(*post, {acc[i]}, node.push, {}) : std::vector<Number>{floating(type) || arg ? acc[i] : cast(acc[i], type, type)};
    for (size_t k = 0; k < out->size(); ++k) (*out)[k].data[i] = r[k];
  }
}

void matmul(const Node& node, const std::vector<Array>& in, std::vector<Array>* out) {
  const tn_op op = node.op();
  const tn_program* post = attr_program(op, TN_KEY_POST);
  const int64_t inner = in[0].dims.back();
  Array& c = (*out)[0];
  each(c.dims, [&](const Index& at, int64_t flat) {
    Number sum = 0;
    for (int64_t k = 0; k < inner; ++k) {
      Index ia = at, ib = at;
      ia[ia.size() - 1] = k;
      ib[ib.size() - 2] = k;
      sum += broadcast_at(in[0], ia) * broadcast_at(in[1], ib);
    }
    std::vector<Number> args{sum};
    for (size_t k = 2; k < in.size(); ++k) args.push_back(broadcast_at(in[k], at));
    c.data[static_cast<size_t>(flat)] = post ? run_program(*post, args, node.push, {&at, flat})[0] : round_to(sum, c.dtype);
  });
}

int64_t checked_index(Number v, int64_t size) {
  const auto i = static_cast<int64_t>(v);
  const int64_t at = i < 0 ? i + size : i;
  if (at < 0 || at >= size) throw std::runtime_error("index outside");
  return at;
}

void gather(const Node& node, const std::vector<Array>& in, std::vector<Array>* out) {
  const auto axis = static_cast<size_t>(attr_i64(node.op(), TN_KEY_AXIS, 0));
  each((*out)[0].dims, [&](const Index& at, int64_t flat) {
    Index from = at;
    from[axis] = checked_index(broadcast_at(in[1], at), in[0].dims[axis]);
    (*out)[0].data[static_cast<size_t>(flat)] = in[0].data[static_cast<size_t>(flat_of(in[0].dims, from))];
  });
}

void scatter(const Node& node, const std::vector<Array>& in, std::vector<Array>* out) {
  const auto axis = static_cast<size_t>(attr_i64(node.op(), TN_KEY_AXIS, 0));
  const int64_t mode = attr_i64(node.op(), TN_KEY_MODE, 0);
  (*out)[0].data = in[0].data;
  each(in[2].dims, [&](const Index& at, int64_t flat) {
    Index to = at;
    to[axis] = checked_index(broadcast_at(in[1], at), in[0].dims[axis]);
    Number& d = (*out)[0].data[static_cast<size_t>(flat_of(in[0].dims, to))];
    const Number u = in[2].data[static_cast<size_t>(flat)];
    d = mode == TN_SCATTER_SET ? u : mode == TN_SCATTER_ADD ? d + u : mode == TN_SCATTER_MUL ? d * u : extreme(d, u, mode == TN_SCATTER_MAX);
  });
}

// Where an element of a view's result comes from.
Index view_source(const Node& node, const Index& at, const Index& x) {
  const tn_op op = node.op();
  Index from(x.size());
  const auto list = [&](uint32_t key, Index fallback = {}) { return attr_ints(op, key, std::move(fallback)); };
  switch (op.op_id) {
    case TN_OPID_PERMUTE: {
      const Index perm = list(TN_KEY_PERM);
      for (size_t i = 0; i < perm.size(); ++i) from[static_cast<size_t>(normalise_axis(perm[i], static_cast<int64_t>(x.size())))] = at[i];
      return from;
    }
    case TN_OPID_EXPAND:
      for (size_t i = 0; i < x.size(); ++i) from[i] = x[i] == 1 ? 0 : at[at.size() - x.size() + i];
      return from;
    case TN_OPID_SLICE: {
      const Index starts = list(TN_KEY_STARTS), steps = list(TN_KEY_STEPS, Index(x.size(), 1));
      for (size_t i = 0; i < x.size(); ++i) from[i] = starts[i] + at[i] * steps[i];
      return from;
    }
    case TN_OPID_FLIP: {
      from = at;
      for (int64_t axis : list(TN_KEY_AXES)) {
        const auto i = static_cast<size_t>(normalise_axis(axis, static_cast<int64_t>(x.size())));
        from[i] = x[i] - 1 - at[i];
      }
      return from;
    }
    default: {  // windows
      const Index strides = list(TN_KEY_STRIDES, {1, 1}), dilations = list(TN_KEY_DILATIONS, {1, 1});
      const size_t h = x.size() - 2;
      std::copy_n(at.begin(), h, from.begin());
      for (size_t i = 0; i < 2; ++i) from[h + i] = at[h + i] * strides[i] + at[h + 2 + i] * dilations[i];
      return from;
    }
  }
}

}  // namespace

bool interpret(const Node& node, const std::vector<Array>& in, std::vector<Array>* out) {
  const uint64_t id = node.decl->def.op_id;
  const bool post_program = id == TN_OPID_MATMUL;
  if (!post_program && id > TN_OPID_SCATTER && (id < TN_OPID_RESHAPE || id > TN_OPID_WINDOWS)) return false;
  *out = blank(node);
  switch (id) {
    case TN_OPID_POINTWISE: pointwise(node, in, out); break;
    case TN_OPID_REDUCE: reduce(node, in, out); break;
    case TN_OPID_MATMUL: matmul(node, in, out); break;
    case TN_OPID_COPY: case TN_OPID_RESHAPE: (*out)[0].data = in[0].data; break;
    case TN_OPID_GATHER: gather(node, in, out); break;
    case TN_OPID_SCATTER: scatter(node, in, out); break;
    default:
      each((*out)[0].dims, [&](const Index& at, int64_t flat) {
        (*out)[0].data[static_cast<size_t>(flat)] = in[0].data.at(static_cast<size_t>(flat_of(in[0].dims, view_source(node, at, in[0].dims))));
      });
  }
  return true;
}

}  // namespace tenon::ops::test
