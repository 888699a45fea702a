// tests/ops_nn/graph.h - a builder that records rules, and a slow interpreter of the six primitives over it.
//
// The oracle for expansions and derivatives: views and primitives are computed here from their definitions on plain
// row-major arrays, with no stride, kernel or plan involved; everything else is expanded by its own rule.
#pragma once
#include <memory>
#include <vector>

#include "ops/emit.h"
#include "ops/op.h"

namespace tenon::ops::test {

using Number = long double;  // holds every i64, u64 and f64
struct Array {
  uint32_t dtype = TN_F64;
  std::vector<int64_t> dims;
  std::vector<Number> data;  // row-major
};
int64_t count(const std::vector<int64_t>& dims);

struct Node {
  const OpDecl* decl = nullptr;
  std::vector<tn_attr> attrs;
  std::vector<std::shared_ptr<void>> keep;  // what attrs point to
  std::vector<uint32_t> in, out;
  std::vector<tn_push> push;
  std::vector<tn_type> types;  // inputs, then outputs
  tn_op op() const;
};

// Numbers only: symbols have their own tests.
const tn_dims* number_dims();
tn_type make_type(uint32_t dtype, const std::vector<int64_t>& dims);
tn_type channels_last_type(uint32_t dtype, const std::vector<int64_t>& nchw);

}  // namespace tenon::ops::test

struct tn_builder {
  std::vector<tn_type> types;
  std::vector<tenon::ops::test::Node> nodes;
  const std::vector<tn_push>* slots = nullptr;  // of the op being expanded
  bool check_layouts = true;
};

namespace tenon::ops::test {

// Values of `wanted`, given those of `inputs`. Throws std::runtime_error with the message of what failed.
std::vector<Array> evaluate(tn_builder&, const std::vector<uint32_t>& inputs, const std::vector<Array>& arrays,
                            const std::vector<uint32_t>& wanted);

// Cotangents of `in`, given those of `out`, as values of the same builder.
std::vector<uint32_t> derive(tn_builder&, const std::vector<uint32_t>& in, const std::vector<uint32_t>& out,
                             const std::vector<uint32_t>& seeds);

// One op on arrays.
struct Call {
  uint64_t op_id;
  std::vector<Attr> attrs;
  std::vector<tn_push> push;
  uint32_t n_out = 1;
};
std::vector<uint32_t> emit(tn_builder&, const Call&, const std::vector<uint32_t>& in);
std::vector<Array> run(const Call&, const std::vector<Array>& in);                      // an Array of dtype 0 is absent
std::vector<Array> run_typed(const Call&, const std::vector<Array>& in, const std::vector<tn_type>& types);
tn_status infer_only(const Call&, const std::vector<tn_type>& in, std::vector<tn_type>* out, tn_diag*);

// Largest difference between the derivative of sum(weights * op(in)) by rule and by central differences, relative to the
// largest entry. `order` 2 checks the derivative of the derivative (along a fixed direction).
double gradient_error(const Call&, const std::vector<Array>& in, int order = 1);

}  // namespace tenon::ops::test
