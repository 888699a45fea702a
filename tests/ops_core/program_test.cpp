// The program builder and the core's check of programs.
#include <gtest/gtest.h>

#include "kernel/program.h"
#include "ops/emit.h"
#include "tests/ops_core/interpreter.h"

namespace tenon::ops {
namespace {

tn_program program_of(const std::vector<tn_inst>& inst, uint8_t n_in, std::vector<uint16_t> out, uint8_t n_slots = 0) {
  tn_program p{};
  p.size = sizeof p;
  p.inst = inst.data();
  p.n_inst = static_cast<uint8_t>(inst.size());
  p.n_in = n_in;
  p.n_out = static_cast<uint8_t>(out.size());
  p.n_slots = n_slots;
  std::copy(out.begin(), out.end(), p.out);
  return p;
}

uint32_t refusal(const tn_program& p, tn_status expected) {
  tn_diag d{};
  EXPECT_EQ(kernel::validate_program(p, &d), expected) << d.msg;
  EXPECT_EQ(d.len, std::string(d.msg).size());
  if (expected != TN_OK) {
    EXPECT_NE(std::string(d.msg).find("\ntry: "), std::string::npos) << d.msg;
  }
  return d.id & 0xFFFF;
}

TEST(ProgramBuilder, casts_narrow_inputs_to_f32_and_the_output_back) {
  ProgramBuilder b(TN_F16);
  const auto x = b.input(0);
  b.output(b.op(TN_OP_MUL, x, x));
  const tn_program& p = *b.finish();
  ASSERT_EQ(p.n_inst, 4);
  EXPECT_EQ(p.inst[0].type, TN_F16);
  EXPECT_EQ(p.inst[1].op, TN_OP_CAST);
  EXPECT_EQ(p.inst[2].type, TN_F32);
  EXPECT_EQ(p.inst[3].type, TN_F16);
  EXPECT_EQ(refusal(p, TN_OK), 0u);
}

TEST(ProgramBuilder, shares_equal_expressions_and_equal_constants) {
  ProgramBuilder b(TN_F32);
  const auto x = b.input(0);
  EXPECT_EQ(b.input(0), x);
  EXPECT_EQ(b.op(TN_OP_ADD, x, b.constant(2)), b.op(TN_OP_ADD, x, b.constant(2)));
  EXPECT_EQ(b.literals().size(), 1u);
}

TEST(ProgramBuilder, literals_come_after_the_reserved_slots_of_the_caller) {
  ProgramBuilder b(TN_F32);
  b.reserve_slots(2);
  b.output(b.op(TN_OP_ADD, b.slot(1), b.constant(0.5)));
  const std::vector<tn_push> push = b.literals();
  ASSERT_EQ(push.size(), 3u);
  EXPECT_EQ(push[0].from, 0u);
  EXPECT_EQ(push[1].from, 1u);
  EXPECT_EQ(push[2].from, TN_NONE);
  EXPECT_EQ(test::number_of(push[2].bits, TN_F32), 0.5L);
}

TEST(Literal, saturates_to_the_integer_type) {
  EXPECT_EQ(test::number_of(literal(300, TN_I8).bits, TN_I8), 127);
  EXPECT_EQ(test::number_of(literal(-1e30, TN_I64).bits, TN_I64), static_cast<test::Real>(INT64_MIN));
  EXPECT_EQ(test::number_of(literal(1e30, TN_I64).bits, TN_I64), static_cast<test::Real>(INT64_MAX));
  EXPECT_EQ(test::number_of(literal(1, TN_F16).bits, TN_F32), 1);
}

TEST(ValidateProgram, accepts_every_opcode_on_a_fitting_type) {
  ProgramBuilder b(TN_F32);
  const auto x = b.input(0), y = b.input(1);
  auto v = b.op(TN_OP_FMA, x, y, x);
  for (uint32_t op = TN_OP_NEG; op <= TN_OP_ERF; ++op) v = b.op(op, v);
  for (uint32_t op = TN_OP_ADD; op <= TN_OP_ATAN2; ++op) v = b.op(op, v, x);
  b.output(b.op(TN_OP_SELECT, b.op(TN_OP_AND, b.op(TN_OP_LT, v, x), b.op(TN_OP_ISNAN, y)), v, x));
  EXPECT_EQ(refusal(*b.finish(), TN_OK), 0u);
}

TEST(ValidateProgram, gives_the_mask_of_opcodes) {
  const std::vector<tn_inst> inst = {{TN_OP_INPUT, TN_F32, 0, 0, 0}, {TN_OP_ADD, TN_F32, 0, 0, 0}};
  EXPECT_EQ(kernel::opcode_mask(program_of(inst, 1, {1})), (uint64_t{1} << TN_OP_INPUT) | (uint64_t{1} << TN_OP_ADD));
}

TEST(ValidateProgram, refuses_a_program_without_instructions_or_outputs) {
  const std::vector<tn_inst> inst = {{TN_OP_INPUT, TN_F32, 0, 0, 0}};
  EXPECT_EQ(refusal(program_of(inst, 1, {}), TN_E_ARG), 20u);
  tn_program p = program_of(inst, 1, {0});
  p.inst = nullptr;
  EXPECT_EQ(refusal(p, TN_E_ARG), 20u);
}

TEST(ValidateProgram, refuses_more_than_the_limits) {
  std::vector<tn_inst> inst(65, {TN_OP_INPUT, TN_F32, 0, 0, 0});
  EXPECT_EQ(refusal(program_of(inst, 1, {0}), TN_E_LIMIT), 21u);
  inst.resize(1);
  EXPECT_EQ(refusal(program_of(inst, 17, {0}), TN_E_LIMIT), 21u);
  tn_program p = program_of(inst, 1, {0});
  p.n_out = 5;
  EXPECT_EQ(refusal(p, TN_E_LIMIT), 21u);
}

TEST(ValidateProgram, refuses_unknown_opcodes) {
  const std::vector<tn_inst> inst = {{TN_OP_INPUT, TN_F32, 0, 0, 0}, {63, TN_F32, 0, 0, 0}};
  EXPECT_EQ(refusal(program_of(inst, 1, {1}), TN_E_UNSUPPORTED), 22u);
}

TEST(ValidateProgram, refuses_inputs_slots_axes_and_words_out_of_range) {
  const auto check = [](std::vector<tn_inst> inst) { EXPECT_EQ(refusal(program_of(inst, 1, {0}, 1), TN_E_ARG), 23u); };
  check({{TN_OP_INPUT, TN_F32, 1, 0, 0}});
  check({{TN_OP_CONST, TN_F32, 1, 0, 0}});
  check({{TN_OP_INDEX, TN_I64, 8, 0, 0}});
  check({{TN_OP_CONST, TN_U64, 0, 0, 0}, {TN_OP_PHILOX, TN_U32, 0, 0, 4}});
}

TEST(ValidateProgram, refuses_a_value_used_before_it_exists) {
  const std::vector<tn_inst> inst = {{TN_OP_INPUT, TN_F32, 0, 0, 0}, {TN_OP_ADD, TN_F32, 0, 1, 0}};
  EXPECT_EQ(refusal(program_of(inst, 1, {1}), TN_E_ARG), 24u);
}

TEST(ValidateProgram, refuses_types_that_do_not_fit) {
  using Inst = std::vector<tn_inst>;
  const tn_inst f = {TN_OP_INPUT, TN_F32, 0, 0, 0}, i = {TN_OP_INPUT, TN_I32, 1, 0, 0}, h = {TN_OP_INPUT, TN_F16, 0, 0, 0};
  const auto check = [](const Inst& inst) { return refusal(program_of(inst, 2, {0}), TN_E_DTYPE); };
  EXPECT_EQ(check({f, {TN_OP_INPUT, TN_F64, 0, 0, 0}}), 25u) << "one input as two types";
  EXPECT_EQ(check({f, i, {TN_OP_ADD, TN_F32, 0, 1, 0}}), 26u) << "two operand types";
  EXPECT_EQ(check({f, {TN_OP_NEG, TN_F64, 0, 0, 0}}), 27u) << "result type";
  EXPECT_EQ(check({f, {TN_OP_LT, TN_F32, 0, 0, 0}}), 27u) << "comparisons give bool";
  EXPECT_EQ(check({h, {TN_OP_ADD, TN_F16, 0, 0, 0}}), 29u) << "storage types have no arithmetic";
  EXPECT_EQ(check({f, i, {TN_OP_SQRT, TN_I32, 1, 0, 0}}), 29u) << "roots are for floats";
  EXPECT_EQ(check({f, {TN_OP_SELECT, TN_F32, 0, 0, 0}}), 29u) << "the condition is bool";
  EXPECT_EQ(check({f, {TN_OP_BITCAST, TN_F64, 0, 0, 0}}), 29u) << "bitcast keeps the size";
  EXPECT_EQ(check({f, {TN_OP_CAST, TN_C64, 0, 0, 0}}), 29u) << "no complex";
}

TEST(ValidateProgram, refuses_an_output_that_names_no_value) {
  const std::vector<tn_inst> inst = {{TN_OP_INPUT, TN_F32, 0, 0, 0}};
  EXPECT_EQ(refusal(program_of(inst, 1, {1}), TN_E_ARG), 28u);
}

}  // namespace
}  // namespace tenon::ops
