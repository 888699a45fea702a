// ops/op.h - how an op is declared: one OpDecl per op, one op per file (ops/<family>/<op>.cpp).
//
//   extern const OpDecl kSoftmax{
//       .def = {...},                       // what crosses the ABI: shape rule, expand, derivative, cost
//       .summary = "Probabilities along one axis.",
//       .formula = "y[i] = exp(x[i] - max x) / sum(exp(x - max x))",
//       .semantics = "A row of -inf gives NaN. A NaN makes its row NaN.",
//       .example = "softmax f32[2,3]",
//       .cases = softmax_cases};
//
// Everything else is derived: the `tenon ops` page, docs/semantics.md, conformance, gradient and special-value tests.
// Declarations are static data; rules are pure and re-entrant.
#pragma once
#include <tenon/ops.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tenon::ops {

// What a conformance test feeds into one operand.
enum class Fill {
  Normal,      // about N(0, 1)
  Positive,    // 0.1 .. 2
  Unit,        // -0.9 .. 0.9
  Spaced,      // distinct values at least 0.05 apart, shuffled: no ties, no kinks within a finite difference
  Index,       // integers 0 .. limit-1
  Bool,
};
enum class Layout { Dense, Permuted /* axes reversed in memory */, Gapped /* every second element */, Broadcast /* stride 0 */ };

struct CaseOperand {
  std::vector<int64_t> dims;
  Fill fill = Fill::Normal;
  Layout layout = Layout::Dense;
  uint32_t dtype = 0;   // 0: the dtype under test
  int64_t limit = 0;    // for Fill::Index
  bool absent = false;  // an optional operand left out
};

class ProgramBuilder;  // ops/emit.h

// An attribute by value, so that cases can be made at run time.
struct CaseAttr {
  uint32_t key = 0;
  enum class Kind { I64, F64, I64s, Program } kind = Kind::I64;
  int64_t i = 0;
  double f = 0;
  std::vector<int64_t> list;
  void (*program)(ProgramBuilder&) = nullptr;  // writes the program into a builder of the dtype under test
};

// One call of the op to be tried. Push scalars are given as doubles and stored in the compute type by the harness,
// except where `raw_push` says that the slot holds a u64 (seeds and offsets).
struct Case {
  std::vector<CaseOperand> in;
  std::vector<CaseAttr> attrs;
  std::vector<double> push;
  uint64_t raw_push = 0;     // bit k: slot k is a u64
  bool differentiable = true;  // checked against finite differences for floating dtypes
  double tolerance = 1;      // multiplies the op's default tolerance
};

struct OpDecl {
  tn_op_def def;
  const char* summary;
  const char* formula;
  const char* semantics;   // corner cases: NaN, Inf, signed zero, empty, ties
  const char* example;     // arguments for `tenon why`
  std::vector<Case> (*cases)();
  uint64_t dtypes;         // mask of element types of the main operand that cases are tried with
  double ulp_f32 = 4;      // error bound of one output element, in ULP of f32, where no cancellation occurs
};

// Every core op, in the order of ops.def.
std::span<const OpDecl* const> all_ops();
const OpDecl* find_op(uint64_t op_id);

inline constexpr uint64_t mask(uint32_t dtype) { return uint64_t{1} << dtype; }
inline constexpr uint64_t kFloats = mask(TN_F64) | mask(TN_F32) | mask(TN_F16) | mask(TN_BF16);
inline constexpr uint64_t kInts = mask(TN_U8) | mask(TN_I8) | mask(TN_U16) | mask(TN_I16) | mask(TN_U32) | mask(TN_I32) |
                                  mask(TN_U64) | mask(TN_I64);
inline constexpr uint64_t kNumbers = kFloats | kInts;
inline constexpr uint64_t kAllTypes = kNumbers | mask(TN_BOOL);

inline constexpr bool is_float(uint32_t dtype) { return (kFloats >> dtype & 1) != 0; }
// The type arithmetic is done in: f32 for narrow floats, else the type itself.
inline constexpr uint32_t compute_type(uint32_t dtype) {
  return dtype == TN_F16 || dtype == TN_BF16 || dtype == TN_F8E4M3 || dtype == TN_F8E5M2 ? uint32_t{TN_F32} : dtype;
}

}  // namespace tenon::ops
