// backends/cpu/pointwise/chain.h - several f32 additions, subtractions and products on one value without a trip through
// memory: v = first; v = v op operand, link by link, eight vectors of elements at a time.
#pragma once
#include "backends/cpu/core.h"

namespace tenon::cpu {

enum ChainOp : uint8_t { kChainAdd, kChainSub, kChainRsub /* operand - v */, kChainMul };
constexpr int kMostLinks = 12;
struct Link { const float* operand; ChainOp op; };

// n is a multiple of kGranule, every operand holds n elements; dst may be one of them.
using ChainFn = void (*)(float* dst, const float* first, const Link* links, int n_links, int64_t n);
ChainFn find_chain(Isa);

}  // namespace tenon::cpu
