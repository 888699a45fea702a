// tests/pack/reversed.h - kernel packs made by hand, whose matmul reads b with its rows in reverse order behind 8 bytes.
//
// Each pack is a plugin with one row. What it answers is set before it is linked.
#pragma once
#include <tenon/plugin.h>

#include <atomic>
#include <string>

namespace tenon::test {

struct Reversed {
  std::string row = "test.matmul.reversed", layout = "test.reversed";
  double est_ns = 1;
  uint32_t operand = 1;
  bool refuse_bytes = false, refuse_supports = false, fail_pack = false;
  uint64_t bytes = 0;                    // 0 = the right number
  tn_ext other{sizeof(tn_ext), 77, nullptr};  // what comes before the row's extension
  std::atomic<int> n_bytes{0}, n_pack{0}, n_launch{0};
};
// Four plugins, so that several may be in one runtime.
constexpr int kReversed = 4;
Reversed& reversed(int plugin);
void reset_reversed();
tn_plugin_query_fn reversed_query(int plugin);

}  // namespace tenon::test
