// ops/gpu/rows.h - how a kernel row is written: one RowCode per row, one file per op in ops/gpu/library/.
#pragma once
#include <span>

#include "ops/gpu/recipe.h"

namespace tenon::gpu {

struct RowCode {
  RowInfo info;
  // See row_constraints, row_supports and make_recipe of recipe.h; rules out absent storage types by itself. supports: NULL = yes.
  std::vector<tn_constraint> (*constraints)(const Caps&);
  tn_status (*supports)(const Caps&, const tn_op&, tn_support*, tn_diag*);
  tn_status (*build)(const Caps&, const tn_op&, Recipe*, tn_diag*);  // n_views is already set; may throw std::bad_alloc
};

// Each library file gives its rows, best first.
std::span<const RowCode> pointwise_rows();
std::span<const RowCode> copy_rows();
std::span<const RowCode> reduce_rows();
std::span<const RowCode> matmul_rows();
std::span<const RowCode> gather_rows();
std::span<const RowCode> scatter_rows();

// The two constraints that all rows have: strided layout, and every operand of a type in `types` that the device stores.
std::vector<tn_constraint> basic_constraints(const Caps&, uint64_t types);

}  // namespace tenon::gpu
