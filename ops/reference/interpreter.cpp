// ops/reference/interpreter.cpp - resolving and running scalar programs.
#include "ops/reference/interpreter.h"

#include "ops/reference/diag.h"

namespace tenon::reference {
namespace {

const char* opcode_name(uint32_t op) {
#define TENON_NAME_(name, code, operands, e32, e64, meaning) case code: return #name;
  switch (op) { TN_OPCODES(TENON_NAME_) default: return "unknown"; }
#undef TENON_NAME_
}

bool runnable(const Step& s) {
  switch (s.op) {
    case TN_OP_INPUT: return dtype_bytes(s.type) != 0 && dtype_bytes(s.type) <= 8;
    case TN_OP_CONST: return dtype_bytes(s.type) != 0 && dtype_bytes(s.type) <= 8;
    case TN_OP_INDEX: return (kIntMask >> s.type & 1) != 0;
    case TN_OP_PHILOX: return s.type == TN_U32;
    case TN_OP_CAST: return s.cast != nullptr;
    default: return s.eval != nullptr;
  }
}

}  // namespace

uint32_t Program::in_dtype(int k) const {
  for (int i = 0; i < n_inst; ++i)
    if (step[i].op == TN_OP_INPUT && step[i].a == k) return step[i].type;
  return 0;
}

tn_status Program::resolve(const tn_program& source, tn_diag* diag) {
  n_inst = source.n_inst, n_in = source.n_in, n_out = source.n_out, n_slots = source.n_slots;
  has_index = has_axis_index = false;
  for (int k = 0; k < n_out; ++k) out[k] = source.out[k];
  for (int i = 0; i < n_inst; ++i) {
    const tn_inst& in = source.inst[i];
    Step& s = step[i] = Step{in.op, in.type, in.a, in.b, in.c};
    const bool has_operand = in.op > TN_OP_INDEX;
    const uint32_t operand = has_operand ? step[in.op == TN_OP_SELECT ? in.b : in.a].type : 0u;
    if (in.op == TN_OP_CAST) s.cast = cast_fn(operand, in.type);
    else if (in.op == TN_OP_INDEX) has_index = true, has_axis_index |= in.a != TN_INDEX_FLAT;
    else if (has_operand && in.op != TN_OP_PHILOX) s.eval = eval_fn(in.op, in.type, operand);
    if (!runnable(s))
      return fail(diag, TN_E_UNSUPPORTED, kErrNotRunnable,
                  "scalar program: instruction %d cannot run\nwhy: %s over %s giving %s is not defined\n"
                  "try: cast to f32, f64 or an integer type first",
                  i, opcode_name(in.op), dtype_name(operand), dtype_name(in.type));
  }
  return TN_OK;
}

Session::Session(const Program& program, const void* push) : program_(program) {
  for (int i = 0; i < program.n_inst; ++i) {
    value_[i] = scratch_[i];
    if (program.step[i].op == TN_OP_CONST) fill_constant(i, push);
  }
}

void Session::index_space(int rank, const int64_t* dim) { rank_ = rank, dim_ = dim; }

void Session::fill_constant(int i, const void* push) {
  const Step& s = program_.step[i];
  const uint32_t bytes = dtype_bytes(s.type);
  for (int64_t k = 0; k < kBlock; ++k)
    std::memcpy(scratch_[i] + k * bytes, static_cast<const char*>(push) + 8 * s.a, bytes);
}

void Session::fill_index(int i, int64_t n, int64_t first) {
  const Step& s = program_.step[i];
  int64_t number[kBlock];
  if (s.a == TN_INDEX_FLAT || s.a >= rank_) {
    for (int64_t k = 0; k < n; ++k) number[k] = s.a == TN_INDEX_FLAT ? first + k : 0;
  } else {
    int64_t below = 1;
    for (int d = s.a + 1; d < rank_; ++d) below *= dim_[d];
    for (int64_t k = 0; k < n; ++k) number[k] = (first + k) / below % dim_[s.a];
  }
  cast_fn(TN_I64, s.type)(n, scratch_[i], number);
}

void Session::fill_philox(int i, int64_t n) {
  const Step& s = program_.step[i];
  const auto *counter = static_cast<const uint64_t*>(value_[s.a]), *key = static_cast<const uint64_t*>(value_[s.b]);
  auto* out = reinterpret_cast<uint32_t*>(scratch_[i]);
  for (int64_t k = 0; k < n; ++k) out[k] = philox(counter[k], key[k], s.c);
}

void Session::run(int64_t n, int64_t first, const void* const* inputs, void* direct) {
  for (int i = 0; i < program_.n_inst; ++i) {
    const Step& s = program_.step[i];
    void* dst = direct != nullptr && i == program_.n_inst - 1 && i == program_.out[0] ? direct : scratch_[i];
    if (s.eval != nullptr) {
      s.eval(n, dst, value_[s.a], s.b < i ? value_[s.b] : nullptr, s.c < i ? value_[s.c] : nullptr);
      value_[i] = dst;
    } else if (s.cast != nullptr) {
      s.cast(n, dst, value_[s.a]);
      value_[i] = dst;
    } else if (s.op == TN_OP_INPUT) {
      value_[i] = inputs[s.a];
    } else if (s.op == TN_OP_INDEX) {
      fill_index(i, n, first);
    } else if (s.op == TN_OP_PHILOX) {
      fill_philox(i, n);
    }
  }
}

}  // namespace tenon::reference
