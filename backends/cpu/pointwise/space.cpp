#include "backends/cpu/pointwise/space.h"

#include <algorithm>

namespace tenon::cpu {
namespace {

int64_t magnitude(int64_t x) { return x < 0 ? -x : x; }

template <class T>
void gather_row(const char* from, int64_t stride, int64_t n, char* to) {
  auto* x = reinterpret_cast<const T*>(from);
  auto* o = reinterpret_cast<T*>(to);
  if (stride == 1) std::memcpy(o, x, size_t(n) * sizeof(T));
  else if (stride == 0) for (int64_t i = 0; i < n; ++i) o[i] = *x;
  else for (int64_t i = 0; i < n; ++i) o[i] = x[i * stride];
}
template <class T>
void scatter_row(char* to, int64_t stride, int64_t n, const char* from) {
  auto* o = reinterpret_cast<T*>(to);
  auto* x = reinterpret_cast<const T*>(from);
  if (stride == 1) std::memcpy(o, x, size_t(n) * sizeof(T));
  else for (int64_t i = 0; i < n; ++i) o[i * stride] = x[i];
}
template <class F>
void by_size(int32_t size, F&& f) {
  switch (size) {
    case 1: f(uint8_t{}); break;
    case 2: f(uint16_t{}); break;
    case 4: f(uint32_t{}); break;
    case 16: f(Bytes16{}); break;
    default: f(uint64_t{}); break;
  }
}
// Calls f(byte offset, elements) for each run inside a row of [pos, pos + n).
template <class F>
void for_rows(const Space& s, const Operand& op, int64_t pos, int64_t n, F&& f) {
  int64_t at[TN_MAX_RANK] = {}, rest = pos, offset = 0;
  for (int i = s.rank - 1; i >= 0; --i) {
    at[i] = rest % s.dim[i];
    rest /= s.dim[i];
    offset += at[i] * op.stride[i];
  }
  const int last = s.rank - 1;
  while (n > 0) {
    const int64_t run = std::min(n, s.dim[last] - at[last]);
    f(offset * op.size, run);
    n -= run;
    offset += run * op.stride[last];
    at[last] += run;
    for (int i = last; i > 0 && at[i] == s.dim[i]; --i) {
      offset += op.stride[i - 1] - s.dim[i] * op.stride[i];
      at[i] = 0;
      ++at[i - 1];
    }
  }
}

}  // namespace

void Space::build(const tn_type& shape, const tn_type* types, int n_types, int lead) {
  rank = 0;
  n_operands = n_types;
  n = 1;
  for (int k = 0; k < n_types; ++k) operand[k].size = int32_t(element_size(types[k].dtype));
  for (int i = 0; i < shape.rank; ++i) {
    n *= shape.dim[i];
    if (lead >= 0 && shape.dim[i] == 1) continue;  // a program that asks for indices names every axis by its number
    dim[rank] = shape.dim[i];
    for (int k = 0; k < n_types; ++k) {
      const int j = i - (int(shape.rank) - int(types[k].rank));
      operand[k].stride[rank] = j < 0 || types[k].dim[j] == 1 ? 0 : types[k].stride[j];
    }
    ++rank;
  }
  if (lead >= 0) {
    for (int i = 1; i < rank; ++i)  // insertion sort, larger strides outside
      for (int j = i; j > 0 && magnitude(operand[lead].stride[j]) > magnitude(operand[lead].stride[j - 1]); --j) {
        std::swap(dim[j], dim[j - 1]);
        for (int k = 0; k < n_types; ++k) std::swap(operand[k].stride[j], operand[k].stride[j - 1]);
      }
    int kept = 0;
    for (int i = 1; i < rank; ++i) {
      bool merge = true;
      for (int k = 0; k < n_types; ++k) merge = merge && operand[k].stride[kept] == dim[i] * operand[k].stride[i];
      if (merge) dim[kept] *= dim[i];
      else dim[++kept] = dim[i];
      for (int k = 0; k < n_types; ++k) operand[k].stride[kept] = operand[k].stride[i];
    }
    if (rank > 0) rank = kept + 1;
  }
  if (rank == 0) {
    rank = 1;
    dim[0] = 1;
    for (int k = 0; k < n_types; ++k) operand[k].stride[0] = 1;
  }
  for (int k = 0; k < n_types; ++k) {
    bool flat = true, uniform = true;
    int64_t expect = 1;
    for (int i = rank - 1; i >= 0; --i) {
      flat = flat && (dim[i] == 1 || operand[k].stride[i] == expect);
      uniform = uniform && operand[k].stride[i] == 0;
      expect *= dim[i];
    }
    operand[k].walk = flat ? Walk::Flat : uniform ? Walk::Uniform : Walk::Strided;
  }
}

int64_t Space::offset(int k, int64_t pos) const {
  if (operand[k].walk == Walk::Uniform) return 0;
  if (operand[k].walk == Walk::Flat) return pos * operand[k].size;
  int64_t offset = 0;
  for (int i = rank - 1; i > 0; --i) {
    offset += pos % dim[i] * operand[k].stride[i];
    pos /= dim[i];
  }
  return (offset + pos * operand[k].stride[0]) * operand[k].size;
}

void gather_block(const Space& s, int k, const char* base, int64_t pos, int64_t n, char* dense) {
  const Operand& op = s.operand[k];
  if (op.walk == Walk::Flat) {
    std::memcpy(dense, base + pos * op.size, size_t(n * op.size));
    return;
  }
  by_size(op.size, [&](auto t) {
    for_rows(s, op, pos, n, [&](int64_t offset, int64_t run) {
      gather_row<decltype(t)>(base + offset, op.stride[s.rank - 1], run, dense);
      dense += run * op.size;
    });
  });
}

void scatter_block(const Space& s, int k, char* base, int64_t pos, int64_t n, const char* dense) {
  const Operand& op = s.operand[k];
  if (op.walk == Walk::Flat) {
    std::memcpy(base + pos * op.size, dense, size_t(n * op.size));
    return;
  }
  by_size(op.size, [&](auto t) {
    for_rows(s, op, pos, n, [&](int64_t offset, int64_t run) {
      scatter_row<decltype(t)>(base + offset, op.stride[s.rank - 1], run, dense);
      dense += run * op.size;
    });
  });
}

}  // namespace tenon::cpu
