// libFuzzer entry for the cold reader:
//   clang++ -std=c++20 -g -O1 -fsanitize=fuzzer,address,undefined -I. -Iabi/include tests/loader/elf_fuzz.cpp \
//     loader/cold/elf.cpp -o elf_fuzz && ./elf_fuzz -max_total_time=300 CORPUS
#include "loader/cold/elf.h"

#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto r = tenon::loader::read_cold_elf({reinterpret_cast<const std::byte*>(data), size});
  // Ok and a cause exclude each other.
  if ((r.status == tenon::loader::ColdStatus::Ok) != r.cause.empty()) std::abort();
  return 0;
}
