// loader/start_verdict.h - what a plugin's open() ended with, as a verdict: in this process, or in the child that tried it.
#pragma once
#include <tenon/types.h>

#include "loader/verdict.h"

namespace tenon::loader {

// That of a plugin whose start ended with `status`: what is absent, or an error, on one line, with the id under which `tenon
// explain` has more: "TN-ABI-003: too many devices; 1000 are reported". What to try is the verdict's own.
Verdict not_started(const tn_diag&, tn_status status);

}  // namespace tenon::loader
