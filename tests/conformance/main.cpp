// Conformance of every op and kernel. --full tries every combination of case, element type and candidate; without it a
// fixed sample runs.
#include <gtest/gtest.h>

#include <cstring>

#include "tools/conformance/trial.h"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i < argc; ++i)
    if (std::strcmp(argv[i], "--full") == 0) tenon::conformance::set_full_run(true);
  return RUN_ALL_TESTS();
}
