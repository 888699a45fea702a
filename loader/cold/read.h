// loader/cold/read.h - the cold record of a plugin file of any known kind.
//
//   ColdResult r = read_cold(bytes);
//   if (r.status == ColdStatus::Ok) use(r.kind, r.cold.id, r.cold.abi_min, r.build_id);
//
// Ok says that the record is sound, not that this host can load the file: compare kind and target (loader/check.h).
#pragma once
#include "loader/cold/elf.h"
#include "loader/cold/macho.h"
#include "loader/cold/pe.h"

namespace tenon::loader {

// By the first bytes alone.
FileKind file_kind(std::span<const std::byte> file);

ColdResult read_cold(std::span<const std::byte> file);

}  // namespace tenon::loader
