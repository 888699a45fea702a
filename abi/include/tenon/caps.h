/* tenon/caps.h - the numbers of caps.def as constants: TN_CAPKEY_CORES, TN_ISA_AVX2, TN_EXT_MEM_DMABUF_FD.
 * Example:  if (cold.cpu_need[TN_ISA_AVX2 / 64] >> (TN_ISA_AVX2 % 64) & 1) ...                                        */
#ifndef TENON_CAPS_H
#define TENON_CAPS_H
#include <tenon/caps.def>
#include <tenon/types.h>
#ifdef __cplusplus
extern "C" {
#endif

#define TN_CAPKEY_(NAME, name, key, type, unit, since) TN_CAPKEY_##NAME = key,
enum { TN_CAPS(TN_CAPKEY_) TN_CAPKEY_END_ };
#undef TN_CAPKEY_
#define TN_ISA_(NAME, name, bit) TN_ISA_##NAME = bit,
enum { TN_ISA_BITS(TN_ISA_) TN_ISA_END_ = 256 };
#undef TN_ISA_
#define TN_EXT_MEM_(NAME, name, id) TN_EXT_MEM_##NAME = id,
enum { TN_EXT_MEMS(TN_EXT_MEM_) TN_EXT_MEM_END_ };
#undef TN_EXT_MEM_

#ifdef __cplusplus
}
#endif
#endif
