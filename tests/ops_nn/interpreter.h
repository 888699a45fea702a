// tests/ops_nn/interpreter.h - primitives and views from their definitions.
#pragma once
#include "tests/ops_nn/graph.h"

namespace tenon::ops::test {

// False when the op is neither a primitive nor a view (then its expansion says what it is).
bool interpret(const Node&, const std::vector<Array>& in, std::vector<Array>* out);

}  // namespace tenon::ops::test
