// tools/drivers/library.h - opening a driver's library, and the true cause when that fails.
#pragma once
#include <string>
#include <vector>

namespace tenon::drivers {

// Opens the first of the names that is there. NULL after the fault was said: library_missing names what is absent, be it
// the library itself or one that it needs; abi_mismatch quotes the dynamic linker; no_permission has the path.
void* open_library(const std::vector<std::string>& names);

// NULL after abi_mismatch was said.
void* symbol(void* library, const char* name, const std::string& library_name);

// The fault of one message of the dynamic linker, said.
void say_link_fault(const std::string& asked, const std::string& message);

}  // namespace tenon::drivers
