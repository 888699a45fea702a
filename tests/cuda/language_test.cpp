// The doubles' device language: what the texts may use means the same as on a device. The texts also go through the real
// compiler where there is one, so that the doubles offer nothing that it lacks.
#include <cmath>

#include "tests/cuda/route.h"

namespace tenon::gpu::test {
namespace {

KernelSpec words_out(const char* name, uint32_t group) {
  KernelSpec s;
  s.name = name;
  s.buffers.push_back({"y", TN_U32, true});
  s.group[0] = group;
  return s;
}

// Both spellings of the exchange between lanes.
std::string lanes() {
  if (is_cuda())
    return "#define SHFL(v, l, w) __shfl_sync(0xffffffffu, v, l, w)\n#define XOR(v, m, w) __shfl_xor_sync(0xffffffffu, v, m, w)\n"
           "#define UP(v, d, w) __shfl_up_sync(0xffffffffu, v, d, w)\n#define DOWN(v, d, w) __shfl_down_sync(0xffffffffu, v, d, w)\n"
           "#define BALLOT(p) __ballot_sync(0xffffffffu, p)\n#define ANY(p) __any_sync(0xffffffffu, p)\n#define ALL(p) __all_sync(0xffffffffu, p)\n";
  return "#define SHFL(v, l, w) __shfl(v, l, w)\n#define XOR(v, m, w) __shfl_xor(v, m, w)\n#define UP(v, d, w) __shfl_up(v, d, w)\n#define DOWN(v, d, w) __shfl_down(v, d, w)\n"
         "#define BALLOT(p) __ballot(p)\n#define ANY(p) __any(p)\n#define ALL(p) __all(p)\n";
}

class Language : public Route {
 protected:
  std::vector<uint32_t> run(const char* name, const std::string& text, uint32_t threads, size_t words) {
    const auto k = kernel(words_out(name, threads), text);
    const Memory y = upload(std::vector<uint32_t>(words));
    if (k == nullptr) return std::vector<uint32_t>(words);
    EXPECT_EQ(launch(*k, {{y.handle, 0, words * 4}}, "", 1, threads), TN_OK) << diag_.msg;
    return download<uint32_t>(y, words);
  }
};

const char* const kBits = R"(
extern "C" __global__ void __launch_bounds__(1) bits(unsigned* y) {
  y[0] = __popc(0xF0F0u) + 100 * __popcll(0xFF00000000000000ull);
  y[1] = __clz(1) + 100 * __clz(0);
  y[2] = __clzll(1);
  y[3] = __ffs(8) + 100 * __ffs(0);
  y[4] = __umulhi(0x80000000u, 6u);
  y[5] = (unsigned)__mulhi(-2147483647 - 1, 2);
  y[6] = (unsigned)__umul64hi(1ull << 63, 10ull);
  y[7] = __float_as_uint(1.5f);
  y[8] = __uint_as_float(0x40490fdbu) > 3.14159f && __uint_as_float(0x40490fdbu) < 3.1416f;
  y[9] = (unsigned)(__double_as_longlong(2.0) >> 52);
  y[10] = __longlong_as_double(0x4000000000000000ll) == 2.0;
  y[11] = (unsigned)__float_as_int(-0.0f);
  y[12] = min(3, -4) == -4 && max(3u, 4u) == 4u && min(1.0f, 2.0f) == 1.0f && max(1.0, 2.0) == 2.0;
  y[13] = isnan(__int_as_float(0x7fc00000)) && !isinf(1.0f) && isinf(__int_as_float(0x7f800000)) && isfinite(1.0);
}
)";
TEST_F(Language, bits_and_integers) {
  EXPECT_EQ(run("bits", kBits, 1, 14), (std::vector<uint32_t>{808, 3231, 63, 4, 3, 0xFFFFFFFF, 5, 0x3FC00000, 1, 0x400, 1, 0x80000000, 1, 1}));
}

const char* const kRounding = R"(
extern "C" __global__ void __launch_bounds__(1) rounding(unsigned* y) {
  // (1 + e)^2 - (1 + 2e) is e^2 exactly, and 0 when the product is rounded first.
  volatile float a = 1.0f + 1.0f / 4096.0f, c = -(1.0f + 2.0f / 4096.0f);
  const float x = a, z = c;
  y[0] = x * x + z == 0.0f;
  y[1] = fmaf(x, x, z) == 1.0f / 16777216.0f;
  y[2] = __fmaf_rn(x, x, z) == 1.0f / 16777216.0f;
  volatile double b = 1.0 + 1.0 / 134217728.0, d = -(1.0 + 2.0 / 134217728.0);
  y[3] = b * b + d == 0.0;
  y[4] = fma((double)b, (double)b, (double)d) > 0.0;
  volatile float tiny = 1.0e-38f;
  y[5] = tiny * 0.01f > 0.0f;  // subnormal numbers are kept
  volatile float three = 3.0f;
  y[6] = __float_as_uint(1.0f / three);
  y[7] = __float_as_uint(sqrtf(three));
  y[8] = __float_as_uint(rintf(2.5f) + floorf(-0.5f) * 16.0f + ceilf(0.5f) * 256.0f + truncf(-1.5f) * 4096.0f);
}
)";
TEST_F(Language, nothing_is_contracted_or_flushed) {
  const float rounded = 2.0f - 16.0f + 256.0f - 4096.0f, third = 1.0f / 3.0f, root = std::sqrt(3.0f);
  uint32_t want[3];
  std::memcpy(&want[0], &third, 4), std::memcpy(&want[1], &root, 4), std::memcpy(&want[2], &rounded, 4);
  EXPECT_EQ(run("rounding", kRounding, 1, 9), (std::vector<uint32_t>{1, 1, 1, 1, 1, 1, want[0], want[1], want[2]}));
}

