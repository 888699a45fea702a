// ops/random/uniform_program.h - instructions that turn a Philox counter into numbers; shared by the random ops.
#pragma once
#include "ops/movement/rule_tools.h"

namespace tenon::ops {

// Reserves push slots 0 (seed) and 1 (offset) and returns word `word` of the block of this element:
// counter = offset + row-major index, key = seed.
inline ProgramBuilder::Id philox_word(ProgramBuilder& p, uint32_t word) {
  const auto counter = p.op(TN_OP_ADD, p.slot(1, TN_U64), p.index(TN_INDEX_FLAT, TN_U64));
  return p.philox(counter, p.slot(0, TN_U64), word);
}

// The top `bits` bits of a word as a number in [0, 1), exact in `compute`.
inline ProgramBuilder::Id uniform_bits(ProgramBuilder& p, uint32_t word, uint32_t bits, uint32_t compute) {
  const auto top = p.op(TN_OP_SHR, philox_word(p, word), p.constant(static_cast<double>(32 - bits), TN_U32));
  return p.op(TN_OP_MUL, p.cast(top, compute), p.constant(1.0 / static_cast<double>(uint64_t{1} << bits), compute));
}

// Uniform in [0, 1). Narrow types take as many bits as they hold, so that rounding never yields 1; f64 takes 53 bits of
// words 0 and 1.
inline ProgramBuilder::Id uniform(ProgramBuilder& p, uint32_t dtype) {
  if (dtype != TN_F64) return uniform_bits(p, 0, dtype == TN_F16 ? 11 : dtype == TN_BF16 ? 8 : 24, TN_F32);
  const auto high = p.cast(p.op(TN_OP_SHR, philox_word(p, 0), p.constant(5, TN_U32)), TN_F64);
  const auto low = p.cast(p.op(TN_OP_SHR, philox_word(p, 1), p.constant(6, TN_U32)), TN_F64);
  const auto whole = p.op(TN_OP_ADD, p.op(TN_OP_MUL, high, p.constant(67108864.0, TN_F64)), low);
  return p.op(TN_OP_MUL, whole, p.constant(1.0 / 9007199254740992.0, TN_F64));
}

inline tn_status infer_random(const char* name, const tn_op* op, const tn_dims* dims, tn_type* out, tn_diag* d) {
  const int64_t dtype = attr_i64(*op, TN_KEY_DTYPE, TN_F32);
  Dims result;
  if (tn_status s = need_dtype(d, name, dtype, kFloats); s != TN_OK) return s;
  if (tn_status s = read_dims(d, name, op, &result); s != TN_OK) return s;
  set_type(out, static_cast<uint32_t>(dtype), result, dims);
  return TN_OK;
}

inline std::vector<Case> random_cases() {
  std::vector<Case> all;
  for (uint32_t dtype : {TN_F32, TN_F64, TN_F16, TN_BF16})
    for (const Dims& dims : {Dims{}, Dims{0}, Dims{1}, Dims{70}, Dims{2, 3, 4}, Dims{16, 17}}) {
      Case c{{}, {case_ints(TN_KEY_DIMS, dims), case_i64(TN_KEY_DTYPE, dtype)}, {42, 1000003}, 3};
      c.differentiable = false;
      all.push_back(c);
    }
  return all;
}

}  // namespace tenon::ops
