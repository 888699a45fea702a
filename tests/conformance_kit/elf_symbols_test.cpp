// Reading what a library exports: foreign bytes give an answer, never a crash.
#include "tools/conformance/elf_symbols.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>

namespace tenon::conformance {
namespace {

std::vector<char> own_bytes() {
  std::ifstream in("/proc/self/exe", std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

ElfSymbols read(const std::vector<char>& bytes) { return read_elf_symbols(std::as_bytes(std::span(bytes))); }

TEST(ElfSymbols, finds_what_a_program_links) {
  const ElfSymbols e = read(own_bytes());
  EXPECT_EQ(e.fault, "");
  EXPECT_TRUE(std::any_of(e.needed.begin(), e.needed.end(), [](const std::string& n) { return n.starts_with("libc.so"); }));
}

TEST(ElfSymbols, says_what_is_wrong_with_other_bytes) {
  EXPECT_NE(read({}).fault, "");
  EXPECT_NE(read({'h', 'e', 'l', 'l', 'o'}).fault, "");
}

TEST(ElfSymbols, survives_every_cut) {
  const std::vector<char> whole = own_bytes();
  for (size_t n = 1; n < whole.size(); n = n * 3 / 2 + 1) read({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(n)});
}

}  // namespace
}  // namespace tenon::conformance