std::string warp_text() {
  return lanes() + R"(
extern "C" __global__ void __launch_bounds__(64) warp(unsigned* y) {
  const unsigned i = threadIdx.x, lane = i % 32u;
  y[i] = SHFL(i, 5, 32);
  y[64 + i] = UP(i, 3u, 32);
  y[128 + i] = DOWN(i, 3u, 32);
  y[192 + i] = XOR(i, 6, 8);
  y[256 + i] = SHFL(i, 2, 8);
  y[320 + i] = (unsigned)(BALLOT(lane % 3u == 0u) >> (i / 32u * 32u % warpSize));
  y[384 + i] = ANY(lane == 7u) + 2 * ANY(lane == 99u) + 4 * ALL(lane < 32u) + 8 * ALL(lane == 7u);
  const double wide = SHFL(1.0 / (double)(i + 1u), 9, 32);
  y[448 + i] = wide == 1.0 / (double)(i / 32u * 32u + 10u);
}
)";
}
TEST_F(Language, lanes_see_each_other_within_their_section) {
  const auto y = run("warp", warp_text(), 64, 512);
  uint32_t thirds = 0;
  for (uint32_t l = 0; l < 32; l += 3) thirds |= 1u << l;
  for (uint32_t i = 0; i < 64; ++i) {
    const uint32_t first = i / 32 * 32, lane = i % 32;
    ASSERT_EQ(y[i], first + 5) << i;
    ASSERT_EQ(y[64 + i], lane < 3 ? i : i - 3) << i;
    ASSERT_EQ(y[128 + i], lane + 3 < 32 ? i + 3 : i) << i;
    ASSERT_EQ(y[192 + i], i ^ 6) << i;
    ASSERT_EQ(y[256 + i], i / 8 * 8 + 2) << i;
    ASSERT_EQ(y[320 + i], thirds) << i;
    ASSERT_EQ(y[384 + i], 1u + 4u) << i;
    ASSERT_EQ(y[448 + i], 1u) << i;
  }
}

