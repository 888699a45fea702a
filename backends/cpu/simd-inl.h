// backends/cpu/simd-inl.h - parts of vectors, the same on every target. Included once per target.
#if defined(TENON_CPU_SIMD_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef TENON_CPU_SIMD_INL
#undef TENON_CPU_SIMD_INL
#else
#define TENON_CPU_SIMD_INL
#endif

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The first `count` lanes from or to memory; nothing beyond them is touched, other lanes load as zero.
template <class D>
HWY_INLINE hn::Vec<D> load_part(D d, const float* p, int64_t count) {
#if HWY_MEM_OPS_MIGHT_FAULT
  float lane[HWY_MAX_BYTES / 4] = {};
  for (int64_t i = 0; i < count; ++i) lane[i] = p[i];
  return hn::LoadU(d, lane);
#else
  return hn::MaskedLoad(hn::FirstN(d, size_t(count)), d, p);
#endif
}
template <class D>
HWY_INLINE void store_part(D d, hn::Vec<D> v, float* p, int64_t count) {
#if HWY_MEM_OPS_MIGHT_FAULT
  float lane[HWY_MAX_BYTES / 4];
  hn::StoreU(v, d, lane);
  for (int64_t i = 0; i < count; ++i) p[i] = lane[i];
#else
  hn::BlendedStore(v, hn::FirstN(d, size_t(count)), d, p);
#endif
}
template <class D>
HWY_INLINE double sum_lanes(D d, hn::Vec<D> v) {
  return double(hn::GetLane(hn::SumOfLanes(d, v)));
}

}  // namespace tenon::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
