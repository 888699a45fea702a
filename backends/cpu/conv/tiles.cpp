#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/conv/tiles.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include "backends/cpu/conv/tiles.h"
#include "backends/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::cpu::HWY_NAMESPACE {
using ConvTag = hn::ScalableTag<float>;
using ConvVec = hn::Vec<ConvTag>;

template <int R, int V, int kGroup = kRowGroup>
void conv_tile(const ConvTile& t, const float* HWY_RESTRICT a, const float* HWY_RESTRICT b, float* HWY_RESTRICT c) {
  constexpr int kGroups = (R + kGroup - 1) / kGroup;
  const ConvTag d;
  constexpr int64_t kLanes = HWY_LANES(float);
  ConvVec acc[R][V];
#pragma GCC unroll 32
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) acc[r][v] = t.start ? hn::LoadU(d, t.start + v * kLanes) : hn::Zero(d);
  const int64_t row = t.a_row;
  for (int64_t i = 0; i < t.outer; ++i) {
    const float* group[kGroups];
#pragma GCC unroll 8
    for (int g = 0; g < kGroups; ++g) group[g] = a + i * t.a_outer + g * t.a_group;
    const float* from = b + i * t.b_outer;
    for (int64_t j = t.inner; j > 0; --j) {
      ConvVec w[V];
#pragma GCC unroll 2
      for (int v = 0; v < V; ++v) w[v] = hn::LoadU(d, from + v * kLanes);
#pragma GCC unroll 32
      for (int r = 0; r < R; ++r) {
        const ConvVec x = hn::Set(d, group[r / kGroup][(r % kGroup) * row]);
#pragma GCC unroll 2
        for (int v = 0; v < V; ++v) acc[r][v] = hn::MulAdd(x, w[v], acc[r][v]);
      }
      from += t.b_inner;
#pragma GCC unroll 8
      for (int g = 0; g < kGroups; ++g) group[g] += t.a_inner;
    }
  }
  const int64_t rest = t.count - (V - 1) * kLanes;
#pragma GCC unroll 32
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) {
      float* to = c + r * t.c_row + v * kLanes;
      if (v + 1 < V || rest >= kLanes) hn::StoreU(t.add ? hn::Add(hn::LoadU(d, to), acc[r][v]) : acc[r][v], d, to);
      else store_part(d, t.add ? hn::Add(load_part(d, to, rest), acc[r][v]) : acc[r][v], to, rest);
    }
}
template <int V, int... R>
constexpr void fill(ConvCode& code, std::integer_sequence<int, R...>) {
  code.rows[V] = sizeof...(R);
  ((code.tile[V][R + 1] = conv_tile<R + 1, V>), ...);
}
// As many sums as the registers hold beside the factors.
const ConvCode* tiles() {
  constexpr bool kManyRegisters = HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON;
  constexpr int kWide = kManyRegisters ? 14 : 6, kNarrow = kManyRegisters ? 14 : 12;
  static constexpr ConvCode kCode = [] {
    ConvCode code{};
    code.lanes = HWY_LANES(float);
    fill<1>(code, std::make_integer_sequence<int, kNarrow>());
    fill<2>(code, std::make_integer_sequence<int, kWide>());
    if constexpr (kManyRegisters) code.five = conv_tile<25, 1, 5>;
    return code;
  }();
  return &kCode;
}

}  // namespace tenon::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "backends/cpu/isa.h"
namespace tenon::cpu {
const ConvCode& conv_code(Isa isa) { return *TENON_CPU_PICK(isa, tiles)(); }
}  // namespace tenon::cpu
#endif
