// loader/cold/elf.h - the cold record of an ELF shared library (Linux), from its note "Tenon.abi".
//
// Only libraries for this host's own class, byte order and processor are read on; others are WrongTarget by their header.
// A file that is shorter than its own loadable segments is refused here, because mapping it would end the process with
// SIGBUS.
#pragma once
#include "loader/cold/record.h"

namespace tenon::loader {

ColdResult read_cold_elf(std::span<const std::byte> file);

}  // namespace tenon::loader
