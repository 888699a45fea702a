// kernel/program.cpp - the rules of types.h about scalar programs, as a table walked once.
#include "kernel/program.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>

namespace tenon::kernel {
namespace {

constexpr uint32_t kFamilyOp = 6;
constexpr uint32_t id_of(uint32_t number) { return kFamilyOp << 16 | number; }

tn_status fail(tn_diag* diag, tn_status status, uint32_t number, const char* format, ...)
    __attribute__((format(printf, 4, 5)));
tn_status fail(tn_diag* diag, tn_status status, uint32_t number, const char* format, ...) {
  if (!diag) return status;
  *diag = {};
  diag->size = sizeof *diag;
  diag->status = status;
  diag->id = id_of(number);
  va_list args;
  va_start(args, format);
  const int n = std::vsnprintf(diag->msg, sizeof diag->msg, format, args);
  va_end(args);
  diag->len = static_cast<uint32_t>(std::clamp<int>(n, 0, sizeof diag->msg - 1));
  return status;
}

const char* type_name(uint32_t dtype) {
  switch (dtype) {
#define NAME_(name, id, bits) \
  case id: return #name + 3;
    TN_DTYPES(NAME_)
#undef NAME_
    default: return "no type";
  }
}

uint32_t bits_of(uint32_t dtype) {
  switch (dtype) {
#define BITS_(name, id, bits) \
  case id: return bits;
    TN_DTYPES(BITS_)
#undef BITS_
    default: return 0;
  }
}

constexpr uint64_t bit(uint32_t dtype) { return uint64_t{1} << dtype; }
constexpr uint64_t kBool = bit(TN_BOOL);
constexpr uint64_t kIntegers = bit(TN_U8) | bit(TN_I8) | bit(TN_U16) | bit(TN_I16) | bit(TN_U32) | bit(TN_I32) |
                               bit(TN_U64) | bit(TN_I64);
constexpr uint64_t kFloats = bit(TN_F32) | bit(TN_F64);
constexpr uint64_t kStorage = bit(TN_U4) | bit(TN_I4) | bit(TN_F8E4M3) | bit(TN_F8E5M2) | bit(TN_F16) | bit(TN_BF16);
constexpr uint64_t kArithmetic = kIntegers | kFloats;
constexpr uint64_t kAny = kArithmetic | kBool | kStorage;

struct Opcode {
  const char* name = nullptr;  // nullptr: no such opcode
  uint32_t operands = 0;
};

constexpr Opcode opcode(uint32_t code) {
  switch (code) {
#define ROW_(name, number, operands, e32, e64, meaning) \
  case number: return {#name + 6, operands};
    TN_OPCODES(ROW_)
#undef ROW_
    default: return {};
  }
}

bool has(uint64_t mask, uint32_t dtype) { return dtype < 64 && (mask >> dtype & 1) != 0; }
bool is_comparison(uint32_t op) { return op >= TN_OP_LT && op <= TN_OP_NE; }

// Types that the operands of an opcode may have (SELECT: its second and third).
uint64_t operand_types(uint32_t op) {
  if (op == TN_OP_CAST || op == TN_OP_BITCAST) return kAny;
  if (op == TN_OP_SELECT) return kArithmetic | kBool;
  if (op == TN_OP_PHILOX) return bit(TN_U64);
  if ((op >= TN_OP_SQRT && op <= TN_OP_ERF) || op == TN_OP_ATAN2 || op == TN_OP_FMA) return kFloats;
  if (op >= TN_OP_AND && op <= TN_OP_NOT) return kIntegers | kBool;
  if (op == TN_OP_SHL || op == TN_OP_SHR) return kIntegers;
  return kArithmetic;
}

class Check {
 public:
  Check(const tn_program& p, tn_diag* diag) : p_(p), diag_(diag) {}

  tn_status run() {
    tn_status s = limits();
    for (uint32_t i = 0; s == TN_OK && i < p_.n_inst; ++i) s = instruction(i);
    return s == TN_OK ? outputs() : s;
  }

 private:
  tn_status limits() {
    if (p_.size < sizeof(tn_program) || !p_.inst)
      return fail(diag_, TN_E_ARG, 20, "scalar program is not filled in\nwhy: size is %u (at least %zu needed), inst is %s\n"
                  "try: set size and inst", p_.size, sizeof(tn_program), p_.inst ? "set" : "NULL");
    if (p_.n_inst == 0 || p_.n_out == 0)
      return fail(diag_, TN_E_ARG, 20, "scalar program computes nothing\nwhy: %u instructions, %u outputs\n"
                  "try: give at least one instruction and one output", p_.n_inst, p_.n_out);
    if (p_.n_inst > TN_PROGRAM_MAX_INST || p_.n_in > TN_PROGRAM_MAX_IN || p_.n_out > TN_PROGRAM_MAX_OUT)
      return fail(diag_, TN_E_LIMIT, 21, "scalar program is too large\nwhy: %u instructions of %d, %u inputs of %d, %u "
                  "outputs of %d\ntry: split it into several nodes", p_.n_inst, TN_PROGRAM_MAX_INST, p_.n_in,
                  TN_PROGRAM_MAX_IN, p_.n_out, TN_PROGRAM_MAX_OUT);
    return TN_OK;
  }

  tn_status instruction(uint32_t i) {
    const tn_inst& inst = p_.inst[i];
    if (!opcode(inst.op).name)
      return fail(diag_, TN_E_UNSUPPORTED, 22, "scalar program: unknown opcode\nwhy: instruction %u has opcode %u\n"
                  "try: use an opcode of the table in types.h", i, inst.op);
    switch (inst.op) {
      case TN_OP_INPUT: return input(i);
      case TN_OP_CONST: return constant(i);
      case TN_OP_INDEX: return index(i);
      default: break;
    }
    const tn_status s = order(i);
    return s == TN_OK ? types(i) : s;
  }

  tn_status input(uint32_t i) {
    const tn_inst& inst = p_.inst[i];
    if (inst.a >= p_.n_in) return out_of_range(i, "input", inst.a, p_.n_in);
    if (!has(kAny, inst.type)) return bad_type(i, inst.type, "an element type other than complex");
    uint32_t& known = input_type_[inst.a];
    if (known && known != inst.type)
      return fail(diag_, TN_E_DTYPE, 25, "scalar program: input %u is read as two types\nwhy: %s before, %s in instruction %u\n"
                  "try: read it once and cast", inst.a, type_name(known), type_name(inst.type), i);
    known = inst.type;
    return TN_OK;
  }

  tn_status constant(uint32_t i) {
    const tn_inst& inst = p_.inst[i];
    if (inst.a >= p_.n_slots) return out_of_range(i, "push slot", inst.a, p_.n_slots);
    return has(kArithmetic | kBool, inst.type) ? TN_OK : bad_type(i, inst.type, "f32, f64, bool or an integer of 8 to 64 bits");
  }

  tn_status index(uint32_t i) {
    const tn_inst& inst = p_.inst[i];
    if (inst.a >= TN_MAX_RANK && inst.a != TN_INDEX_FLAT) return out_of_range(i, "axis", inst.a, TN_MAX_RANK);
    return has(kIntegers, inst.type) ? TN_OK : bad_type(i, inst.type, "an integer of 8 to 64 bits");
  }

  // Operands name earlier values; PHILOX's third is a literal word number.
  tn_status order(uint32_t i) {
    const tn_inst& inst = p_.inst[i];
    const uint16_t operand[3] = {inst.a, inst.b, inst.c};
    for (uint32_t k = 0; k < opcode(inst.op).operands; ++k)
      if (operand[k] >= i)
        return fail(diag_, TN_E_ARG, 24, "scalar program: a value is used before it exists\nwhy: instruction %u (%s) reads value "
                    "%u\ntry: put the instruction that makes it first", i, opcode_name(inst.op), operand[k]);
    if (inst.op == TN_OP_PHILOX && inst.c > 3) return out_of_range(i, "Philox word", inst.c, 4);
    return TN_OK;
  }

  tn_status types(uint32_t i) {
    const tn_inst& inst = p_.inst[i];
    const bool select = inst.op == TN_OP_SELECT;
    const uint32_t type = p_.inst[select ? inst.b : inst.a].type;
    if (select && p_.inst[inst.a].type != TN_BOOL) return bad_type(i, p_.inst[inst.a].type, "bool as the condition");
    if (!has(operand_types(inst.op), type)) return bad_type(i, type, "operands of a type the opcode is defined for");
    const uint16_t operand[3] = {inst.a, inst.b, inst.c};
    for (uint32_t k = select ? 2 : 1; k < opcode(inst.op).operands; ++k)
      if (p_.inst[operand[k]].type != type)
        return fail(diag_, TN_E_DTYPE, 26, "scalar program: operand types differ\nwhy: instruction %u (%s) reads %s and %s\n"
                    "try: insert a cast", i, opcode_name(inst.op), type_name(type), type_name(p_.inst[operand[k]].type));
    return result(i, type);
  }

  tn_status result(uint32_t i, uint32_t operand) {
    const tn_inst& inst = p_.inst[i];
    if (inst.op == TN_OP_CAST) return has(kAny, inst.type) ? TN_OK : bad_type(i, inst.type, "a result type other than complex");
    if (inst.op == TN_OP_BITCAST) {
      const bool fits = has(kAny, inst.type) && bits_of(inst.type) == bits_of(operand);
      return fits ? TN_OK : bad_type(i, inst.type, "a result of the operand's size");
    }
    uint32_t expected = operand;
    if (is_comparison(inst.op) || inst.op == TN_OP_ISNAN) expected = TN_BOOL;
    if (inst.op == TN_OP_PHILOX) expected = TN_U32;
    if (inst.type == expected) return TN_OK;
    return fail(diag_, TN_E_DTYPE, 27, "scalar program: wrong result type\nwhy: instruction %u (%s) over %s gives %s, its type "
                "says %s\ntry: set the instruction's type to %s", i, opcode_name(inst.op), type_name(operand),
                type_name(expected), type_name(inst.type), type_name(expected));
  }

  tn_status outputs() {
    for (uint32_t k = 0; k < p_.n_out; ++k)
      if (p_.out[k] >= p_.n_inst)
        return fail(diag_, TN_E_ARG, 28, "scalar program: an output names no value\nwhy: output %u is value %u of %u\n"
                    "try: name one of the instructions", k, p_.out[k], p_.n_inst);
    return TN_OK;
  }

  tn_status out_of_range(uint32_t i, const char* what, uint32_t have, uint32_t count) {
    return fail(diag_, TN_E_ARG, 23, "scalar program: %s out of range\nwhy: instruction %u (%s) names %s %u, there are %u\n"
                "try: name one below %u, or raise the count", what, i, opcode_name(p_.inst[i].op), what, have, count, count);
  }

  tn_status bad_type(uint32_t i, uint32_t have, const char* need) {
    return fail(diag_, TN_E_DTYPE, 29, "scalar program: a type does not fit\nwhy: instruction %u (%s) has %s, it needs %s\n"
                "try: insert a cast", i, opcode_name(p_.inst[i].op), type_name(have), need);
  }

  const tn_program& p_;
  tn_diag* diag_;
  uint32_t input_type_[TN_PROGRAM_MAX_IN] = {};
};

}  // namespace

tn_status validate_program(const tn_program& program, tn_diag* diag) { return Check(program, diag).run(); }

uint64_t opcode_mask(const tn_program& program) {
  uint64_t mask = 0;
  for (uint32_t i = 0; i < program.n_inst; ++i) mask |= uint64_t{1} << program.inst[i].op;
  return mask;
}

const char* opcode_name(uint32_t code) {
  const char* name = opcode(code).name;
  return name ? name : "unknown";
}

}  // namespace tenon::kernel
