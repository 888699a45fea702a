#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/pointwise/chain.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include "backends/cpu/pointwise/chain.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <int U>
HWY_INLINE void chain_group(float* dst, const float* first, const Link* links, int n_links, int64_t at) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  hn::Vec<decltype(d)> v[U];
#pragma GCC unroll 8
  for (int u = 0; u < U; ++u) v[u] = hn::LoadU(d, first + at + size_t(u) * lanes);
#define TENON_EACH(expression)                           \
  _Pragma("GCC unroll 8") for (int u = 0; u < U; ++u) {  \
    const auto y = hn::LoadU(d, operand + size_t(u) * lanes); \
    v[u] = expression;                                   \
  }                                                      \
  break;
  for (const Link* end = links + n_links; links != end; ++links) {
    const float* const operand = links->operand + at;
    switch (links->op) {
      case kChainAdd: TENON_EACH(hn::Add(v[u], y))
      case kChainSub: TENON_EACH(hn::Sub(v[u], y))
      case kChainRsub: TENON_EACH(hn::Sub(y, v[u]))
      case kChainMul: TENON_EACH(hn::Mul(v[u], y))
    }
  }
#undef TENON_EACH
#pragma GCC unroll 8
  for (int u = 0; u < U; ++u) hn::StoreU(v[u], d, dst + at + size_t(u) * lanes);
}
void chain(float* dst, const float* first, const Link* links, int n_links, int64_t n) {
  const int64_t lanes = int64_t(hn::Lanes(hn::ScalableTag<float>()));
  int64_t i = 0;
  for (; n - i >= 8 * lanes; i += 8 * lanes) chain_group<8>(dst, first, links, n_links, i);
  for (; i < n; i += lanes) chain_group<1>(dst, first, links, n_links, i);
}
ChainFn chain_code() { return chain; }

}  // namespace tenon::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "backends/cpu/isa.h"
namespace tenon::cpu {
ChainFn find_chain(Isa isa) { return TENON_CPU_PICK(isa, chain_code)(); }
}  // namespace tenon::cpu
#endif
