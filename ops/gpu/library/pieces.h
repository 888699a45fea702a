// ops/gpu/library/pieces.h - cutting an index space into pieces whose operands can all be bound.
//
//   Space s;                                     // axes and the operands' strides over them
//   int64_t block[kMaxAxes];
//   if (!cut(s, limits_of(caps), block)) ...     // even one element does not fit
//   for_pieces(s, block, [&](const Piece& p) { ... bind_operand(step, "x", s.access[0], p); ... });
//
// In a piece all indices fit in 32 bits; strides are passed as u32 and wrap, so that negative ones work.
#pragma once
#include <functional>
#include <vector>

#include "ops/gpu/text.h"

namespace tenon::gpu {

inline constexpr int kMaxAxes = 12;

// An operand over the axes of a space. `base`: bytes from the view's first element to the one at index 0; `tail`: elements that
// are reached behind each index (a run of its own in memory).
struct Access {
  std::string name;
  uint32_t view = 0;
  uint8_t dtype = 0;
  bool writable = false;
  int64_t base = 0, tail = 0;
  int64_t stride[kMaxAxes] = {};
};

struct Space {
  int rank = 0;
  int64_t dim[kMaxAxes] = {};
  std::vector<Access> access;
  int add_axis(int64_t size) { dim[rank] = size; return rank++; }
};

struct Limits { uint64_t bytes = 0; int64_t elements = 0; };
// What one binding can reach wherever the view starts.
Limits limits_of(const Caps&);

struct Piece { int64_t first[kMaxAxes] = {}, size[kMaxAxes] = {}; };

// Halves blocks until every operand fits, always where the widest operand reaches farthest. `also` may name one more axis to
// halve (or -1). False when blocks of one element do not fit.
using Demand = std::function<int(const int64_t* block)>;
bool cut(const Space&, const Limits&, int64_t* block, const Demand& also = {});

// Joins neighbouring axes of [begin, end) that all operands walk as one, and drops axes of one element. Returns how many of
// the range are left (at least one).
int merge_axes(Space*, int begin, int end);

void for_pieces(const Space&, const int64_t* block, const std::function<void(const Piece&)>&);
int64_t piece_count(const Space&, const int64_t* block);

// What the piece reaches of an operand, and the element number of index 0 of the piece within that.
Reach reach_of(const Space&, const Access&, const Piece&, uint32_t* out_first);
// Adds the buffer to a step, with the scalar NAME_first beside NAME_start.
void bind_operand(StepBuilder*, const Space&, const Access&, const Piece&);
// Adds scalars NAME_PREFIX0.. with the strides of axes [begin, end).
void bind_strides(StepBuilder*, const Access&, const char* prefix, int begin, int end);
// Adds scalars PREFIX0.. with the sizes of the piece's axes [begin, end).
void bind_sizes(StepBuilder*, const Piece&, const char* prefix, int begin, int end);
// Statements that take the flat index named `flat` apart over axes [begin, end) of sizes PREFIX0.. and add each operand's
// strides to the variable "at_" + operand's name. Operand names: `names`.
std::string walk_text(const std::vector<std::string>& names, const std::string& flat, const char* prefix, int count);
// The start of that variable: "NAME_start + NAME_first".
std::string start_text(const std::string& name);

// Work-groups for `count` of them, spread over two axes where one is too short; bodies read TN_GROUP_NUMBER.
bool spread_groups(StepBuilder*, const Caps&, uint64_t count);
extern const char kGroupNumber[];
// A copy of the strides of `type` over `rank` axes aligned at the right, 0 where the operand has size 1.
void broadcast_into(const tn_type& type, int rank, int64_t* stride);
// Bytes moved as they are: the unsigned type of the same size; a 16-byte element is two of `words`.
uint8_t plain_dtype(uint32_t dtype, uint32_t* words);

}  // namespace tenon::gpu
