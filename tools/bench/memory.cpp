#include <sys/mman.h>

#include <cstdlib>
#include <new>

#include "tools/bench/rival.h"

namespace tenon::bench {

std::shared_ptr<float[]> large_floats(size_t n) {
  constexpr size_t kHuge = size_t{2} << 20;
  const size_t bytes = (n * sizeof(float) + kHuge - 1) / kHuge * kHuge;
  void* block = std::aligned_alloc(kHuge, bytes);
  if (block == nullptr) throw std::bad_alloc();
  madvise(block, bytes, MADV_HUGEPAGE);
  float* values = static_cast<float*>(block);
  // Spread over -2 .. 2: no overflow, and no subnormal results, which cost a hundred times an ordinary one.
  for (size_t i = 0; i < n; ++i) values[i] = static_cast<float>(static_cast<uint32_t>(i) * 2654435761u >> 20) / 1024 - 2;
  return {values, [](float* p) { std::free(p); }};
}

}  // namespace tenon::bench
