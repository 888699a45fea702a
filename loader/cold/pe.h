// loader/cold/pe.h - the cold record of a Windows library (PE, 64-bit), from its section ".tenon".
//
// Libraries for every 64-bit processor are read; ColdResult.machine says which one it is. The build id is the GUID of the
// debug record, where the linker wrote one.
#pragma once
#include "loader/cold/record.h"

namespace tenon::loader {

ColdResult read_cold_pe(std::span<const std::byte> file);

}  // namespace tenon::loader
