// ops/gpu/library/pieces.cpp - extents, halving, and the texts that walk a piece.
#include "ops/gpu/library/pieces.h"

#include <algorithm>
#include <cstdlib>

namespace tenon::gpu {
namespace {

constexpr int64_t kMaxElements = (int64_t{1} << 31) - 1;

// Elements from the lowest to the highest that a block reaches.
uint64_t extent(const Space& s, const Access& a, const int64_t* block) {
  uint64_t n = 1 + static_cast<uint64_t>(a.tail);
  for (int d = 0; d < s.rank; ++d) n += static_cast<uint64_t>(std::llabs(a.stride[d])) * static_cast<uint64_t>(block[d] - 1);
  return n;
}

bool fits(const Space& s, const Access& a, const int64_t* block, const Limits& limits) {
  const uint64_t n = extent(s, a, block);
  return n <= static_cast<uint64_t>(limits.elements) && n * element_bytes(a.dtype) <= limits.bytes;
}

// The axis along which a block of this operand reaches farthest; -1 when it is one element.
int longest_axis(const Space& s, const Access& a, const int64_t* block) {
  int axis = -1;
  int64_t reach = 0;
  for (int d = 0; d < s.rank; ++d) {
    const int64_t here = std::llabs(a.stride[d]) * (block[d] - 1);
    if (here > reach) axis = d, reach = here;
  }
  return axis;
}

std::string number(int n) { return std::to_string(n); }

}  // namespace

Limits limits_of(const Caps& caps) {
  // A view may start up to one alignment step behind the start that is bound. Where only a buffer's start can be bound, how
  // much lies before the view is not known here.
  const uint64_t slack = caps.binding_align > 1 ? caps.binding_align : 0;
  return {caps.binding_bytes > 2 * slack ? caps.binding_bytes - slack : caps.binding_bytes / 2, kMaxElements};
}

bool cut(const Space& s, const Limits& limits, int64_t* block, const Demand& also) {
  for (int d = 0; d < s.rank; ++d) block[d] = s.dim[d];
  auto halve = [&](int axis) { block[axis] = (block[axis] + 1) / 2; };
  for (const Access& a : s.access) {
    while (!fits(s, a, block, limits)) {
      const int axis = longest_axis(s, a, block);
      if (axis < 0) return false;
      halve(axis);
    }
  }
  for (int axis = also ? also(block) : -1; axis >= 0; axis = also(block)) {
    if (block[axis] <= 1) return false;
    halve(axis);
  }
  return true;
}

int merge_axes(Space* s, int begin, int end) {
  auto drop = [&](int d) {
    for (int k = d; k + 1 < s->rank; ++k) {
      s->dim[k] = s->dim[k + 1];
      for (Access& a : s->access) a.stride[k] = a.stride[k + 1];
    }
    --s->rank, --end;
    for (Access& a : s->access) a.stride[s->rank] = 0;
  };
  for (int d = begin; d < end && end - begin > 1;) {
    if (s->dim[d] == 1) drop(d);
    else ++d;
  }
  for (int d = begin; d + 1 < end;) {
    bool one = true;
    for (const Access& a : s->access) one = one && a.stride[d] == a.stride[d + 1] * s->dim[d + 1];
    if (!one) { ++d; continue; }
    s->dim[d + 1] *= s->dim[d];
    drop(d);
  }
  return end - begin;
}

void for_pieces(const Space& s, const int64_t* block, const std::function<void(const Piece&)>& f) {
  Piece p;
  for (int d = 0; d < s.rank; ++d) {
    if (s.dim[d] == 0) return;
    p.size[d] = std::min(block[d], s.dim[d]);
  }
  for (;;) {
    f(p);
    int d = s.rank - 1;
    for (; d >= 0; --d) {
      p.first[d] += block[d];
      if (p.first[d] < s.dim[d]) break;
      p.first[d] = 0;
      p.size[d] = std::min(block[d], s.dim[d]);
    }
    if (d < 0) return;
    p.size[d] = std::min(block[d], s.dim[d] - p.first[d]);
  }
}

int64_t piece_count(const Space& s, const int64_t* block) {
  int64_t n = 1;
  for (int d = 0; d < s.rank; ++d) n *= block[d] > 0 ? (s.dim[d] + block[d] - 1) / block[d] : 0;
  return n;
}

Reach reach_of(const Space& s, const Access& a, const Piece& p, uint32_t* out_first) {
  int64_t origin = 0, low = 0;
  for (int d = 0; d < s.rank; ++d) {
    origin += p.first[d] * a.stride[d];
    low += std::min<int64_t>(0, (p.size[d] - 1) * a.stride[d]);
  }
  *out_first = static_cast<uint32_t>(-low);
  const int64_t bytes = element_bytes(a.dtype);
  return {a.view, a.base + (origin + low) * bytes, extent(s, a, p.size) * static_cast<uint64_t>(bytes)};
}

void bind_operand(StepBuilder* step, const Space& s, const Access& a, const Piece& p) {
  uint32_t first = 0;
  const Reach reach = reach_of(s, a, p, &first);
  step->buffer(a.name, a.dtype, a.writable, reach);
  step->scalar_u32(a.name + "_first", first);
}

void bind_strides(StepBuilder* step, const Access& a, const char* prefix, int begin, int end) {
  for (int d = begin; d < end; ++d) step->scalar_u32(a.name + "_" + prefix + number(d - begin), static_cast<uint32_t>(a.stride[d]));
}

void bind_sizes(StepBuilder* step, const Piece& p, const char* prefix, int begin, int end) {
  for (int d = begin; d < end; ++d) step->scalar_u32(prefix + number(d - begin), static_cast<uint32_t>(p.size[d]));
}

std::string start_text(const std::string& name) { return name + "_start + " + name + "_first"; }

std::string walk_text(const std::vector<std::string>& names, const std::string& flat, const char* prefix, int count) {
  std::string out;
  auto add = [&](int d, const std::string& index) {
    for (const std::string& n : names) out += " at_" + n + " += " + index + " * " + n + "_" + prefix + number(d) + ";";
  };
  if (count == 1) return add(0, flat), out + "\n";
  out = "{ tn_uint rest = " + flat + ", index;";
  for (int d = count - 1; d > 0; --d) {
    const std::string size = prefix + number(d);
    out += " index = rest % " + size + "; rest /= " + size + ";";
    add(d, "index");
  }
  add(0, "rest");
  return out + " }\n";
}

const char kGroupNumber[] = "#define TN_GROUP_NUMBER (TN_WG(y) * TN_NWG(x) + TN_WG(x))\n";

bool spread_groups(StepBuilder* step, const Caps& caps, uint64_t count) {
  const uint64_t y = (count + caps.max_groups[0] - 1) / caps.max_groups[0];
  if (y > caps.max_groups[1]) return false;
  step->groups((count + y - 1) / y, y);
  return true;
}

void broadcast_into(const tn_type& type, int rank, int64_t* stride) {
  for (int d = 0; d < rank; ++d) {
    const int own = d - (rank - type.rank);
    stride[d] = own >= 0 && type.dim[own] != 1 ? type.stride[own] : 0;
  }
}

uint8_t plain_dtype(uint32_t dtype, uint32_t* words) {
  *words = 1;
  switch (element_bytes(dtype)) {
    case 1: return TN_U8;
    case 2: return TN_U16;
    case 4: return TN_U32;
    case 8: return *words = 2, TN_U32;
    case 16: return *words = 4, TN_U32;
    default: return 0;
  }
}

}  // namespace tenon::gpu
