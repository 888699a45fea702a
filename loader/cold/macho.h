// loader/cold/macho.h - the cold record of a macOS library or bundle (Mach-O, 64-bit, little-endian), from its section
// "__TENON,__cold".
//
// Of a universal ("fat") file the slice for this host's processor is read, or the first one if there is none. The build id
// is that of LC_UUID.
#pragma once
#include "loader/cold/record.h"

namespace tenon::loader {

ColdResult read_cold_macho(std::span<const std::byte> file);

}  // namespace tenon::loader
