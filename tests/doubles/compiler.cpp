#include "tests/doubles/compiler.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "tests/doubles/settings.h"

namespace tenon_double {

void compiler_fault() {
  if (settings().compiler_fault == "abort") {
    std::fprintf(stderr, "munmap_chunk(): invalid pointer\n");
    std::abort();
  }
  if (settings().compiler_fault == "hang") pause();
}

}  // namespace tenon_double
