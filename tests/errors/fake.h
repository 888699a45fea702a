// tests/errors/fake.h - a plugin written in the test and linked into a runtime: it misbehaves as it is told.
#pragma once
#include <tenon/plugin.h>
#include <tenon/runtime.h>

#include <vector>

namespace tenon::errors {

// What the next fake plugin does. Set before tn_plugin_link(rt, "test.fake", fake_query, ...).
struct Fake {
  uint32_t devices = 1;                 // how many it reports
  uint32_t live = 0;                    // objects that it still counts when asked to stop
  tn_status open_status = TN_OK;        // of open(), with a text
  uint32_t kernel_stride = sizeof(tn_kernel_info);
  std::vector<tn_kernel_info> kernels;
  bool without_close = false;           // a hole in the table
  bool refuses = false;                 // no table at all
};
extern Fake fake;
const tn_plugin* fake_query(uint32_t abi, const tn_host* host);

}  // namespace tenon::errors
