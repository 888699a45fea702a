// ops/gpu/program.cpp - one line of text for each instruction.
#include "ops/gpu/program.h"

namespace tenon::gpu {
namespace {

using Text = std::string;

struct Operands { Text a, b, c; uint32_t type; };  // type: of a

Text call(const char* f, const Text& x) { return Text(f) + "(" + x + ")"; }
Text call(const Text& f, const Text& x, const Text& y) { return f + "(" + x + ", " + y + ")"; }
Text infix(const Text& x, const char* op, const Text& y) { return "(" + x + " " + op + " " + y + ")"; }

const char* function_name(uint32_t op) {
  switch (op) {
    case TN_OP_SIGN: return "sign"; case TN_OP_SQRT: return "sqrt"; case TN_OP_RSQRT: return "rsqrt"; case TN_OP_EXP: return "exp";
    case TN_OP_EXPM1: return "expm1"; case TN_OP_LOG: return "log"; case TN_OP_LOG1P: return "log1p"; case TN_OP_SIN: return "sin";
    case TN_OP_COS: return "cos"; case TN_OP_ATAN: return "atan"; case TN_OP_TANH: return "tanh"; case TN_OP_ERF: return "erf";
    case TN_OP_DIV: return "div"; case TN_OP_REM: return "rem"; case TN_OP_POW: return "pow"; case TN_OP_MIN: return "min";
    case TN_OP_MAX: return "max"; case TN_OP_ATAN2: return "atan2"; case TN_OP_FMA: return "fma"; case TN_OP_ISNAN: return "isnan";
    case TN_OP_FLOOR: return "TN_FLOOR"; case TN_OP_CEIL: return "TN_CEIL"; case TN_OP_TRUNC: return "TN_TRUNC"; case TN_OP_RINT: return "TN_RINT";
    default: return "";
  }
}

const char* comparison(uint32_t op) {
  switch (op) {
    case TN_OP_LT: return "<"; case TN_OP_LE: return "<="; case TN_OP_EQ: return "=="; case TN_OP_NE: return "!="; default: return nullptr;
  }
}
const char* plain_infix(uint32_t op) {
  switch (op) {
    case TN_OP_ADD: return "+"; case TN_OP_SUB: return "-"; case TN_OP_MUL: return "*";
    case TN_OP_AND: return "&"; case TN_OP_OR: return "|"; case TN_OP_XOR: return "^"; default: return nullptr;
  }
}

Text float_op(uint32_t op, const Operands& o) {
  const bool wide = o.type == TN_F64;
  const Text suffix = wide ? "_f64" : "_f32";
  if (const char* sign = comparison(op)) return infix(o.a, sign, o.b);
  switch (op) {
    case TN_OP_NEG:
      return wide ? "TN_F64_OF_BITS(TN_BITS_OF_F64(" + o.a + ") ^ 0x8000000000000000ul)" : "TN_F32_OF_BITS(TN_BITS_OF_F32(" + o.a + ") ^ 0x80000000u)";
    case TN_OP_ABS:
      return wide ? "TN_F64_OF_BITS(TN_BITS_OF_F64(" + o.a + ") & 0x7FFFFFFFFFFFFFFFul)" : "TN_F32_OF_BITS(TN_BITS_OF_F32(" + o.a + ") & 0x7FFFFFFFu)";
    case TN_OP_ADD: case TN_OP_SUB: case TN_OP_MUL: return infix(o.a, plain_infix(op), o.b);
    case TN_OP_FLOOR: case TN_OP_CEIL: case TN_OP_TRUNC: case TN_OP_RINT: return call((Text(function_name(op)) + (wide ? "_F64" : "")).c_str(), o.a);
    case TN_OP_FMA: return "tn_fma" + suffix + "(" + o.a + ", " + o.b + ", " + o.c + ")";
    case TN_OP_DIV: case TN_OP_REM: case TN_OP_POW: case TN_OP_MIN: case TN_OP_MAX: case TN_OP_ATAN2:
      return call(Text("tn_") + function_name(op) + suffix, o.a, o.b);
    default: return call((Text("tn_") + function_name(op) + suffix).c_str(), o.a);
  }
}

// ---- integers: computed unsigned in 32 or 64 bits, then wrapped to the type ----

struct IntType { bool is_signed, wide; uint32_t bits; Text zero, one; };
IntType int_type(uint32_t d) {
  IntType t{is_signed_int(d), d == TN_U64 || d == TN_I64, element_bytes(d) * 8, "", ""};
  t.zero = t.wide ? (t.is_signed ? "TN_I64(0)" : "TN_U64(0)") : (t.is_signed ? "0" : "0u");
  t.one = t.wide ? (t.is_signed ? "TN_I64(1)" : "TN_U64(1)") : (t.is_signed ? "1" : "1u");
  return t;
}
Text wrap(uint32_t d, const Text& v) { return cast_text(d == TN_U64 || d == TN_I64 ? (d == TN_U64 ? TN_I64 : TN_U64) : TN_U64, d, v); }
Text as_unsigned(const IntType& t, const Text& v) { return !t.is_signed ? v : call(t.wide ? "TN_U64" : "TN_U32", v); }

Text shift(uint32_t op, const Operands& o, const IntType& t) {
  const Text amount = as_unsigned(t, o.b), width = std::to_string(t.bits);
  const Text inside = infix(amount, "<", t.wide ? "TN_U64(" + width + ")" : width + "u");
  const Text count = "(TN_U32(" + o.b + ") & " + (t.wide ? "63u)" : "31u)");
  if (op == TN_OP_SHL) {
    const Text zero = t.wide ? "TN_U64(0)" : "0u";
    return wrap(o.type, "(" + inside + " ? " + infix(as_unsigned(t, o.a), "<<", count) + " : " + zero + ")");
  }
  const Text outside = t.is_signed ? infix(o.a, ">>", std::to_string(t.bits - 1)) : t.zero;
  return "(" + inside + " ? " + infix(o.a, ">>", count) + " : " + outside + ")";
}

Text int_op(uint32_t op, const Operands& o) {
  const IntType t = int_type(o.type);
  if (const char* sign = comparison(op)) return infix(o.a, sign, o.b);
  if (const char* sign = plain_infix(op)) return wrap(o.type, infix(as_unsigned(t, o.a), sign, as_unsigned(t, o.b)));
  const Text negative = wrap(o.type, infix(t.wide ? "TN_U64(0)" : "0u", "-", as_unsigned(t, o.a)));
  const Text kind = Text(t.is_signed ? "_i" : "_u") + (t.wide ? "64" : "32");
  switch (op) {
    case TN_OP_NEG: return negative;
    case TN_OP_ABS: return !t.is_signed ? o.a : "(" + o.a + " < " + t.zero + " ? " + negative + " : " + o.a + ")";
    case TN_OP_SIGN: {
      const Text below = t.is_signed ? "(" + o.a + " < " + t.zero + " ? -" + t.one + " : " + t.zero + ")" : t.zero;
      return "(" + o.a + " > " + t.zero + " ? " + t.one + " : " + below + ")";
    }
    case TN_OP_ISNAN: return "false";
    case TN_OP_NOT: return wrap(o.type, "(~" + as_unsigned(t, o.a) + ")");
    case TN_OP_MIN: return "(" + o.b + " < " + o.a + " ? " + o.b + " : " + o.a + ")";
    case TN_OP_MAX: return "(" + o.b + " > " + o.a + " ? " + o.b + " : " + o.a + ")";
    case TN_OP_DIV: case TN_OP_REM: case TN_OP_POW: return wrap(o.type, call(Text("tn_") + function_name(op) + kind, o.a, o.b));
    case TN_OP_FMA: return wrap(o.type, infix(infix(as_unsigned(t, o.a), "*", as_unsigned(t, o.b)), "+", as_unsigned(t, o.c)));
    case TN_OP_SHL: case TN_OP_SHR: return shift(op, o, t);
    default: return o.a;  // floor, ceil, trunc, rint
  }
}

Text bool_op(uint32_t op, const Operands& o) {
  switch (op) {
    case TN_OP_AND: case TN_OP_MIN: return infix(o.a, "&&", o.b);
    case TN_OP_OR: case TN_OP_MAX: return infix(o.a, "||", o.b);
    case TN_OP_XOR: case TN_OP_NE: return infix(o.a, "!=", o.b);
    case TN_OP_EQ: return infix(o.a, "==", o.b);
    case TN_OP_LT: return "(!" + o.a + " && " + o.b + ")";
    case TN_OP_LE: return "(!" + o.a + " || " + o.b + ")";
    case TN_OP_NOT: return "(!" + o.a + ")";
    default: return "false";  // isnan
  }
}

Text bitcast(uint32_t from, uint32_t to, const Text& v) {
  auto bits_of = [](uint32_t d) -> uint32_t { return element_bytes(d) == 1 ? TN_U8 : element_bytes(d) == 2 ? TN_U16 : element_bytes(d) == 4 ? TN_U32 : TN_U64; };
  const uint32_t bits = bits_of(from);
  const Text raw = from == TN_F32 ? call("TN_BITS_OF_F32", v) : from == TN_F64 ? call("TN_BITS_OF_F64", v)
                   : is_narrow_float(from) ? v : cast_text(from, bits, v);
  if (to == TN_F32) return call("TN_F32_OF_BITS", raw);
  if (to == TN_F64) return call("TN_F64_OF_BITS", raw);
  return is_narrow_float(to) ? raw : cast_text(bits, to, raw);
}

}  // namespace

ProgramText program_text(const tn_program& p, const ProgramNames& names, StepBuilder* step) {
  ProgramText text;
  std::vector<Text> value(p.n_inst);
  for (uint32_t i = 0; i < p.n_inst; ++i) {
    const tn_inst& inst = p.inst[i];
    auto at = [&](uint16_t k) { return k < i ? value[k] : Text(); };
    const Operands o{at(inst.a), at(inst.b), at(inst.c), inst.a < i ? p.inst[inst.a].type : inst.type};
    Text line;
    switch (inst.op) {
      case TN_OP_INPUT: line = names.inputs[inst.a]; break;
      case TN_OP_CONST: line = step->push(inst.a, inst.type); break;
      case TN_OP_INDEX: line = names.index(inst.a, inst.type); break;
      case TN_OP_CAST: line = cast_text(o.type, inst.type, o.a); break;
      case TN_OP_BITCAST: line = bitcast(o.type, inst.type, o.a); break;
      case TN_OP_SELECT: line = "(" + o.a + " ? " + o.b + " : " + o.c + ")"; break;
      case TN_OP_PHILOX:
        line = "tn_philox(TN_U32(" + o.a + "), TN_U32(" + o.a + " >> 32), TN_U32(" + o.b + "), TN_U32(" + o.b + " >> 32), " + std::to_string(inst.c) + "u)";
        break;
      default:
        line = o.type == TN_BOOL ? bool_op(inst.op, o) : o.type == TN_F32 || o.type == TN_F64 ? float_op(inst.op, o) : int_op(inst.op, o);
    }
    value[i] = names.prefix + std::to_string(i);
    text.code += Text("    ") + local_type(inst.type) + " " + value[i] + " = " + line + ";\n";
    text.needs |= needs_of(inst.type);
  }
  for (uint32_t k = 0; k < p.n_out; ++k) {
    text.out.push_back(value[p.out[k]]);
    text.out_dtype.push_back(p.inst[p.out[k]].type);
  }
  step->spec.needs |= text.needs;
  return text;
}

uint64_t program_types(const tn_program& p) {
  uint64_t mask = 0;
  for (uint32_t i = 0; i < p.n_inst; ++i) mask |= uint64_t{1} << p.inst[i].type;
  return mask;
}

uint64_t program_arithmetic(const tn_program& p) {
  const uint64_t in_32_bits = uint64_t{1} << TN_BOOL | uint64_t{1} << TN_U8 | uint64_t{1} << TN_I8 | uint64_t{1} << TN_U16 | uint64_t{1} << TN_I16 |
                              uint64_t{1} << TN_F8E4M3 | uint64_t{1} << TN_F8E5M2 | uint64_t{1} << TN_F16 | uint64_t{1} << TN_BF16;
  return program_types(p) & ~in_32_bits;  // these are held and computed in 32-bit registers, which every device has
}

tn_status program_supported(const tn_program& p, const Caps& caps, tn_diag* diag) {
  uint64_t wanted = program_arithmetic(p);
  if ((wanted >> TN_F64 & 1) != 0) wanted |= uint64_t{1} << TN_U64;  // f64 functions work on the bits
  const uint64_t missing = wanted & ~caps.arithmetic;
  for (uint32_t i = 0; i < p.n_inst; ++i)
    if ((missing >> p.inst[i].type & 1) != 0)
      return refuse(diag, TN_E_UNSUPPORTED,
                    "program computes with a type the device lacks\nwhy: instruction %u has dtype number %u; the device's arithmetic types are mask 0x%llx"
                    "\ntry: cast to a type that the device computes with", i, p.inst[i].type, static_cast<unsigned long long>(caps.arithmetic));
  if (missing != 0)
    return refuse(diag, TN_E_UNSUPPORTED, "program computes with f64, for which 64-bit integers are needed\nwhy: the device's arithmetic types are mask 0x%llx"
                  "\ntry: run it in f32", static_cast<unsigned long long>(caps.arithmetic));
  return TN_OK;
}

}  // namespace tenon::gpu
