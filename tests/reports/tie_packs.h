// tests/reports/tie_packs.h - kernel packs whose rows claim the same cost, tier and even name: only a rule can choose among them.
#pragma once
#include <tenon/plugin.h>

#include <string>

inline constexpr int kTiePacks = 4;
std::string tie_pack_id(int pack);  // org.example.tie_d for pack 0, ...: later ids first, so that order of id is no order of number
tn_plugin_query_fn tie_pack_query(int pack);
