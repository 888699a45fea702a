// libFuzzer entry for the cold readers; READER is read_cold_elf, read_cold_pe, read_cold_macho or read_cold (all kinds):
//   clang++ -std=c++20 -g -O1 -fsanitize=fuzzer,address,undefined -DREADER=read_cold_pe -I. -Iabi/include \
//     tests/loader/cold_fuzz.cpp loader/cold/*.cpp -o pe_fuzz && ./pe_fuzz -max_total_time=300 CORPUS
// Seeds: good.so, foreign.dll and foreign.dylib of build/dev/tests/loader/fixtures.
#include "loader/cold/read.h"

#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tenon::loader;
  const ColdResult r = READER({reinterpret_cast<const std::byte*>(data), size});
  // Ok and a cause exclude each other, and an Ok says of what kind the file is.
  if ((r.status == ColdStatus::Ok) != r.cause.empty()) std::abort();
  if (r.status == ColdStatus::Ok && (r.kind == FileKind::Unknown || r.machine.empty())) std::abort();
  return 0;
}
