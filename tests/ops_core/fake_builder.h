// tests/ops_core/fake_builder.h - a builder that computes at once, in long double: primitives by definition, other ops
// by their own expansion. It also records, so that derivatives of every order can be taken through the ops' rules.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ops/emit.h"
#include "tests/ops_core/interpreter.h"

namespace tenon::test {

struct Tensor {
  tn_type type{};
  int64_t offset = 0;
  std::shared_ptr<std::vector<Real>> data;
  Real& at(const std::vector<int64_t>& index) const;
};

// A node with its own copies of attributes and programs.
struct Node {
  uint64_t op_id = 0;
  std::vector<tn_attr> attr;
  std::vector<uint64_t> push;
  std::vector<uint32_t> in, out;
  std::vector<std::shared_ptr<void>> keep;
};

class Lab {
 public:
  Lab();
  ~Lab();
  tn_builder* builder();
  // Dense values, row-major.
  uint32_t value(uint32_t dtype, const std::vector<int64_t>& dims, const std::vector<Real>& data);
  std::vector<Real> read(uint32_t v) const;
  const Tensor& tensor(uint32_t v) const;

  // Emits one op at the top; empty on failure, see `error`.
  std::vector<uint32_t> call(uint64_t op_id, const std::vector<uint32_t>& in, const std::vector<ops::Attr>& attrs = {},
                             const std::vector<tn_push>& push = {}, uint32_t n_out = 1);
  // Gradients of <seeds, values `of`> to the values `to`, through everything recorded since the start; TN_NONE = zero.
  std::vector<uint32_t> gradient(const std::vector<uint32_t>& of, const std::vector<uint32_t>& seeds, const std::vector<uint32_t>& to);
  tn_diag error{};
  struct State;

 private:
  std::unique_ptr<State> s_;
};

}  // namespace tenon::test
