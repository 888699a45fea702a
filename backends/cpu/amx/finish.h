// backends/cpu/amx/finish.h - a finished 32 x 32 micro tile on its way to C.
#pragma once
#include "backends/cpu/amx/target.h"

namespace tenon::cpu {

// To bf16, nearest even; NaN stays NaN and subnormals are kept (the bf16 instruction would flush them).
TENON_AMX inline __m256i to_bf16(__m512 x) {
  const __m512i u = _mm512_castps_si512(x);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(u, 16), _mm512_set1_epi32(1));
  const __m512i rounded = _mm512_srli_epi32(_mm512_add_epi32(u, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7FFF))), 16);
  const __m512i quiet = _mm512_or_si512(_mm512_srli_epi32(u, 16), _mm512_set1_epi32(0x40));
  return _mm512_cvtepi32_epi16(_mm512_mask_mov_epi32(rounded, _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), quiet));
}

// Rows of it are rounded and stored a few at a time, between the steps of the next micro tile, where the tile unit hides the
// work, or at one go.
struct Finish {
  const char* tiles = nullptr;        // 2 x 2 tiles of 1 KiB
  char* c = nullptr;                  // of its first row and column
  int64_t c_row = 0, rows = 0, cols = 0;
  bool narrow = false, stream = false;  // to bf16, else 32 bits; past the caches
  int64_t at = 0;

  TENON_AMX void some(int64_t count) {
    const Finish f = *this;  // a copy that no store may alias stays in registers
    const int64_t end = std::min(f.rows, f.at + count);
    for (int64_t row = f.at; row < end; ++row) {
      const char* from = f.tiles + row / 16 * 2048 + row % 16 * 64;
      if (f.narrow) f.bf16_row(from, f.c + row * f.c_row);
      else f.wide_row(from, f.c + row * f.c_row);
    }
    at = end;
  }
  TENON_AMX void rest() { some(rows - at); }

 private:
  static __mmask16 columns(int64_t left) { return static_cast<__mmask16>(left >= 16 ? 0xFFFF : left <= 0 ? 0 : (1u << left) - 1); }
  TENON_AMX void bf16_row(const char* from, char* to) const {
    const __m256i low = to_bf16(_mm512_load_ps(from));
    if (cols >= 32) {
      const __m256i high = to_bf16(_mm512_load_ps(from + 1024));
      const __m512i both = _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
      if (stream) _mm512_stream_si512(reinterpret_cast<__m512i*>(to), both);
      else _mm512_storeu_si512(to, both);
      return;
    }
    _mm256_mask_storeu_epi16(to, columns(cols), low);
    if (cols > 16) _mm256_mask_storeu_epi16(to + 32, columns(cols - 16), to_bf16(_mm512_load_ps(from + 1024)));
  }
  TENON_AMX void wide_row(const char* from, char* to) const {
    const __m512i low = _mm512_load_si512(from), high = _mm512_load_si512(from + 1024);
    if (stream && cols >= 32) {
      _mm512_stream_si512(reinterpret_cast<__m512i*>(to), low);
      _mm512_stream_si512(reinterpret_cast<__m512i*>(to + 64), high);
      return;
    }
    _mm512_mask_storeu_epi32(to, columns(cols), low);
    if (cols > 16) _mm512_mask_storeu_epi32(to + 64, columns(cols - 16), high);
  }
};

}  // namespace tenon::cpu
