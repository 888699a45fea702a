// The entry libFuzzer calls; one executable per target, chosen by TENON_FUZZ_TARGET.
#include "targets.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tenon::fuzz::TENON_FUZZ_TARGET.run(data, size);
  return 0;
}
