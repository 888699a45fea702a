// tests/errors/said.h - what an error said: its id and the four parts of its text, however it reached the caller.
#pragma once
#include <tenon/core/error.hpp>
#include <tenon/io/status.hpp>
#include <tenon/runtime.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace tenon::errors {

struct Said {
  std::string id, what, where, why, advice;  // id "": nothing failed
};

Said said(const tn_diag& diag);             // of the C functions
Said said(const Error& error);              // of the C++ API
Said said(const io::Status& status);        // of the file and data layer
Said said(const tn_plugin_entry& entry);    // the verdict on a plugin; `cause` is its why
Said said_in_cause(const tn_plugin_entry& entry);  // the error that made a plugin unusable, quoted in its verdict

// The failure of a C function: refused([&](tn_diag* d) { return tn_caps(rt, 99, nullptr, 0, &n, d); })
template <class F>
Said refused(F&& call) {
  tn_diag diag{};
  diag.size = sizeof diag;
  const tn_status status = call(&diag);
  if (status == TN_OK) return {};
  if (diag.status != status) return {"the diagnosis has another status than was returned", diag.msg, "", "", ""};
  return said(diag);
}
// The tenon::Error that `body` throws.
template <class F>
Said thrown(F&& body) {
  try {
    body();
  } catch (const Error& e) {
    return said(e);
  }
  return {};
}
template <class T>
Said said(const io::Result<T>& result) { return result ? Said{} : said(result.status()); }

// One way to meet an error. `label` tells apart the ways to one id; the golden text stands under "id label".
struct Case {
  const char* id;
  const char* label;
  std::function<Said()> provoke;
};
using Table = std::vector<Case>;

}  // namespace tenon::errors
