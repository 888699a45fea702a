#include "kernel/type_table.h"

#include <algorithm>

#include "kernel/status.h"

namespace tenon::kernel {

uint64_t hash_bytes(const void* data, size_t bytes, uint64_t seed) {
  const unsigned char* p = static_cast<const unsigned char*>(data);
  uint64_t h = seed ^ bytes;
  for (; bytes >= 8; p += 8, bytes -= 8) {
    uint64_t word;
    std::memcpy(&word, p, 8);
    h = (h ^ word) * 0x9FB21C651E98DF25ull;
    h ^= h >> 32;
  }
  uint64_t tail = 0;
  std::memcpy(&tail, p, bytes);
  h = (h ^ tail) * 0x9FB21C651E98DF25ull;
  return h ^ (h >> 29);
}

// Without sign while multiplying: sizes in front of a zero may have any product.
int64_t element_count(const tn_type& t) {
  uint64_t n = 1;
  for (int i = 0; i < t.rank; ++i) n *= static_cast<uint64_t>(t.dim[i]);
  return static_cast<int64_t>(n);
}

uint64_t dense_bytes(const tn_type& t) {
  const uint64_t bits = dtype_bits(t.dtype);
  uint64_t row = t.rank ? static_cast<uint64_t>(t.dim[t.rank - 1]) : 1;
  if (__builtin_mul_overflow(row, bits, &row)) return UINT64_MAX;
  uint64_t bytes = row / 8 + (row % 8 != 0);
  for (int i = 0; i + 1 < t.rank; ++i)
    if (__builtin_mul_overflow(bytes, static_cast<uint64_t>(t.dim[i]), &bytes)) return UINT64_MAX;
  return bytes;
}

bool element_range(const tn_type& t, int64_t* lo, int64_t* hi) {
  *lo = *hi = 0;
  for (int i = 0; i < t.rank; ++i)
    if (t.dim[i] == 0) return true;
  for (int i = 0; i < t.rank; ++i) {
    int64_t reach;
    if (__builtin_mul_overflow(t.dim[i] - 1, t.stride[i], &reach)) return false;
    int64_t* end = reach < 0 ? lo : hi;
    if (__builtin_add_overflow(*end, reach, end)) return false;
  }
  return true;
}

bool is_dense(const tn_type& t) {
  uint64_t stride = 1;
  for (int i = t.rank - 1; i >= 0; --i) {
    if (t.dim[i] != 1 && t.stride[i] != static_cast<int64_t>(stride)) return false;
    stride *= static_cast<uint64_t>(t.dim[i] ? t.dim[i] : 1);
  }
  return true;
}

void set_dense_strides(tn_type* t) {
  uint64_t stride = 1;
  for (int i = t->rank - 1; i >= 0; --i) {
    t->stride[i] = static_cast<int64_t>(stride);
    stride *= static_cast<uint64_t>(t->dim[i] ? t->dim[i] : 1);
  }
}

bool has_symbols(const tn_type& t) {
  for (int i = 0; i < t.rank; ++i)
    if (TN_IS_SYM(t.dim[i]) || TN_IS_SYM(t.stride[i])) return true;
  return false;
}

tn_status check_type(const tn_type& t, tn_diag* diag) {
  if (dtype_bits(t.dtype) == 0)
    return fail(diag, TN_E_DTYPE, id(kArg, 201), "unknown element type\nwhy: dtype is %u\ntry: use one of TN_DTYPES", t.dtype);
  if (t.rank > TN_MAX_RANK)
    return fail(diag, TN_E_SHAPE, id(kArg, 202), "rank is too large\nwhy: rank %u, at most %d\ntry: merge axes with reshape", t.rank, TN_MAX_RANK);
  if (t.align_log2 > 12 || t.reserved != 0)
    return fail(diag, TN_E_ARG, id(kArg, 203), "tensor type is malformed\nwhy: align_log2 %u, reserved %u\ntry: zero the struct before filling it",
                t.align_log2, t.reserved);
  if (t.layout != TN_LAYOUT_STRIDED && t.layout < TN_LAYOUT_OPAQUE)
    return fail(diag, TN_E_ARG, id(kOp, 138), "no such layout\nwhy: layout is %u; 0 is strided, others come from tn_tensor_pack\ntry: zero the struct before filling it", t.layout);
  for (int i = 0; i < TN_MAX_RANK; ++i) {
    if (i >= t.rank ? t.dim[i] != 0 || t.stride[i] != 0 : t.dim[i] < 0 && !TN_IS_SYM(t.dim[i]))
      return fail(diag, TN_E_SHAPE, id(kArg, 204), "dimension %d is not allowed\nwhy: it is %lld, rank is %u\ntry: give sizes >= 0 and zero unused fields",
                  i, static_cast<long long>(t.dim[i]), t.rank);
  }
  if (has_symbols(t)) return TN_OK;
  int64_t lo, hi;
  uint64_t bytes = dense_bytes(t), reach = 0;
  if (bytes > INT64_MAX || !element_range(t, &lo, &hi) || __builtin_mul_overflow(static_cast<uint64_t>(hi - lo), dtype_bits(t.dtype), &reach) ||
      reach > static_cast<uint64_t>(INT64_MAX))
    return fail(diag, TN_E_SHAPE, id(kArg, 205), "tensor is too large\nwhy: its size in bytes passes 2^63\ntry: use smaller dimensions");
  return TN_OK;
}

TypeTable::TypeTable() {
  for (Shard& s : shards_) s.buckets.assign(2 * kSlots, 0);
}

tn_status TypeTable::intern(const tn_type& type, uint32_t* out_id, tn_diag* diag) {
  const uint64_t h = hash_type(type);
  const uint32_t shard_index = static_cast<uint32_t>(h >> 60);
  Shard& s = shards_[shard_index];
  std::lock_guard lock(s.mutex);
  const uint32_t wrap = 2 * kSlots - 1;
  uint32_t at = static_cast<uint32_t>(h) & wrap;
  for (; s.buckets[at]; at = (at + 1) & wrap) {
    const uint32_t slot = s.buckets[at] - 1;
    if (same_type(s.types[slot], type)) {
      *out_id = slot << kShardBits | shard_index | s.generation << 20;
      return TN_OK;
    }
  }
  if (tn_status status = check_type(type, diag)) return status;
  if (s.types.size() == kSlots - (shard_index == 0)) {  // shard 0 keeps slot 0 free: id 0 is "none"
    if (s.generation == 0xFFF)
      return fail(diag, TN_E_LIMIT, id(kState, 1), "too many distinct tensor types\nwhy: all generations of the type table are spent\ntry: make a new runtime");
    ++s.generation;
    if (epoch_) epoch_->fetch_add(1);
    s.types.clear();
    std::fill(s.buckets.begin(), s.buckets.end(), 0u);
    at = static_cast<uint32_t>(h) & wrap;
  }
  if (shard_index == 0 && s.types.empty()) s.types.push_back(tn_type{});
  s.types.push_back(type);
  s.buckets[at] = static_cast<uint32_t>(s.types.size());
  *out_id = static_cast<uint32_t>(s.types.size() - 1) << kShardBits | shard_index | s.generation << 20;
  return TN_OK;
}

bool TypeTable::get(uint32_t id, tn_type* out) const {
  const Shard& s = shards_[id & (kShards - 1)];
  const uint32_t slot = (id & 0xFFFFF) >> kShardBits;
  std::lock_guard lock(s.mutex);
  if (id == 0 || s.generation != id >> 20 || slot >= s.types.size()) return false;
  *out = s.types[slot];
  return true;
}

uint32_t TypeTable::size() const {
  size_t n = 0;
  for (const Shard& s : shards_) {
    std::lock_guard lock(s.mutex);
    n += s.types.size();
  }
  return static_cast<uint32_t>(n);
}

}  // namespace tenon::kernel
