// The kit's own reading of constraints: each kind holds and fails at its edges.
#include "tools/conformance/constraints.h"

#include <gtest/gtest.h>
#include <tenon/ops.h>

namespace tenon::conformance {
namespace {

tn_type type(uint32_t dtype, std::initializer_list<int64_t> dims) {
  tn_type t{};
  t.dtype = static_cast<uint8_t>(dtype), t.rank = static_cast<uint8_t>(dims.size()), t.align_log2 = 4;
  int64_t step = 1;
  for (int i = t.rank - 1; i >= 0; --i) t.dim[i] = dims.begin()[i], t.stride[i] = step, step *= t.dim[i];
  return t;
}

bool holds(const tn_constraint& c, std::vector<tn_type> types, std::vector<tn_attr> attrs = {}, std::vector<tn_cap> caps = {}) {
  tn_op op{};
  op.size = sizeof op, op.n_in = static_cast<uint16_t>(types.size()), op.type = types.data();
  op.attr = attrs.data(), op.n_attr = static_cast<uint16_t>(attrs.size());
  tn_device_info info{};
  info.kind = TN_KIND_CPU;
  tn_device_ref ref{};
  ref.info = &info, ref.caps = caps.data(), ref.n_caps = static_cast<uint32_t>(caps.size());
  tn_kernel_info kernel{};
  kernel.cons = &c, kernel.n_cons = 1;
  std::string why;
  return first_failing(kernel, op, ref, &why) < 0;
}

TEST(Constraint, about_types_ranks_and_sizes) {
  const tn_type x = type(TN_F32, {3, 8});
  EXPECT_TRUE(holds({0, TN_NEED_DTYPE, 0, 1u << TN_F32, 0, 0}, {x}));
  EXPECT_FALSE(holds({0, TN_NEED_DTYPE, 0, 1u << TN_F16, 0, 0}, {x}));
  EXPECT_TRUE(holds({0, TN_NEED_DTYPE, 0, 1u << TN_F16, 0, 0}, {tn_type{}})) << "an absent operand";
  EXPECT_TRUE(holds({0, TN_NEED_RANK, 0, 0, 2, 2}, {x}));
  EXPECT_FALSE(holds({0, TN_NEED_RANK, 0, 0, 3, 8}, {x}));
  EXPECT_TRUE(holds({0, TN_NEED_DIM, 1, 0, 8, 8}, {x}));
  EXPECT_FALSE(holds({0, TN_NEED_DIM, 2, 0, 0, 99}, {x})) << "an axis it does not have";
  EXPECT_TRUE(holds({0, TN_NEED_DIM_MULTIPLE, 1, 0, 4, 0}, {x}));
  EXPECT_FALSE(holds({0, TN_NEED_DIM_MULTIPLE, 0, 0, 4, 0}, {x}));
  EXPECT_TRUE(holds({0, TN_NEED_BYTES, 0, 0, 96, 96}, {x}));
  EXPECT_FALSE(holds({0, TN_NEED_BYTES, 0, 0, 0, 95}, {x}));
  EXPECT_TRUE(holds({0, TN_NEED_ALIGN, 0, 0, 4, 0}, {x}));
  EXPECT_FALSE(holds({0, TN_NEED_ALIGN, 0, 0, 5, 0}, {x}));
}

TEST(Constraint, about_strides) {
  tn_type x = type(TN_F32, {3, 8});
  EXPECT_TRUE(holds({0, TN_NEED_CONTIGUOUS, 0, 0, 0, 0}, {x}));
  x.stride[0] = 16;
  EXPECT_FALSE(holds({0, TN_NEED_CONTIGUOUS, 0, 0, 0, 0}, {x}));
  EXPECT_TRUE(holds({0, TN_NEED_CONTIGUOUS, 1, 0, 0, 0}, {x})) << "the last axis is dense";
  x.dim[0] = TN_SYM(0);
  EXPECT_FALSE(holds({0, TN_NEED_STATIC, 0, 0, 0, 0}, {x}));
}

TEST(Constraint, about_all_operands_and_pairs_of_them) {
  const tn_type a = type(TN_F32, {2}), b = type(TN_F64, {2});
  EXPECT_FALSE(holds({TN_ANY_OPERAND, TN_NEED_DTYPE, 0, 1u << TN_F32, 0, 0}, {a, b}));
  EXPECT_FALSE(holds({1, TN_NEED_SAME_TYPE, 0, 0, 0, 0}, {a, b}));
  EXPECT_TRUE(holds({1, TN_NEED_SAME_TYPE, 0, 0, 0, 0}, {a, a}));
  EXPECT_TRUE(holds({5, TN_NEED_DTYPE, 0, 0, 0, 0}, {a, b})) << "an operand that this call does not have";
}

TEST(Constraint, about_attributes_capabilities_and_devices) {
  tn_attr axis{};
  axis.key = TN_KEY_AXIS, axis.type = TN_ATTR_I64, axis.v.i = 2;
  EXPECT_TRUE(holds({0, TN_NEED_ATTR, TN_KEY_AXIS, 1u << 2, 0, 0}, {}, {axis}));
  EXPECT_FALSE(holds({0, TN_NEED_ATTR, TN_KEY_AXIS, 1u << 1, 0, 0}, {}, {axis}));
  EXPECT_TRUE(holds({0, TN_NEED_ATTR, TN_KEY_AXIS, 0, 0, 2}, {}, {axis}));
  EXPECT_TRUE(holds({0, TN_NEED_ATTR, TN_KEY_MODE, 1, 0, 0}, {}, {})) << "an absent attribute counts as 0";
  tn_cap cap{};
  cap.key = 7, cap.type = TN_CAP_U64, cap.v.u = 90;
  EXPECT_TRUE(holds({0, TN_NEED_CAP, 7, 0, 80, 100}, {}, {}, {cap}));
  EXPECT_FALSE(holds({0, TN_NEED_CAP, 7, 0, 91, 100}, {}, {}, {cap}));
  EXPECT_FALSE(holds({0, TN_NEED_CAP, 8, 0, 0, 100}, {}, {}, {cap}));
  EXPECT_TRUE(holds({0, TN_NEED_DEVICE_KIND, TN_KIND_CPU, 0, 0, 0}, {}));
  EXPECT_FALSE(holds({0, TN_NEED_DEVICE_KIND, TN_KIND_CUDA, 0, 0, 0}, {}));
  EXPECT_FALSE(holds({0, 99, 0, 0, 0, 0}, {type(TN_F32, {1})})) << "a kind that is not known lets nothing through";
}

TEST(Constraint, about_programs) {
  const tn_inst inst[] = {{TN_OP_INPUT, TN_F32, 0, 0, 0}, {TN_OP_EXP, TN_F32, 0, 0, 0}};
  tn_program p{};
  p.size = sizeof p, p.n_inst = 2, p.n_in = 1, p.n_out = 1, p.inst = inst;
  p.opcodes = uint64_t{1} << TN_OP_INPUT | uint64_t{1} << TN_OP_EXP;
  tn_attr a{};
  a.key = TN_KEY_PROGRAM, a.type = TN_ATTR_PROGRAM, a.v.p = &p, a.len = 1;
  EXPECT_TRUE(holds({0, TN_NEED_PROGRAM_OPCODES, TN_KEY_PROGRAM, p.opcodes, 0, 0}, {}, {a}));
  EXPECT_FALSE(holds({0, TN_NEED_PROGRAM_OPCODES, TN_KEY_PROGRAM, 1, 0, 0}, {}, {a}));
  EXPECT_TRUE(holds({0, TN_NEED_PROGRAM_LIMITS, TN_KEY_PROGRAM, 0, 2, 0x101}, {}, {a}));
  EXPECT_FALSE(holds({0, TN_NEED_PROGRAM_LIMITS, TN_KEY_PROGRAM, 0, 1, 0x101}, {}, {a}));
  EXPECT_FALSE(holds({0, TN_NEED_PROGRAM_LIMITS, TN_KEY_PROGRAM, 0, 2, 0x001}, {}, {a}));
}

}  // namespace
}  // namespace tenon::conformance
