// Every op of ops.def says what it computes, and has cases to be tried with.
#include <gtest/gtest.h>
#include <tenon/ops.h>

#include <cstring>

#include "tests/conformance/full_machine.h"
#include "tools/conformance/trial.h"

namespace tenon::conformance {
namespace {

struct Line {
  const char* name;
  uint64_t id;
  uint16_t n_in, n_out;
};
#define TN_LINE_(NAME, name, id, n_in, n_out, family) {#name, id, n_in, n_out},
constexpr Line kLines[] = {TN_OPS(TN_LINE_)};
#undef TN_LINE_

class Declared : public testing::TestWithParam<Line> {};

TEST_P(Declared, as_ops_def_says) {
  const ops::OpDecl* decl = ops::find_op(GetParam().id);
  ASSERT_NE(decl, nullptr);
  EXPECT_STREQ(decl->def.name, GetParam().name);
  EXPECT_EQ(decl->def.n_in, GetParam().n_in);
  EXPECT_EQ(decl->def.n_out, GetParam().n_out);
  EXPECT_NE(full_machine().op(GetParam().name), 0u);
}

TEST_P(Declared, with_words_for_people) {
  const ops::OpDecl* decl = ops::find_op(GetParam().id);
  ASSERT_NE(decl, nullptr);
  for (const char* text : {decl->summary, decl->formula, decl->semantics}) {
    ASSERT_NE(text, nullptr);
    EXPECT_GT(std::strlen(text), 4u);
  }
  ASSERT_NE(decl->example, nullptr);
  // A program cannot be written on a command line.
  if (decl->def.op_id != TN_OPID_POINTWISE) {
    EXPECT_NE(*decl->example, 0) << "no example for `tenon why`";
  }
}

bool is_gradient_of_other(const ops::OpDecl& d) { return std::strstr(d.def.name, "_grad") != nullptr; }

TEST_P(Declared, with_twenty_cases_and_more) {
  const ops::OpDecl* decl = ops::find_op(GetParam().id);
  ASSERT_NE(decl, nullptr);
  ASSERT_NE(decl->cases, nullptr);
  ASSERT_NE(decl->dtypes, 0u);
  bool empty = false, strided = false, operands = false;
  const auto cases = decl->cases();
  for (const ops::Case& c : cases)
    for (const ops::CaseOperand& o : c.in) {
      operands |= !o.absent;
      strided |= !o.absent && o.layout != ops::Layout::Dense;
      empty |= !o.absent && count(o.dims) == 0;
    }
  EXPECT_GE(cases.size(), 20u);
  if (!operands) return;
  EXPECT_TRUE(strided) << "no case has strides";
  EXPECT_TRUE(empty || is_gradient_of_other(*decl)) << "no case has a size of zero";
}

INSTANTIATE_TEST_SUITE_P(Op, Declared, testing::ValuesIn(kLines), [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace tenon::conformance
