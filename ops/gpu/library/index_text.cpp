// ops/gpu/library/index_text.cpp - checking of indices, and small things around it.
#include "ops/gpu/library/index_text.h"

#include <algorithm>

#include "ops/gpu/rows.h"

namespace tenon::gpu {

void bind_index(StepBuilder* step, const IndexAxis& axis, const Piece& p, int d) {
  step->scalar_u32("axis_size", static_cast<uint32_t>(axis.size));
  step->scalar_u32("piece_first", static_cast<uint32_t>(p.first[d]));
  step->scalar_u32("piece_size", static_cast<uint32_t>(p.size[d]));
}

std::string position_text(uint8_t index_dtype, const std::string& element) {
  const bool wide = index_dtype == TN_I64;
  const std::string t = wide ? "tn_long" : "int", size = wide ? "TN_I64(axis_size)" : "TN_I32(axis_size)", zero = wide ? "TN_I64(0)" : "0";
  std::string out = "  const " + t + " given = index_[at_index_], counted = given < " + zero + " ? given + " + size + " : given;\n";
  out += "  const bool valid = counted >= " + zero + " && counted < " + size + ";\n";
  out += "  if (!valid) TN_FAIL(1u, TN_U32(given), " + element + ", axis_size);\n";
  out += "  const tn_uint position = valid ? TN_U32(counted) : 0u;\n";
  return out + "  const bool inside = valid && position >= piece_first && position - piece_first < piece_size;\n";
}

const char kThreadNumber[] = "  const tn_uint number = TN_GROUP_NUMBER * GROUP + TN_LID(x);\n  if (number < n_all) {\n";

uint64_t launch_threads(const Caps& caps, StepBuilder* step, const Piece& p, int end) {
  uint64_t n = 1;
  for (int d = 0; d < end; ++d) n *= static_cast<uint64_t>(p.size[d]);
  const uint32_t threads = std::min({64u, caps.max_threads, caps.max_group[0]});
  step->spec.group[0] = threads;
  step->spec.defines.push_back({"GROUP", std::to_string(threads)});
  step->spec.helpers = kGroupNumber + step->spec.helpers;
  step->scalar_u32("n_all", static_cast<uint32_t>(n));
  return (n + threads - 1) / threads;
}

int count_demand(const int64_t* block, int end) {
  int64_t n = 1;
  for (int d = 0; d < end; ++d) n *= block[d];
  return n > int64_t{1} << 30 ? static_cast<int>(std::max_element(block, block + end) - block) : -1;
}

std::vector<tn_constraint> index_constraints(const Caps& caps) {
  uint64_t types = 0, indices = uint64_t{1} << TN_I32;
  for (uint32_t d = 1; d < 64; ++d) {
    uint32_t words = 0;
    const uint8_t moved = plain_dtype(d, &words);
    if (moved != 0 && (caps.storage >> moved & 1) != 0) types |= uint64_t{1} << d;
  }
  if ((caps.arithmetic >> TN_I64 & 1) != 0) indices |= uint64_t{1} << TN_I64;
  return {{TN_ANY_OPERAND, TN_NEED_LAYOUT, 0, uint64_t{1} << TN_LAYOUT_STRIDED, 0, 0},
          {TN_ANY_OPERAND, TN_NEED_DTYPE, 0, types, 0, 0},
          {1, TN_NEED_DTYPE, 0, indices & caps.storage, 0, 0}};
}

tn_status index_supports(const Caps& caps, const char* name, const tn_op& op, uint32_t operands, tn_diag* diag) {
  if (operands + 2 > caps.max_bindings)
    return refuse(diag, TN_E_UNSUPPORTED, "%s: more operands than the device can bind\nwhy: %u operands, parameters and error word, %u bindings\ntry: use another device", name, operands, caps.max_bindings);
  const int64_t axis = int_attr(op, TN_KEY_AXIS, 0);
  if (axis < 0 || axis >= op.type[0].rank)
    return refuse(diag, TN_E_SHAPE, "%s: axis %lld does not exist\nwhy: data has rank %u\ntry: name an axis below its rank", name, static_cast<long long>(axis), op.type[0].rank);
  if (op.type[0].dim[axis] >= int64_t{1} << 31)
    return refuse(diag, TN_E_UNSUPPORTED, "%s: the axis is too long\nwhy: %lld elements, positions are held in 31 bits\ntry: cut the axis", name, static_cast<long long>(op.type[0].dim[axis]));
  return TN_OK;
}

tn_status too_many_groups(tn_diag* diag, const char* name, uint64_t groups) {
  return refuse(diag, TN_E_UNSUPPORTED, "%s: too many work-groups\nwhy: %llu in one piece\ntry: use another device", name, static_cast<unsigned long long>(groups));
}
tn_status cannot_bind(const Caps& caps, tn_diag* diag, const char* name) {
  return refuse(diag, TN_E_UNSUPPORTED, "%s: an operand cannot be bound\nwhy: a binding reaches %llu bytes\ntry: use another device", name, static_cast<unsigned long long>(caps.binding_bytes));
}

tn_status every_index_outside(const Caps& caps, const Space& s, const char* name, Recipe* r, tn_diag*) {
  Space one;
  one.add_axis(1);
  Access index = s.access[1];
  std::fill(std::begin(index.stride), std::end(index.stride), 0);
  one.access = {index};
  Piece p;
  p.size[0] = 1;
  StepBuilder step(name);
  bind_operand(&step, one, index, p);
  bind_index(&step, {0}, p, 0);
  step.spec.can_fail = true;
  const uint64_t groups = launch_threads(caps, &step, p, 1);
  step.spec.body = std::string(kThreadNumber) + "  tn_uint at_index_ = " + start_text("index_") + ";\n" + position_text(index.dtype, "0u") + "  if (inside) { }\n  }\n";
  step.groups(groups);
  r->steps.push_back(step.finish());
  return TN_OK;
}

}  // namespace tenon::gpu
