// tools/conformance/formulas.h - the elementwise ops and the ops along a row, in long double and 128-bit integers, written
// from their documentation and from nothing of the library.
#pragma once
#include <string>
#include <vector>

#include "tools/conformance/number.h"

namespace tenon::conformance {

__extension__ typedef __int128 Wide;
__extension__ typedef unsigned __int128 UWide;

using FloatFormula = Number (*)(Number a, Number b, Number c);
FloatFormula float_formula(const std::string& op);  // nullptr: none

// Before wrapping to the element type. lo: the least integer of the type.
using IntegerFormula = Wide (*)(Wide a, Wide b, Wide c, Wide lo);
IntegerFormula integer_formula(const std::string& op);
Number wrapped(uint32_t dtype, Wide value);

using RowFormula = std::vector<Number> (*)(const std::vector<Number>& row);  // one number, or one per element
RowFormula row_formula(const std::string& op);

}  // namespace tenon::conformance
