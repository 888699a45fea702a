// loader/small_file.h - small files of text in the user's cache folder, and where that folder is.
//
// Nothing here throws: a file that cannot be read is an empty text. Writers write beside and rename into place, so that a
// reader sees the old text or the new one. Threads and processes: any number at once.
#pragma once
#include <functional>
#include <string>

#include "loader/search.h"

namespace tenon::loader {

// $XDG_CACHE_HOME/tenon, else ~/.cache/tenon, unless `setting` (loader.cache, NULL = not set) names a folder or is "off".
// Empty: nothing may be kept; always so with raised rights, for the folder would be the user's and the rights another's.
std::string cache_base(const char* setting, const Environment& env);

// Whether the folder is there (made if asked) and nobody but this user may write in it.
bool own_folder(const std::string& folder, bool make);

// At most `limit` bytes of a regular file, no link; empty when it cannot be read or is longer.
std::string read_small(const std::string& path, size_t limit);
bool replace_small(const std::string& path, const std::string& text);

// Control characters as spaces.
std::string one_line(std::string text);

// FNV-1a-64 as 16 digits.
std::string short_hash(const std::string& text);

}  // namespace tenon::loader
