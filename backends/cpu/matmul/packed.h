// backends/cpu/matmul/packed.h - what the rows with a stored b share: conditions, sizes, cutting the output for threads.
#pragma once
#include "backends/cpu/matmul/matmul.h"

namespace tenon::cpu {

// The shape of an op whose b is one matrix. A batch of dense a's is more rows of one a.
MatmulShape packed_shape(const tn_op&);

// Conditions of all rows with a stored b; `name` is the row's, for the reason. Sums are of type `accumulator`, results too, or
// bf16 where `narrow` permits it and no program follows.
tn_status check_packed(tn_instance*, const tn_op&, const char* name, uint32_t accumulator, bool narrow, tn_support*, tn_diag*);
// Conditions on b as pack() is to read it: a matrix that is not empty.
tn_status check_packable(const tn_op&, const char* name, tn_diag*);

// The output as bands of columns or rows, one for each thread and batch.
struct Bands {
  int64_t parts = 1, per_part = 0, side = 0;
  bool by_columns = false;
  Bands() = default;
  Bands(const MatmulShape&, uint32_t threads, double ns, int64_t row_grain, int64_t column_grain);
  // Band i of a batch: the first row or column, and how many (0 or less: none).
  int64_t first(int64_t i) const { return i * per_part; }
  int64_t count(int64_t i) const { return per_part < side - first(i) ? per_part : side - first(i); }
};
constexpr double kWorthThreads = 60000;  // ns of one thread

inline int64_t round_up(int64_t x, int64_t to) { return (x + to - 1) / to * to; }

// A row whose operand 1 lies in `layout`. `ext` lives as long as the row.
struct PackedRow {
  const char* name; const char* layout;
  uint32_t flags;
  const tn_constraint* cons; uint32_t n_cons;
  decltype(tn_kernel_info::supports) supports;
  decltype(tn_kernel_info::prepare) prepare;
  decltype(tn_kernel_info::retire) retire;
  decltype(tn_kernel_packed::bytes) bytes;
  decltype(tn_kernel_packed::pack) pack;
};
constexpr tn_kernel_packed packed_ext(const PackedRow& r) {
  return {{sizeof(tn_kernel_packed), TN_EXT_KERNEL_PACKED, nullptr}, 1, 0, r.layout, r.bytes, r.pack};
}
void add_packed_row(Rows&, const PackedRow&, const tn_kernel_packed* ext);

}  // namespace tenon::cpu
