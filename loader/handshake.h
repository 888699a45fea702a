// loader/handshake.h - asking a plugin for its table and checking what it gives; the same for files and linked plugins.
//
// The table is copied into one of this host's own size: entries the plugin does not have are NULL there, entries the host
// does not know are left out. So every later reader may look at every entry. Nothing is read beyond `size`.
#pragma once
#include <tenon/plugin.h>

#include <optional>

#include "loader/verdict.h"

namespace tenon::loader {

// Nothing on success; else query-refused (NULL, or an exception) or bad-table.
std::optional<Verdict> query_table(tn_plugin_query_fn query, uint32_t abi, const tn_host* host, tn_plugin* out);

// Checks and copies a table that a plugin gave for `abi`.
std::optional<Verdict> validate_table(const tn_plugin* given, uint32_t abi, tn_plugin* out);

}  // namespace tenon::loader
