#include "tools/conformance/special.h"

#include <tenon/ops.h>

#include <algorithm>
#include <cmath>

#include "ops/cases.h"
#include "ops/emit.h"
#include "tools/conformance/compare.h"
#include "tools/conformance/formulas.h"

namespace tenon::conformance {
namespace {

using ops::ProgramBuilder;

// ---- opcodes ------------------------------------------------------------------------------------------------------

// The op whose formula an opcode computes; "" where there is none.
const char* formula_name(uint32_t opcode) {
  switch (opcode) {
    case TN_OP_SELECT: return "where";   case TN_OP_ISNAN: return "isnan";  case TN_OP_NEG: return "neg";     case TN_OP_ABS: return "abs";
    case TN_OP_SIGN: return "sign";      case TN_OP_FLOOR: return "floor";  case TN_OP_CEIL: return "ceil";   case TN_OP_TRUNC: return "trunc";
    case TN_OP_RINT: return "round";     case TN_OP_SQRT: return "sqrt";    case TN_OP_RSQRT: return "rsqrt"; case TN_OP_EXP: return "exp";
    case TN_OP_EXPM1: return "expm1";    case TN_OP_LOG: return "log";      case TN_OP_LOG1P: return "log1p"; case TN_OP_SIN: return "sin";
    case TN_OP_COS: return "cos";        case TN_OP_ATAN: return "atan";    case TN_OP_TANH: return "tanh";   case TN_OP_ERF: return "erf";
    case TN_OP_ADD: return "add";        case TN_OP_SUB: return "sub";      case TN_OP_MUL: return "mul";     case TN_OP_DIV: return "div";
    case TN_OP_REM: return "rem";        case TN_OP_POW: return "pow";      case TN_OP_MIN: return "minimum"; case TN_OP_MAX: return "maximum";
    case TN_OP_ATAN2: return "atan2";    case TN_OP_FMA: return "fma";      case TN_OP_LT: return "less";     case TN_OP_LE: return "less_equal";
    case TN_OP_EQ: return "equal";       case TN_OP_NE: return "not_equal";
    default: return "";
  }
}

// One instruction over inputs 0, 1, 2; SELECT's first input is bool.
template <uint32_t kOpcode, int kOperands>
void single(ProgramBuilder& b) {
  if constexpr (kOpcode == TN_OP_SELECT) b.output(b.op(kOpcode, b.input(0, TN_BOOL), b.input(1), b.input(2)));
  else if constexpr (kOperands == 3) b.output(b.op(kOpcode, b.input(0), b.input(1), b.input(2)));
  else if constexpr (kOperands == 2) {
    const auto v = b.op(kOpcode, b.input(0), b.input(1));
    b.output(v, kOpcode >= TN_OP_LT && kOpcode <= TN_OP_NE ? uint32_t{TN_BOOL} : b.type_of(v) == b.compute() ? b.type_of(b.input(0)) : b.type_of(v));
  } else if constexpr (kOperands == 1) {
    const auto v = b.op(kOpcode, b.input(0));
    b.output(v, b.type_of(v));
  }
}

struct Opcode { uint32_t code; int operands; const char* name; double f32, f64; void (*program)(ProgramBuilder&); };
const std::vector<Opcode>& opcodes() {
#define TN_ROW_(name, code, operands, e32, e64, meaning) {code, operands, #name, e32, e64, single<code, operands>},
  static const std::vector<Opcode> list = {TN_OPCODES(TN_ROW_)};
#undef TN_ROW_
  return list;
}

bool gives_bool(uint32_t opcode) { return opcode == TN_OP_ISNAN || (opcode >= TN_OP_LT && opcode <= TN_OP_NE); }

Number exact(const Opcode& o, uint32_t dtype, const Number (&x)[3]) {
  if (ops::is_float(dtype)) return float_formula(formula_name(o.code))(x[0], x[1], x[2]);
  const Wide v = integer_formula(formula_name(o.code))(static_cast<Wide>(x[0]), static_cast<Wide>(x[1]), static_cast<Wide>(x[2]), static_cast<Wide>(lowest_integer(dtype)));
  return gives_bool(o.code) ? static_cast<Number>(v) : wrapped(dtype, v);
}

bool has_formula(const Opcode& o, uint32_t dtype) {
  const std::string name = formula_name(o.code);
  return !name.empty() && (ops::is_float(dtype) ? float_formula(name) != nullptr : integer_formula(name) != nullptr);
}

struct Tried { Call call; Array expected; };

// Operands run through all combinations of odd values, going on from one length to the next.
Tried call_of(const Opcode& o, uint32_t dtype, int64_t n, size_t* turn) {
  const std::vector<Number> values = special_values(dtype);
  const size_t s = values.size();
  Tried made;
  made.call.op = "pointwise";
  made.call.attrs = {ops::case_program(TN_KEY_PROGRAM, o.program)};
  made.call.program_dtype = dtype;
  for (int k = 0; k < o.operands; ++k) {
    Array a{k == 0 && o.code == TN_OP_SELECT ? uint32_t{TN_BOOL} : dtype, {n}, {}};
    a.skip = k == 0 ? n % 3 : 0;
    made.call.in.push_back(a);
  }
  // What leaves a program of narrow floats without a cast is in the compute type.
  made.expected = {gives_bool(o.code) ? uint32_t{TN_BOOL} : dtype, {n}, {}};
  for (int64_t i = 0; i < n; ++i) {
    const size_t t = (*turn)++;
    Number x[3] = {values[t % s], values[(t / s + t) % s], values[(t / (s * s) + 3 * t) % s]};
    if (o.code == TN_OP_SELECT) x[0] = static_cast<Number>(t & 1);
    for (int k = 0; k < o.operands; ++k) made.call.in[static_cast<size_t>(k)].v.push_back(x[k]);
    made.expected.v.push_back(exact(o, dtype, x));
  }
  return made;
}

// Runs what the kernel takes; false when it does not.
bool judged(Trial& t, Subject& s, const tn_kernel_info& row, const Call& call, const Array& expected, const Bound& bound) {
  Problem p;
  std::string why;
  if (make_problem(call, &p, &why) != TN_OK || s.asks(row, p, &why) != Subject::Answer::Yes) return false;
  Subject::Stage stage;
  const Outcome got = s.run(row, p, &stage);
  if (stage == Subject::Stage::Prepare && !got.ok()) return false;
  t.count();
  const std::string wrong = got.ok() ? difference(expected, got.out[0], bound) : got.message;
  if (!wrong.empty()) t.fail(p.text() + ": " + wrong);
  return true;
}

void each_opcode(Session& session, Subject& s, const tn_kernel_info& row) {
  session.check(std::string("3.special.") + row.name, {"numerics", "special"}, [&](Trial& t) {
    bool any = false;
    for (const Opcode& o : opcodes()) {
      for (const uint32_t dtype : {TN_F32, TN_F64, TN_I64, TN_I32, TN_I8, TN_U8, TN_U64, TN_BOOL}) {
        if (!has_formula(o, dtype) || (dtype == TN_BOOL && o.code < TN_OP_LT)) continue;
        if (!session.options.full && (dtype == TN_I32 || dtype == TN_U64)) continue;
        size_t turn = 0;
        for (int64_t n = 0; n <= 70; ++n) {
          if (!session.options.full && dtype != TN_F32 && n % 4 != 2) continue;
          const Tried made = call_of(o, dtype, n, &turn);
          Bound bound;
          bound.ulps = dtype == TN_F64 ? o.f64 : o.f32;
          if (!judged(t, s, row, made.call, made.expected, bound)) break;
          any = true;
        }
      }
    }
    if (!any && !t.failed()) t.skip("takes no program of one instruction");
  });
}

// Casts between all element types it takes.
template <uint32_t kTo> void cast_to(ProgramBuilder& b) { b.output(b.cast(b.input(0), kTo), kTo); }

Number cast_value(uint32_t from, uint32_t to, Number v) {
  if (ops::is_float(to) || to == TN_BOOL || ops::is_float(from)) return rounded(to, v);
  return wrapped(to, static_cast<Wide>(v));  // whole numbers wrap
}

void casts(Session& session, Subject& s, const tn_kernel_info& row) {
  session.check(std::string("3.casts.") + row.name, {"numerics", "special"}, [&](Trial& t) {
    static const struct { uint32_t to; void (*program)(ProgramBuilder&); } rows[] = {
        {TN_F32, cast_to<TN_F32>}, {TN_F64, cast_to<TN_F64>}, {TN_F16, cast_to<TN_F16>}, {TN_BF16, cast_to<TN_BF16>}, {TN_I64, cast_to<TN_I64>},
        {TN_I32, cast_to<TN_I32>}, {TN_I16, cast_to<TN_I16>}, {TN_I8, cast_to<TN_I8>}, {TN_U64, cast_to<TN_U64>}, {TN_U32, cast_to<TN_U32>}, {TN_U16, cast_to<TN_U16>},
        {TN_U8, cast_to<TN_U8>}, {TN_BOOL, cast_to<TN_BOOL>}};
    bool any = false;
    for (const auto& from : rows)
      for (const auto& to : rows) {
        Call call{"pointwise", {ops::case_program(TN_KEY_PROGRAM, to.program)}, {}, {}, from.to};
        Array x{from.to, {}, special_values(from.to)};
        x.dims = {static_cast<int64_t>(x.v.size())};
        Array y{to.to, x.dims, {}};
        for (Number v : x.v) y.v.push_back(cast_value(from.to, to.to, v));
        call.in = {x};
        Bound exact_bound;
        exact_bound.ulps = 0.5;
        any |= judged(t, s, row, call, y, exact_bound);
      }
    if (!any && !t.failed()) t.skip("takes no cast");
  });
}

// INDEX counts in the output's row-major order, whatever the operands' strides are.
void write_indices(ProgramBuilder& b) {
  const auto whole = b.index(TN_INDEX_FLAT, TN_I64), row = b.index(0, TN_I64), column = b.index(1, TN_I64);
  b.output(b.op(TN_OP_ADD, b.input(0), whole));
  b.output(b.op(TN_OP_SUB, row, column));
}

void indices(Session& session, Subject& s, const tn_kernel_info& row) {
  session.check(std::string("3.index.") + row.name, {"numerics"}, [&](Trial& t) {
    Call call{"pointwise", {ops::case_program(TN_KEY_PROGRAM, write_indices)}, {}, {}, TN_I64};
    bool any = false;
    for (const ops::Layout layout : {ops::Layout::Dense, ops::Layout::Permuted, ops::Layout::Gapped}) {
      Array x{TN_I64, {5, 7}, std::vector<Number>(35, 1000), layout};
      call.in = {x};
      Array flat{TN_I64, {5, 7}, {}}, difference_of_axes = flat;
      for (int i = 0; i < 35; ++i) flat.v.push_back(1000 + i), difference_of_axes.v.push_back(i / 7 - i % 7);
      Problem p;
      std::string why;
      if (make_problem(call, &p, &why) != TN_OK || s.asks(row, p, &why) != Subject::Answer::Yes) continue;
      const Outcome got = s.run(row, p);
      any = true;
      t.count();
      if (!got.ok()) return t.fail(p.text() + ": " + got.message);
      const std::string wrong = difference(flat, got.out[0], {}) + difference(difference_of_axes, got.out[1], {});
      if (!wrong.empty()) t.fail(p.text() + ": " + wrong);
    }
    if (!any) t.skip("takes no INDEX");
  });
}

// ---- monoids ------------------------------------------------------------------------------------------------------

struct Monoid { uint32_t number; const char* formula; };
constexpr Monoid kMonoids[] = {{TN_MONOID_SUM, "sum"}, {TN_MONOID_PROD, "prod"}, {TN_MONOID_MAX, "max"}, {TN_MONOID_MIN, "min"},
                               {TN_MONOID_AND, "all"}, {TN_MONOID_OR, "any"}, {TN_MONOID_ARGMAX, "argmax"}, {TN_MONOID_ARGMIN, "argmin"}};

// A plain row with one odd value at its first, middle or last place.
std::vector<std::vector<Number>> odd_rows(uint32_t dtype, size_t n) {
  std::vector<Number> plain(n);
  for (size_t i = 0; i < n; ++i) plain[i] = dtype == TN_BOOL ? static_cast<Number>(i % 2) : ops::is_float(dtype) ? 0.5L + static_cast<Number>(i * 5 % 16) / 32 : static_cast<Number>(i * 7 % 3 + 1);
  std::vector<std::vector<Number>> rows{plain};
  if (n == 0) return rows;
  for (Number v : special_values(dtype))
    for (const size_t at : {size_t{0}, n / 2, n - 1}) rows.push_back(plain), rows.back()[at] = v;
  return rows;
}

Array reduced(const Monoid& m, uint32_t dtype, const std::vector<std::vector<Number>>& rows, Bound* bound) {
  const bool arg = m.number == TN_MONOID_ARGMAX || m.number == TN_MONOID_ARGMIN;
  Array y{arg ? uint32_t{TN_I64} : dtype, {static_cast<int64_t>(rows.size())}, {}};
  const size_t n = rows[0].size();
  bound->ulps = 8 + (m.number == TN_MONOID_PROD ? static_cast<Number>(n) : std::log2(static_cast<Number>(n + 1)));
  for (const auto& row : rows) {
    Number v = row_formula(m.formula)(row)[0], size = 0;
    if (!arg && !ops::is_float(dtype) && (m.number == TN_MONOID_SUM || m.number == TN_MONOID_PROD)) {
      UWide whole = m.number == TN_MONOID_PROD ? 1 : 0;
      for (Number x : row) whole = m.number == TN_MONOID_PROD ? whole * static_cast<UWide>(static_cast<Wide>(x)) : whole + static_cast<UWide>(static_cast<Wide>(x));
      v = wrapped(dtype, static_cast<Wide>(whole));
    }
    for (Number x : row) size += std::isfinite(x) ? std::fabs(x) : 0;
    y.v.push_back(v);
    if (m.number == TN_MONOID_SUM) bound->scale.push_back(size);
  }
  return y;
}

void each_monoid(Session& session, Subject& s, const tn_kernel_info& row) {
  session.check(std::string("3.special.") + row.name, {"numerics", "special"}, [&](Trial& t) {
    bool any = false;
    for (const Monoid& m : kMonoids)
      for (const uint32_t dtype : {TN_F32, TN_F64, TN_I64, TN_I8, TN_BOOL}) {
        const bool logic = m.number == TN_MONOID_AND || m.number == TN_MONOID_OR;
        if ((dtype == TN_BOOL) != logic) continue;
        for (const size_t n : {1u, 2u, 3u, 7u, 8u, 9u, 16u, 33u, 70u}) {
          const auto rows = odd_rows(dtype, n);
          Array x{dtype, {static_cast<int64_t>(rows.size()), static_cast<int64_t>(n)}, {}};
          for (const auto& r : rows) x.v.insert(x.v.end(), r.begin(), r.end());
          Bound bound;
          const Array y = reduced(m, dtype, rows, &bound);
          const Call call{"reduce", {ops::case_ints(TN_KEY_AXES, {1}), ops::case_i64(TN_KEY_MONOID, m.number)}, {x}, {}, dtype};
          // The largest numbers leave the range on the way in some orders of summing.
          const bool leaves = ops::is_float(dtype) && (m.number == TN_MONOID_SUM || m.number == TN_MONOID_PROD);
          if (leaves && n > 1) {
            Call tame = call;
            for (Number& v : tame.in[0].v)
              if (std::isfinite(v) && (std::fabs(v) > 1e9L || (v != 0 && std::fabs(v) < 1e-9L))) v = 0.25L;
            auto tame_rows = rows;
            for (size_t r = 0; r < rows.size(); ++r) std::copy_n(tame.in[0].v.begin() + static_cast<std::ptrdiff_t>(r * n), n, tame_rows[r].begin());
            Bound tame_bound;
            const Array tame_y = reduced(m, dtype, tame_rows, &tame_bound);
            any |= judged(t, s, row, tame, tame_y, tame_bound);
            continue;
          }
          any |= judged(t, s, row, call, y, bound);
        }
      }
    if (!any && !t.failed()) t.skip("takes no reduction of one row");
  });
}

// ---- bytes that are moved -----------------------------------------------------------------------------------------

void moved(Session& session, Subject& s, const tn_kernel_info& row) {
  session.check(std::string("3.special.") + row.name, {"numerics", "special"}, [&](Trial& t) {
    bool any = false;
    for (const uint32_t dtype : {TN_F32, TN_F64, TN_F16, TN_I64, TN_I8, TN_BOOL}) {
      Array x{dtype, {}, special_values(dtype)};
      x.dims = {static_cast<int64_t>(x.v.size())};
      Array index{TN_I64, x.dims, {}}, zero = x, back = x;
      for (size_t i = 0; i < x.v.size(); ++i) index.v.push_back(static_cast<Number>(i) - (i % 2 != 0 ? static_cast<Number>(x.v.size()) : 0));  // odd ones count from the end
      std::fill(zero.v.begin(), zero.v.end(), 0);
      Call call{row.op_id == TN_OPID_COPY ? "copy" : row.op_id == TN_OPID_GATHER ? "gather" : "scatter", {}, {x}, {}, dtype};
      if (row.op_id != TN_OPID_COPY) call.attrs = {ops::case_i64(TN_KEY_AXIS, 0)};
      if (row.op_id == TN_OPID_GATHER) call.in = {x, index};
      if (row.op_id == TN_OPID_SCATTER) call.in = {zero, index, x};
      Bound exact_bound;
      exact_bound.ulps = 0;
      any |= judged(t, s, row, call, back, exact_bound);
    }
    if (!any && !t.failed()) t.skip("takes none of these types");
  });
}

}  // namespace

void special_values_of(Session& session, Subject& s, const tn_kernel_info& row) {
  switch (row.op_id) {
    case TN_OPID_POINTWISE: each_opcode(session, s, row); casts(session, s, row); indices(session, s, row); break;
    case TN_OPID_REDUCE: each_monoid(session, s, row); break;
    case TN_OPID_COPY: case TN_OPID_GATHER: case TN_OPID_SCATTER: moved(session, s, row); break;
    default: break;
  }
}

}  // namespace tenon::conformance
