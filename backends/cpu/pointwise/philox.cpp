// Philox4x32-10 (Salmon et al. 2011) with counter (low, high, 0, 0) and key (low, high), on 64-bit lanes: the low half of
// a lane holds a word of one element, the high half whatever is left over, which the products never see.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/pointwise/philox.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include "backends/cpu/pointwise/block_ops.h"
#include "backends/cpu/pointwise/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::cpu::HWY_NAMESPACE {

constexpr uint32_t kMultiplier[2] = {0xD2511F53u, 0xCD9E8D57u}, kWeyl[2] = {0x9E3779B9u, 0xBB67AE85u};

#if TENON_CPU_EMULATED
template <int kWord>
uint32_t philox_one(uint64_t counter, uint64_t key) {
  uint32_t c[4] = {uint32_t(counter), uint32_t(counter >> 32), 0, 0}, k0 = uint32_t(key), k1 = uint32_t(key >> 32);
  for (int round = 0; round < 10; ++round, k0 += kWeyl[0], k1 += kWeyl[1]) {
    const uint64_t p0 = uint64_t{kMultiplier[0]} * c[0], p1 = uint64_t{kMultiplier[1]} * c[2];
    const uint32_t next[4] = {uint32_t(p1 >> 32) ^ c[1] ^ k0, uint32_t(p1), uint32_t(p0 >> 32) ^ c[3] ^ k1, uint32_t(p0)};
    std::memcpy(c, next, sizeof c);
  }
  return c[kWord];
}
#else
template <int kWord, class D, class V = hn::Vec<D>>
HWY_INLINE V philox_lanes(D d, const uint64_t* counter, const uint64_t* key) {
  const hn::Repartition<uint32_t, D> words;
  const V m0 = hn::Set(d, kMultiplier[0]), m1 = hn::Set(d, kMultiplier[1]);
  const auto product = [&](V a, V b) HWY_ATTR { return hn::MulEven(hn::BitCast(words, a), hn::BitCast(words, b)); };
  V c0 = hn::LoadU(d, counter), c1 = hn::ShiftRight<32>(c0), c2 = hn::Zero(d), c3 = c2;
  V k0 = hn::LoadU(d, key), k1 = hn::ShiftRight<32>(k0);
#pragma GCC unroll 10
  for (int round = 0; round < 10; ++round) {
    const V p0 = product(c0, m0), p1 = product(c2, m1);
    c0 = hn::Xor(hn::ShiftRight<32>(p1), hn::Xor(c1, k0)), c1 = p1;
    c2 = hn::Xor(hn::ShiftRight<32>(p0), hn::Xor(c3, k1)), c3 = p0;
    k0 = hn::Add(k0, hn::Set(d, kWeyl[0])), k1 = hn::Add(k1, hn::Set(d, kWeyl[1]));
  }
  return kWord == 0 ? c0 : kWord == 1 ? c1 : kWord == 2 ? c2 : c3;
}
#endif
template <int kWord>
void philox_word(void* dst, const void* a, const void* b, const void*, const void*, int64_t n) {
  auto* o = static_cast<uint32_t*>(dst);
  auto* counter = static_cast<const uint64_t*>(a);
  auto* key = static_cast<const uint64_t*>(b);
#if TENON_CPU_EMULATED
  for (int64_t i = 0; i < n; ++i) o[i] = philox_one<kWord>(counter[i], key[i]);
#else
  const hn::ScalableTag<uint64_t> d;
  const hn::ScalableTag<uint32_t> words;
  const int64_t lanes = int64_t(hn::Lanes(d));
  for (int64_t i = 0; i < n; i += 2 * lanes) {
    const auto low = philox_lanes<kWord>(d, counter + i, key + i), high = philox_lanes<kWord>(d, counter + i + lanes, key + i + lanes);
    hn::StoreU(hn::ConcatEven(words, hn::BitCast(words, high), hn::BitCast(words, low)), words, o + i);
  }
#endif
}
BlockFn philox_code(uint32_t word) {
  constexpr BlockFn kCode[] = {philox_word<0>, philox_word<1>, philox_word<2>, philox_word<3>};
  return word < 4 ? kCode[word] : nullptr;
}

}  // namespace tenon::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "backends/cpu/isa.h"
namespace tenon::cpu {
BlockFn find_philox(Isa isa, uint32_t word) { return TENON_CPU_PICK(isa, philox_code)(word); }
}  // namespace tenon::cpu
#endif