const char* const kAtomics = R"(
extern "C" __global__ void __launch_bounds__(32) atomics(unsigned* y) {
  float* f = (float*)(y + 8);
  double* d = (double*)(y + 10);
  unsigned long long* u = (unsigned long long*)(y + 12);
  const unsigned i = threadIdx.x;
  atomicAdd(&y[0], i);
  atomicSub(&y[1], 1u);
  atomicMin((int*)&y[2], -(int)i);
  atomicMax(&y[3], i);
  atomicAnd(&y[4], ~(1u << i));
  atomicOr(&y[5], 1u << i);
  atomicXor(&y[6], 1u << (i / 2u));
  atomicExch(&y[7], 9u);
  atomicAdd(f, 0.5f);
  atomicAdd(d, 0.25);
  atomicAdd(u, 1ull << 32);
  __threadfence();
  atomicCAS(&y[14], 0u, i + 1u);
}
)";
TEST_F(Language, atomics_return_to_one_result) {
  const auto y = run("atomics", kAtomics, 32, 16);
  EXPECT_EQ(std::vector<uint32_t>(y.begin(), y.begin() + 8), (std::vector<uint32_t>{496, 0xFFFFFFE0, 0xFFFFFFE1, 31, 0, 0xFFFFFFFF, 0, 9}));
  float f;
  double d;
  std::memcpy(&f, &y[8], 4), std::memcpy(&d, &y[10], 8);
  EXPECT_EQ(f, 16.0f);
  EXPECT_EQ(d, 8.0);
  EXPECT_EQ(y[13], 32u);
  EXPECT_NE(y[14], 0u);
}

const char* const kVectors = R"(
struct Params { unsigned n; };
__device__ __forceinline__ float4 twice(float4 v) { return make_float4(2.0f * v.x, 2.0f * v.y, 2.0f * v.z, 2.0f * v.w); }
__device__ static float third(float2 a, int4 b) { return a.x + (float)b.w; }
extern "C" __global__ void __launch_bounds__(4) vectors(unsigned* y) {
  __shared__ float4 tile[4];
  __shared__ unsigned total;
  if (threadIdx.x == 0) total = 0u;
  tile[threadIdx.x] = make_float4(1.0f, 2.0f, 3.0f, (float)threadIdx.x);
  __syncthreads();
  const float4 v = twice(tile[3u - threadIdx.x]);
  atomicAdd(&total, (unsigned)v.w);
  __syncthreads();
  y[threadIdx.x] = (unsigned)(v.w + 10.0f * v.x + third(make_float2(100.0f, 0.0f), make_int4(0, 0, 0, 1000)));
  if (threadIdx.x == 0) y[4] = total + blockDim.x * 100u + gridDim.x * 1000u;
}
)";
TEST_F(Language, vectors_functions_and_local_memory) {
  EXPECT_EQ(run("vectors", kVectors, 4, 5), (std::vector<uint32_t>{1126, 1124, 1122, 1120, 1412}));
}

TEST_F(Language, the_real_compiler_takes_the_same_texts) {
  tn_status found = TN_E_UNAVAILABLE;
  config_.erase("cuda.libnvrtc");
  for (const char* name : {"libhiprtc.so.7", "libhiprtc.so.6", "libhiprtc.so.5", "libamdhip64.so.5"}) {
    config_["rocm.libhiprtc"] = name;
    if (found != TN_OK) found = try_driver();
    if (found == TN_OK) break;
  }
  if (found != TN_OK) GTEST_SKIP() << diag_.msg;
  for (const auto& [name, text] : std::map<std::string, std::string>{{"bits", kBits}, {"rounding", kRounding}, {"warp", warp_text()}, {"atomics", kAtomics}, {"vectors", kVectors}}) {
    std::string binary;
    EXPECT_EQ(device().compile(words_out(name.c_str(), 1), text, {}, &binary, &diag_), TN_OK) << diag_.msg;
    EXPECT_EQ(binary.compare(1, 3, "ELF"), 0) << name;
  }
}

}  // namespace
}  // namespace tenon::gpu::test
