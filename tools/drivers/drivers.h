// tools/drivers/drivers.h - starting one driver and listing its devices. Each function says what it finds (say.h), a fault
// included, and returns; a driver that crashes or hangs takes this process with it, and no other.
#pragma once
#include <string>
#include <vector>

namespace tenon::drivers {

using Names = std::vector<std::string>;
void try_library(const Names& library_and_symbol);
void try_opencl(const Names& library);
void try_vulkan(const Names& library);
void try_cuda(const Names& libraries);
void try_rocm(const Names& libraries);
void try_nodes(const Names& paths);

}  // namespace tenon::drivers
