// ops/gpu/library/index_text.h - what gather and scatter share: an index, checked and brought into range.
#pragma once
#include "ops/gpu/library/pieces.h"

namespace tenon::gpu {

struct IndexAxis { int64_t size = 0; };  // elements on the indexed axis of data

// Scalars axis_size (i64 or i32 as indices are, by way of u32), piece_first, piece_size: the axis, and the part of it, axis `d` of the
// space, that this piece may touch.
void bind_index(StepBuilder*, const IndexAxis&, const Piece&, int d);
// Declares `position` (tn_uint) and `inside` (bool: in range, and within this piece) from index_[at_index_]; reports an index
// that is outside, with `element` as the number of the element.
std::string position_text(uint8_t index_dtype, const std::string& element);

// Threads of one dimension for the product of sizes of axes [0, end); adds GROUP and n_all. Returns the number of groups.
uint64_t launch_threads(const Caps&, StepBuilder*, const Piece&, int end);
extern const char kThreadNumber[];  // declares `number` and opens `if (number < n_all) {`
// cut()'s demand that the product of axes [0, end) stays below 2^30.
int count_demand(const int64_t* block, int end);

std::vector<tn_constraint> index_constraints(const Caps&);
tn_status index_supports(const Caps&, const char* op_name, const tn_op&, uint32_t operands, tn_diag*);
tn_status too_many_groups(tn_diag*, const char* op_name, uint64_t groups);
tn_status cannot_bind(const Caps&, tn_diag*, const char* op_name);
// The axis has no element, so whatever the indices are, they are outside: a step that says so. Access 1 of the space is the index.
tn_status every_index_outside(const Caps&, const Space&, const char* op_name, Recipe*, tn_diag*);

}  // namespace tenon::gpu
