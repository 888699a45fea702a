// loader/open.h - mapping a plugin's library into the process: the first step in which its code (constructors) runs.
//
// RTLD_NOW, so that an undefined symbol is a verdict here and no crash later; RTLD_LOCAL, so that plugins do not see each
// other's symbols. The caller's floating-point environment is what it was before, whatever a constructor did.
#pragma once
#include <tenon/plugin.h>

#include <memory>
#include <optional>
#include <string>

#include "loader/verdict.h"

namespace tenon::loader {

struct OpenedLibrary {
  std::shared_ptr<void> handle;          // the last owner unmaps the library
  tn_plugin_query_fn query = nullptr;
};

// Nothing on success; else missing-dependency, open-failed or no-symbol, the dynamic linker's own words in the cause.
// keep_mapped: the library stays in the process even after its last owner is gone (it cannot be unmapped safely).
// descriptor >= 0: this very file is opened whatever the path leads to by now; libraries beside it ($ORIGIN) are not found
// then. It may be closed afterwards.
std::optional<Verdict> open_library(const std::string& path, bool keep_mapped, OpenedLibrary* out, int descriptor = -1);

// A name under /proc for the file behind the descriptor, and for no other file that is mapped meanwhile: the dynamic linker
// takes two libraries of one name for the same, and descriptor numbers come again.
std::string descriptor_path(int descriptor);

// The verdict behind a message of the dynamic linker about `path`.
Verdict verdict_of_linker_text(const std::string& path, const std::string& text);

}  // namespace tenon::loader
