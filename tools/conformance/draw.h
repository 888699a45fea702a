// tools/conformance/draw.h - random calls: a declared case of an op with other sizes, layouts, strides and programs.
//
//   const Draw d = drawn(decl, decl.cases(), random);
//   const Call call = d.call(decl);
//
// The same numbers of `random` give the same call everywhere. One thread.
#pragma once
#include <cstdint>
#include <random>
#include <vector>

#include "ops/op.h"
#include "tools/conformance/trial.h"

namespace tenon::conformance {

struct RandomProgram { uint32_t seed = 0; uint32_t inputs = 2; };

// Everything a random call is made from; small enough to be changed and tried again.
struct Draw {
  ops::Case c;
  uint32_t dtype = 0, number = 0;
  std::vector<bool> reversed;
  std::vector<int64_t> skip;
  RandomProgram program;
  Call call(const ops::OpDecl& decl) const;
  // A random program is written anew whenever the call is used; before a call is used that is not the last one made, say so.
  void use() const;
};

Draw drawn(const ops::OpDecl& decl, const std::vector<ops::Case>& cases, std::mt19937& random);
// Smaller calls that could tell the same lie.
std::vector<Draw> smaller(const Draw& d);

}  // namespace tenon::conformance
