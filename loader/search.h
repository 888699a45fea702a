// loader/search.h - which files are looked at, and in which order.
//
// Folders: those the caller names, or else <folder of libtenon.so>/tenon/plugins, TENON_PLUGIN_PATH (colon-separated),
// /etc/tenon/plugins.d, $XDG_DATA_HOME/tenon/plugins (default ~/.local/share). A program that runs with raised rights
// (AT_SECURE) ignores both variables. The current directory is never searched: relative and empty entries of
// TENON_PLUGIN_PATH are a verdict and nothing else. A folder or file reached twice by different spellings is looked at once.
// In a folder, files named libtenon_backend_*.so in bytewise order.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "loader/verdict.h"

namespace tenon::loader {

// What the search depends on; gathered once by environment(), made up by tests.
struct Environment {
  std::string library_folder;              // where libtenon.so lies; empty if unknown
  std::optional<std::string> plugin_path;  // TENON_PLUGIN_PATH
  std::optional<std::string> data_home;    // XDG_DATA_HOME
  std::optional<std::string> cache_home;   // XDG_CACHE_HOME
  std::optional<std::string> home;         // HOME
  std::string etc = "/etc/tenon/plugins.d";
  std::optional<std::string> devices;      // TENON_DEVICES; nothing with raised rights
  bool secure = false;                     // AT_SECURE: raised rights
};
Environment environment();

struct Folder {
  std::string path;
  bool asked_for = false;  // named by the caller or a variable: its absence is worth a verdict
  std::string fault;       // why it must not be looked at: the entry is relative or empty
};
std::vector<Folder> standard_folders(const Environment&);
// "/a:b::/c" -> /a, b (with a fault), an empty one (with a fault), /c. `variable` is named in the faults.
std::vector<Folder> split_path_list(const std::string& list, const std::string& variable);

struct Candidate {
  std::string path;                // absolute and canonical where the file exists
  std::optional<Verdict> refused;  // set when the place itself is at fault: not-found, unreadable, relative-path
};
// One candidate per distinct file path, in search order. An entry of `folders` may also be a file.
std::vector<Candidate> find_candidates(const std::vector<Folder>& folders);

// One path given by name. Relative paths are resolved against the current directory, for the caller said so.
Candidate named_candidate(const std::string& path);

}  // namespace tenon::loader
