// ops/gpu/library/matmul_common.h - pieces of text that all matmul bodies share.
#pragma once
#include "ops/gpu/library/matmul_text.h"

namespace tenon::gpu {

// Text for one accumulator type.
std::string held_type(const MatmulShape&);
std::string held_zero(const MatmulShape&);
std::string mad_text(const MatmulShape&, const std::string& a, const std::string& b, const std::string& c);
// operand[index] as accumulator type.
std::string held_load(const MatmulShape&, const Access&, const std::string& index);

// Adds the operands with strides NAME_b0.., NAME_m, NAME_n, NAME_k (only those that the operand has), the scalars n_m, n_n, n_k,
// n_batch and sizes b1...
void bind_product(StepBuilder*, const MatmulShape&, const Piece&, bool with_ab);
// Declares at_NAME of all operands and moves them to the batch numbered `batch`.
std::string batch_text(const MatmulShape&, const std::string& batch, bool with_ab);
// Statements that finish one element: accumulator `acc` at (row, col) of the current batch; `slice` numbers the part.
std::string finish_text(StepBuilder*, const MatmulShape&, const std::string& acc, const std::string& row, const std::string& col,
                        const std::string& slice);

}  // namespace tenon::gpu
