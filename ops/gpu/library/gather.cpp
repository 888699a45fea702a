// ops/gpu/library/gather.cpp - out[i] = data[i with i[axis] := index[i]].
//
// One thread moves one element. The space has the output's axes and, last, the positions on data's axis: where data reaches
// farther than a binding, that axis is cut too, and each piece moves only the elements whose index falls into it.
#include "ops/gpu/library/index_text.h"
#include "ops/gpu/rows.h"

namespace tenon::gpu {
namespace {

tn_status make_step(const Caps& caps, const Space& s, const Piece& p, const IndexAxis& axis, uint32_t words, Step* out, tn_diag* diag) {
  StepBuilder step("gather");
  const int last = s.rank - 1;
  for (const Access& a : s.access) {
    bind_operand(&step, s, a, p);
    bind_strides(&step, a, "d", 0, last);
  }
  step.scalar_u32("data_step", static_cast<uint32_t>(s.access[0].stride[last]));
  bind_sizes(&step, p, "d", 0, last);
  bind_index(&step, axis, p, last);
  const uint64_t n = launch_threads(caps, &step, p, last);
  step.spec.can_fail = true;
  std::string& body = step.spec.body;
  body = kThreadNumber;
  for (const char* name : {"data", "index_", "y"}) body += std::string("  tn_uint at_") + name + " = " + start_text(name) + ";\n";
  body += "  " + walk_text({"data", "index_", "y"}, "number", "d", last);
  body += position_text(s.access[1].dtype, "number");
  body += "  if (inside) {\n    const tn_uint from = at_data + (position - piece_first) * data_step;\n";
  for (uint32_t w = 0; w < words; ++w) body += "    y[at_y + " + std::to_string(w) + "u] = data[from + " + std::to_string(w) + "u];\n";
  body += "  }\n  }\n";
  if (!spread_groups(&step, caps, n)) return too_many_groups(diag, "gather", n);
  *out = step.finish();
  return TN_OK;
}

tn_status build(const Caps& caps, const tn_op& op, Recipe* r, tn_diag* diag) {
  const tn_type &data = op.type[0], &index = op.type[1], &out = op.type[2];
  const int axis = static_cast<int>(int_attr(op, TN_KEY_AXIS, 0));
  uint32_t words = 1;
  const uint8_t moved = plain_dtype(out.dtype, &words);
  Space s;
  for (int d = 0; d < out.rank; ++d) s.add_axis(out.dim[d]);
  if (out.rank == 0) s.add_axis(1);
  Access from{"data", 0, moved, false, 0, words - 1, {}}, at{"index_", 1, index.dtype, false, 0, 0, {}}, to{"y", 2, moved, true, 0, words - 1, {}};
  broadcast_into(index, out.rank, at.stride);
  for (int d = 0; d < out.rank; ++d) {
    from.stride[d] = d == axis ? 0 : data.stride[d] * words;
    to.stride[d] = out.stride[d] * words;
  }
  s.access = {from, at, to};
  const int last = merge_axes(&s, 0, s.rank);
  s.add_axis(data.dim[axis]);
  s.access[0].stride[last] = data.stride[axis] * words;
  if (data.dim[axis] == 0) return every_index_outside(caps, s, "gather", r, diag);
  int64_t block[kMaxAxes];
  if (!cut(s, limits_of(caps), block, [&](const int64_t* b) { return count_demand(b, last); })) return cannot_bind(caps, diag, "gather");
  tn_status status = TN_OK;
  for_pieces(s, block, [&](const Piece& p) {
    if (status != TN_OK) return;
    Step step;
    status = make_step(caps, s, p, {data.dim[axis]}, words, &step, diag);
    if (status == TN_OK) r->steps.push_back(std::move(step));
  });
  double n = 1;
  for (int d = 0; d < out.rank; ++d) n *= static_cast<double>(out.dim[d]);
  r->bytes = n * (2.0 * element_bytes(out.dtype) + element_bytes(index.dtype));
  return status;
}

tn_status supports(const Caps& caps, const tn_op& op, tn_support*, tn_diag* diag) { return index_supports(caps, "gather", op, 3, diag); }
std::vector<tn_constraint> constraints(const Caps& caps) { return index_constraints(caps); }

constexpr RowCode kRows[] = {{{"gather", TN_OPID_GATHER, TN_TIER_NATIVE}, constraints, supports, build}};

}  // namespace

std::span<const RowCode> gather_rows() { return kRows; }

}  // namespace tenon::gpu
