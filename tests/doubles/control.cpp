// What every double exports beside the API: how tests change it and look into it, and the label that reports repeat.
#include "tests/doubles/export.h"

TENON_DOUBLE_API const char tenon_stand_in[] = "double";
// 0: done; 1: no such setting.
TENON_DOUBLE_API int tenon_double_set(const char* name, const char* value) { return tenon_double::change(name, value) ? 0 : 1; }
TENON_DOUBLE_API long long tenon_double_count(const char* name) { return tenon_double::count(name); }
// A lost device works again: for the next test in the same process.
TENON_DOUBLE_API void tenon_double_repair() { tenon_double::repair(); }
