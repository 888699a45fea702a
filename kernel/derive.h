// kernel/derive.h - reverse-mode derivative written into a graph (see derive.cpp).
#pragma once
#include <span>
#include <vector>

#include "kernel/graph.h"

namespace tenon::kernel {

// Marks every value that depends on an already marked one through nodes [first, last).
void mark_active(const tn_builder* g, uint32_t first, uint32_t last, std::vector<bool>* active);
// Adds the vector-Jacobian product of the whole graph. grads[i] may be TN_NONE (zero).
tn_status reverse_graph(tn_builder* g, std::span<const uint32_t> outputs, std::span<const uint32_t> seeds, std::span<const uint32_t> inputs,
                        std::span<uint32_t> grads, tn_diag* diag);

}  // namespace tenon::kernel
