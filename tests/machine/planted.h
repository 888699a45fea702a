// Plugins made by hand: "test.hosts" with two CPU devices and one product kernel that states its own time, "test.odd" with a
// device that no kernel is for. They hold memory and run nothing.
#pragma once
#include <tenon/plugin.h>

namespace tenon::test {

const tn_plugin* hosts_query(uint32_t abi, const tn_host* host);
const tn_plugin* odd_query(uint32_t abi, const tn_host* host);
inline constexpr double kStatedNs = 5000;  // of hosts.matmul

}  // namespace tenon::test
