// ops/reference/walk.cpp - building loops; moving blocks between strided and dense memory.
#include "ops/reference/walk.h"

#include <algorithm>
#include <cstdlib>

namespace tenon::reference {
namespace {

void sort_axes(Loop& loop) {
  // Insertion sort by falling |stride| of operand 0: stable, so equal strides keep their order.
  for (int i = 1; i < loop.rank; ++i)
    for (int j = i; j > 0 && std::llabs(loop.stride[0][j - 1]) < std::llabs(loop.stride[0][j]); --j) {
      std::swap(loop.dim[j - 1], loop.dim[j]);
      for (int k = 0; k < loop.n_operands; ++k) std::swap(loop.stride[k][j - 1], loop.stride[k][j]);
    }
}

bool can_merge(const Loop& loop, int outer) {
  for (int k = 0; k < loop.n_operands; ++k)
    if (loop.stride[k][outer] != loop.stride[k][outer + 1] * loop.dim[outer + 1]) return false;
  return true;
}

void merge_axes(Loop& loop) {
  for (int d = loop.rank - 2; d >= 0; --d) {
    if (!can_merge(loop, d)) continue;
    loop.dim[d] *= loop.dim[d + 1];
    for (int k = 0; k < loop.n_operands; ++k) loop.stride[k][d] = loop.stride[k][d + 1];
    --loop.rank;
    for (int e = d + 1; e < loop.rank; ++e) {
      loop.dim[e] = loop.dim[e + 1];
      for (int k = 0; k < loop.n_operands; ++k) loop.stride[k][e] = loop.stride[k][e + 1];
    }
  }
}

template <class T> void gather_run(const char* src, int64_t stride, int64_t n, char* dst) {
  for (int64_t i = 0; i < n; ++i) std::memcpy(dst + i * sizeof(T), src + i * stride * static_cast<int64_t>(sizeof(T)), sizeof(T));
}
template <class T> void scatter_run(char* dst, int64_t stride, int64_t n, const char* src) {
  for (int64_t i = 0; i < n; ++i) std::memcpy(dst + i * stride * static_cast<int64_t>(sizeof(T)), src + i * sizeof(T), sizeof(T));
}
struct Sixteen { uint64_t half[2]; };

template <class F> void with_element(uint32_t bytes, F f) {
  switch (bytes) {
    case 1: f(uint8_t{}); break;
    case 2: f(uint16_t{}); break;
    case 4: f(uint32_t{}); break;
    case 8: f(uint64_t{}); break;
    default: f(Sixteen{}); break;
  }
}

// Offset of the block if it lies on one run of stride 1 (or has one element), else -1 in `run`.
bool dense_offset(const Loop& loop, const int64_t* stride, int64_t first, int64_t n, int64_t* offset) {
  const int last = loop.rank - 1;
  if (stride[last] != 1 && n != 1) return false;
  if (last > 0 && first % loop.dim[last] + n > loop.dim[last]) return false;
  for_runs(loop, stride, first, n, [&](int64_t at, int64_t) { *offset = at; });
  return true;
}

}  // namespace

Loop make_loop(int rank, const int64_t* dim, int n, const int64_t (*stride)[TN_MAX_RANK], Order order) {
  Loop loop;
  loop.n_operands = n;
  int out = 0;
  for (int d = 0; d < rank; ++d) {
    loop.size *= dim[d];
    if (dim[d] == 1 && order != Order::Exact) continue;
    loop.dim[out] = dim[d];
    for (int k = 0; k < n; ++k) loop.stride[k][out] = stride[k][d];
    ++out;
  }
  loop.rank = out > 0 ? out : 1;
  if (order == Order::AsFirst) sort_axes(loop);
  if (order != Order::Exact) merge_axes(loop);
  return loop;
}

void broadcast_strides(const tn_type& type, int rank, int64_t* out) {
  const int shift = rank - type.rank;
  for (int d = 0; d < rank; ++d) {
    const int own = d - shift;
    out[d] = own < 0 || type.dim[own] == 1 ? 0 : type.stride[own];
  }
}

int64_t element_count(const tn_type& type) {
  int64_t n = 1;
  for (int d = 0; d < type.rank; ++d) n *= type.dim[d];
  return n;
}

bool is_constant(const Loop& loop, const int64_t* stride) {
  for (int d = 0; d < loop.rank; ++d)
    if (stride[d] != 0 && loop.dim[d] != 1) return false;
  return true;
}

void* dense_block(const Loop& loop, const Operand& x, int64_t first, int64_t n) {
  int64_t offset = 0;
  if (!dense_offset(loop, x.stride, first, n, &offset)) return nullptr;
  char* p = x.base + offset * x.bytes;
  const uint32_t align = x.bytes < 8 ? x.bytes : 8;
  return reinterpret_cast<uintptr_t>(p) % align == 0 ? p : nullptr;  // typed loops need aligned elements
}

const void* load_block(const Loop& loop, const Operand& x, int64_t first, int64_t n, void* scratch) {
  if (const void* p = dense_block(loop, x, first, n)) return p;
  char* out = static_cast<char*>(scratch);
  const int64_t step = x.stride[loop.rank - 1];
  with_element(x.bytes, [&](auto element) {
    using T = decltype(element);
    for_runs(loop, x.stride, first, n, [&](int64_t offset, int64_t run) {
      const char* src = x.base + offset * static_cast<int64_t>(sizeof(T));
      if (step == 1) std::memcpy(out, src, static_cast<size_t>(run) * sizeof(T));
      else gather_run<T>(src, step, run, out);
      out += run * static_cast<int64_t>(sizeof(T));
    });
  });
  return scratch;
}

void store_block(const Loop& loop, const Operand& x, int64_t first, int64_t n, const void* values) {
  const char* in = static_cast<const char*>(values);
  const int64_t step = x.stride[loop.rank - 1];
  with_element(x.bytes, [&](auto element) {
    using T = decltype(element);
    for_runs(loop, x.stride, first, n, [&](int64_t offset, int64_t run) {
      char* dst = x.base + offset * static_cast<int64_t>(sizeof(T));
      if (step == 1) std::memmove(dst, in, static_cast<size_t>(run) * sizeof(T));
      else scatter_run<T>(dst, step, run, in);
      in += run * static_cast<int64_t>(sizeof(T));
    });
  });
}

}  // namespace tenon::reference
