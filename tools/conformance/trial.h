// tools/conformance/trial.h - a declared case as a call: operands filled with fixed numbers of the element type under test.
#pragma once
#include <string>
#include <vector>

#include "tools/conformance/machine.h"

namespace tenon::conformance {

// The call of case `number`. Fillings depend on nothing but the arguments.
Call make_call(const ops::OpDecl& decl, const ops::Case& c, uint32_t dtype, uint32_t number);
// The same call with numbers of type `from` widened to f64: exact, since every operand's values are representable.
Call in_f64(const Call& call, const ops::Case& c, uint32_t from);
// The same call on the sizes of its numbers, which bounds the terms of a sum.
Call of_sizes(Call call);

// Operands that must fit each other: y of max_pool2d_grad becomes max_pool2d of x. Others stay.
Call consistent(Call call);

// Push slots in the compute type, as all ops want them.
std::vector<uint64_t> push_slots(const std::vector<double>& values, uint64_t raw, uint32_t compute_dtype);

// "matmul case 3 f32[2,3] f32[3,4] on cpu:0 by onednn.matmul"
std::string call_text(const Call& call);
std::string place_text(const std::string& device, const Candidate& candidate);

// From ops.def: "unary", "norm", ...
const char* family_of(const std::string& op);
bool is_elementwise(const ops::OpDecl& decl);
std::vector<uint32_t> dtypes_of(const ops::OpDecl& decl);
size_t elements_of(const Call& call);

// Ops that each test of a suite is made for, and their names for gtest.
std::vector<const ops::OpDecl*> all_decls();
struct DeclName {
  template <class Info>
  std::string operator()(const Info& info) const { return info.param->def.name; }
};

// All combinations, in place of a fixed sample: `--full` on the command line.
bool full_run();
void set_full_run(bool full);

}  // namespace tenon::conformance
