// tests/ops_core/interpreter.h - scalar programs in long double, written from the opcode table alone.
#pragma once
#include <tenon/types.h>

#include <vector>

namespace tenon::test {

using Real = long double;

// One element. in: inputs as numbers; push: slots as raw bits; index: the element's position, row-major over dims.
std::vector<Real> run_program(const tn_program& p, const std::vector<Real>& in, const std::vector<uint64_t>& push,
                              const std::vector<int64_t>& index = {}, const std::vector<int64_t>& dims = {});
Real number_of(uint64_t bits, uint32_t dtype);  // a push slot as a number

}  // namespace tenon::test
