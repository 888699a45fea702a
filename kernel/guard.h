// kernel/guard.h - no C++ exception leaves the C functions.
#pragma once
#include <exception>
#include <new>

#include "kernel/status.h"

namespace tenon::kernel {

template <class F>
tn_status guarded(tn_diag* diag, F&& body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return fail(diag, TN_E_OOM, id(kMem, 2), "host memory is exhausted\nwhy: an allocation of the runtime failed\ntry: free tensors or use a smaller batch");
  } catch (const std::exception& e) {
    return fail(diag, TN_E_BUG, id(kState, 9), "an internal check failed\nwhy: %.120s\ntry: report it with the call that led here", e.what());
  }
}

}  // namespace tenon::kernel
