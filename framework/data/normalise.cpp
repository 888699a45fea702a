// u8 to f32, the inner loop of batch assembly; a file of its own because it is always built for speed.
#include <tenon/data/transforms.hpp>

// One clone per vector width, chosen when the library is loaded. Sanitizers run before such choices can be made safely.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define TENON_CLONES __attribute__((target_clones("default", "avx2", "avx512f")))
#else
#define TENON_CLONES
#endif

namespace tenon::data {
namespace {

// Multiplication and addition are rounded apart (no contraction in this tree), so that all clones agree bit for bit.
TENON_CLONES void convert(const uint8_t* __restrict in, uint64_t n, float scale, float bias, float* __restrict out) {
  for (uint64_t i = 0; i < n; ++i) out[i] = static_cast<float>(static_cast<int>(in[i])) * scale + bias;
}

}  // namespace

void Normalise::apply(const uint8_t* image, ImageShape shape, float* out) const {
  const uint64_t plane = uint64_t{shape.height} * shape.width;
  for (uint32_t c = 0; c < shape.channels; ++c) {
    const double m = mean[mean.size() == 1 ? 0 : c], s = stddev[stddev.size() == 1 ? 0 : c];
    convert(image + c * plane, plane, static_cast<float>(1.0 / (255.0 * s)), static_cast<float>(-m / s), out + c * plane);
  }
}

}  // namespace tenon::data
