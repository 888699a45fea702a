// kernel/type_table.h - tensor types interned to 32-bit ids: index | generation << 20.
//
// Bounded: when a shard is full it is emptied and its generation rises; old ids are then unknown here (TN_E_STALE), while
// every tensor keeps its own copy of its type, so nothing alive depends on this table. Ids are never reused for another
// content: a shard whose generations are spent refuses (after more than 500 million distinct types).
// Threads: any.
#pragma once
#include <tenon/types.h>

#include <atomic>
#include <cstring>
#include <mutex>
#include <vector>

namespace tenon::kernel {

inline bool same_type(const tn_type& a, const tn_type& b) { return std::memcmp(&a, &b, sizeof a) == 0; }
uint64_t hash_bytes(const void* data, size_t bytes, uint64_t seed = 0x9E3779B97F4A7C15ull);
inline uint64_t hash_type(const tn_type& t) { return hash_bytes(&t, sizeof t); }

// Bytes of a dense tensor of that type; UINT64_MAX on overflow. Sub-byte rows start on a byte.
uint64_t dense_bytes(const tn_type& t);
// Smallest number of bytes from the first element's address that holds every element; strides >= 0 assumed checked.
int64_t element_count(const tn_type& t);
// Offset range of elements relative to the first one, in elements. False on overflow.
bool element_range(const tn_type& t, int64_t* lo, int64_t* hi);
bool is_dense(const tn_type& t);  // row-major without gaps
void set_dense_strides(tn_type* t);
bool has_symbols(const tn_type& t);
tn_status check_type(const tn_type& t, tn_diag* diag);  // dtype, rank, dims, unused fields zero

class TypeTable {
 public:
  static constexpr uint32_t kLimit = 128 * 1024;  // documented bound: entries alive at once
  TypeTable();
  tn_status intern(const tn_type& type, uint32_t* out_id, tn_diag* diag);
  bool get(uint32_t id, tn_type* out) const;
  uint32_t size() const;
  // Raised at each sweep, so that caches which hand out ids start anew.
  void set_epoch(std::atomic<uint32_t>* epoch) { epoch_ = epoch; }

 private:
  std::atomic<uint32_t>* epoch_ = nullptr;
  static constexpr uint32_t kShardBits = 4, kSlotBits = 13, kShards = 1u << kShardBits, kSlots = 1u << kSlotBits;
  static_assert(kShards * kSlots == kLimit);
  struct Shard {
    mutable std::mutex mutex;
    std::vector<tn_type> types;      // slot -> type
    std::vector<uint32_t> buckets;   // open addressing, slot + 1, twice as many as slots
    uint32_t generation = 0;
  };
  Shard shards_[kShards];
};

}  // namespace tenon::kernel
