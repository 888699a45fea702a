// ops/gpu/loop.cpp - splitting index spaces and writing their loops.
#include "ops/gpu/loop.h"

#include <algorithm>

namespace tenon::gpu {

LoopOperand loop_operand(std::string name, uint32_t view, const tn_type& type, uint32_t rank, bool writable) {
  LoopOperand o{std::move(name), view, type.dtype, writable, {}};
  for (uint32_t d = 0; d < type.rank; ++d) o.stride[rank - type.rank + d] = type.dim[d] == 1 ? 0 : type.stride[d];
  return o;
}

int64_t box_size(const Box& box) {
  int64_t n = 1;
  for (uint32_t d = 0; d < box.rank; ++d) n *= box.dim[d];
  return n;
}

void simplify(Box* box, std::vector<LoopOperand>* operands) {
  uint32_t rank = 0;
  for (uint32_t d = 0; d < box->rank; ++d) {
    if (box->dim[d] == 1) continue;
    bool joined = rank > 0;
    for (const LoopOperand& o : *operands) joined = joined && o.stride[rank - 1] == o.stride[d] * box->dim[d];
    const uint32_t to = joined ? rank - 1 : rank++;
    box->dim[to] = joined ? box->dim[to] * box->dim[d] : box->dim[d];
    for (LoopOperand& o : *operands) o.stride[to] = o.stride[d];
  }
  box->rank = rank;
}

Touched touched(const LoopOperand& o, const Box& box) {
  const int64_t bytes = element_bytes(o.dtype);
  int64_t origin = 0, low = 0, high = 0;
  for (uint32_t d = 0; d < box.rank; ++d) {
    origin += box.origin[d] * o.stride[d];
    const int64_t reach = (box.dim[d] - 1) * o.stride[d];
    (reach < 0 ? low : high) += reach;
  }
  Touched t;
  t.elements = static_cast<uint64_t>(high - low + 1), t.zero = static_cast<uint64_t>(-low);
  t.reach = {o.view, (origin + low) * bytes, t.elements * static_cast<uint64_t>(bytes)};
  return t;
}

namespace {

// The part of a binding that elements can use: its start is rounded down to the device's alignment.
uint64_t usable_bytes(const Caps& caps) { return caps.binding_bytes > 2 * caps.binding_align ? caps.binding_bytes - caps.binding_align : caps.binding_bytes; }

// The axis to halve so that the box fits, or rank when it does.
uint32_t axis_to_split(const Caps& caps, const Box& box, const std::vector<LoopOperand>& operands) {
  auto longest = [&box](auto weight) {
    uint32_t best = box.rank;
    int64_t most = 0;
    for (uint32_t d = 0; d < box.rank; ++d)
      if (const int64_t w = weight(d); box.dim[d] > 1 && w > most) best = d, most = w;
    return best;
  };
  for (const LoopOperand& o : operands) {
    const Touched t = touched(o, box);
    if (t.reach.bytes > usable_bytes(caps) || (!caps.index64 && t.elements >= uint64_t{1} << 31))
      return longest([&](uint32_t d) { return (box.dim[d] - 1) * std::abs(o.stride[d]); });
  }
  return box_size(box) >= int64_t{1} << 31 ? longest([&](uint32_t d) { return box.dim[d]; }) : box.rank;
}

void split_into(const Caps& caps, const Box& box, const std::vector<LoopOperand>& operands, std::vector<Box>* out) {
  const uint32_t axis = axis_to_split(caps, box, operands);
  if (axis == box.rank) {
    out->push_back(box);
    return;
  }
  Box first = box, second = box;
  first.dim[axis] = (box.dim[axis] + 1) / 2;
  second.dim[axis] -= first.dim[axis], second.origin[axis] += first.dim[axis];
  split_into(caps, first, operands, out);
  split_into(caps, second, operands, out);
}

}  // namespace

std::vector<Box> split(const Caps& caps, const Box& box, const std::vector<LoopOperand>& operands) {
  std::vector<Box> out;
  split_into(caps, box, operands, &out);
  return out;
}

LoopText::LoopText(StepBuilder* step, const Box& box) : step_(step), box_(box) {
  step_->scalar_u32("n", static_cast<uint32_t>(box_size(box)));
  for (uint32_t d = 1; d < box.rank; ++d) step_->scalar_u32("d" + std::to_string(d), static_cast<uint32_t>(box.dim[d]));
}

std::string LoopText::scalar(const std::string& name, int64_t value, bool wide) {
  if (wide) step_->scalar_u64(name, static_cast<uint64_t>(value));
  else step_->scalar_u32(name, static_cast<uint32_t>(value));
  return name;
}

uint32_t LoopText::operand(const LoopOperand& o) {
  const Touched t = touched(o, box_);
  const bool wide = t.elements >= uint64_t{1} << 31;
  step_->buffer(o.name, o.dtype, o.writable, t.reach, wide);
  if (t.zero != 0) scalar(o.name + "_zero", static_cast<int64_t>(t.zero), wide);
  for (uint32_t d = 0; d < box_.rank; ++d) {
    if (o.stride[d] == 0) continue;
    needs_axes_ = needs_axes_ || box_.rank > 1;
    if (o.stride[d] != 1) scalar(o.name + "_s" + std::to_string(d), o.stride[d], wide);
  }
  if (wide || o.dtype == TN_U64 || o.dtype == TN_I64) step_->spec.needs |= kNeedI64;
  if (o.dtype == TN_F64) step_->spec.needs |= kNeedF64 | kNeedI64;
  walks_.push_back({o, wide, t.zero != 0});
  return static_cast<uint32_t>(walks_.size() - 1);
}

std::string LoopText::at(uint32_t k) const { return walks_[k].operand.name + "_at"; }

std::string LoopText::index(uint32_t axis, uint32_t dtype, const int64_t* dims) {
  const bool wide = dtype == TN_U64 || dtype == TN_I64;
  needs_axes_ = needs_axes_ || box_.rank > 1;
  auto one = [&](uint32_t d) {  // scalars are shared by all uses
    const std::string name = std::string(wide ? "wide_" : "") + "origin" + std::to_string(d);
    bool known = false;
    for (const ScalarSpec& s : step_->spec.scalars) known = known || s.name == name;
    if (!known && box_.origin[d] != 0) scalar(name, box_.origin[d], wide), known = true;
    const std::string c = (wide ? "TN_U64(c" : "(c") + std::to_string(d) + ")";
    return known ? "(" + c + " + " + name + ")" : c;
  };
  std::string value;
  if (axis != TN_INDEX_FLAT) {
    value = one(axis);
  } else {
    bool whole = true;
    for (uint32_t d = 0; d < box_.rank; ++d) whole = whole && box_.origin[d] == 0 && box_.dim[d] == dims[d];
    if (whole || box_.rank == 0) {
      value = wide ? "TN_U64(i)" : "i";
    } else {
      value = one(0);
      for (uint32_t d = 1; d < box_.rank; ++d) {
        const std::string full = std::string(wide ? "wide_" : "") + "full" + std::to_string(d);
        bool known = false;
        for (const ScalarSpec& s : step_->spec.scalars) known = known || s.name == full;
        if (!known) scalar(full, dims[d], wide);
        value = "(" + value + " * " + full + " + " + one(d) + ")";
      }
    }
  }
  return cast_text(wide ? TN_U64 : TN_U32, dtype, value);
}

std::string LoopText::open() {
  std::string text = "  for (tn_uint i = TN_GID(x); i < n; i += TN_NWG(x) * TN_WGS(x)) {\n";
  if (box_.rank == 1 || !needs_axes_) text += "    tn_uint c0 = i;\n";
  if (needs_axes_ && box_.rank > 1) {
    text += "    tn_uint rest = i;\n";
    for (uint32_t d = box_.rank - 1; d > 0; --d) {
      const std::string k = std::to_string(d);
      text += "    tn_uint c" + k + " = rest % d" + k + "; rest = rest / d" + k + ";\n";
    }
    text += "    tn_uint c0 = rest;\n";
  }
  for (const Walk& w : walks_) {
    const std::string& name = w.operand.name;
    text += std::string("    ") + (w.wide ? "tn_ulong " : "tn_uint ") + name + "_at = " + name + "_start" + (w.zero ? " + " + name + "_zero" : "");
    for (uint32_t d = 0; d < box_.rank; ++d) {
      if (w.operand.stride[d] == 0) continue;
      const std::string k = std::to_string(d), c = w.wide ? "TN_U64(c" + k + ")" : "c" + k;
      text += " + " + c + (w.operand.stride[d] == 1 ? "" : " * " + name + "_s" + k);
    }
    text += ";\n";
  }
  return text;
}

void LoopText::launch(const Caps& caps) {
  const uint32_t threads = std::min({256u, caps.max_threads, caps.max_group[0]});
  step_->spec.group[0] = threads, step_->spec.group[1] = step_->spec.group[2] = 1;
  const uint64_t n = static_cast<uint64_t>(box_size(box_)), all = (n + threads - 1) / threads;
  const uint64_t enough = uint64_t{64} * std::max(1u, caps.compute_units);
  step_->groups(std::max<uint64_t>(1, std::min({all, std::max<uint64_t>(enough, 1024), caps.max_groups[0]})));
}

}  // namespace tenon::gpu
