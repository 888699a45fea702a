#include "tests/doubles/settings.h"

#include <cstdlib>

namespace tenon_double {
namespace {

const char* const kNames[] = {"DEVICES", "MEMORY", "ALIGN", "OOM_AT", "LAUNCH_FAILS_AT", "LOST_AT", "INIT", "FIBERS", "WARP", "ARCH", "ASYNC", "POOLS", "CACHE", "CXXFLAGS", "COMPILER_FAULT"};

bool apply(Settings& s, const std::string& name, const std::string& value) {
  const auto number = std::strtoull(value.c_str(), nullptr, 10);
  if (name == "DEVICES") s.devices = static_cast<int>(number);
  else if (name == "MEMORY") s.memory_bytes = number;
  else if (name == "ALIGN") s.align = static_cast<uint32_t>(number);
  else if (name == "OOM_AT") s.oom_at = number;
  else if (name == "LAUNCH_FAILS_AT") s.launch_fails_at = number;
  else if (name == "LOST_AT") s.lost_at = number;
  else if (name == "INIT") s.init_code = static_cast<int>(number);
  else if (name == "FIBERS") s.reverse = value == "reverse";
  else if (name == "WARP") s.warp = static_cast<uint32_t>(number);
  else if (name == "ARCH") s.arch = value;
  else if (name == "ASYNC") s.async = !value.empty(), s.delay_us = static_cast<uint32_t>(number);
  else if (name == "POOLS") s.pools = number != 0;
  else if (name == "CACHE") s.cache = value;
  else if (name == "CXXFLAGS") s.flags = value;
  else if (name == "COMPILER_FAULT") s.compiler_fault = value;
  else return false;
  return true;
}

Settings from_environment() {
  Settings s;
  s.cache = TENON_DOUBLE_CACHE_DIR;
  for (const char* name : kNames)
    if (const char* value = std::getenv((std::string("TENON_DOUBLE_") + name).c_str())) apply(s, name, value);
  return s;
}

}  // namespace

Settings& settings() {
  static Settings s = from_environment();
  return s;
}

bool change(const std::string& name, const std::string& value) { return apply(settings(), name, value); }

Counters& counters() {
  static Counters c;
  return c;
}

int64_t count(const std::string& name) {
  Counters& c = counters();
  if (name == "blocks") return c.blocks;
  if (name == "bytes") return c.bytes;
  if (name == "streams") return c.streams;
  if (name == "events") return c.events;
  if (name == "modules") return c.modules;
  if (name == "contexts") return c.contexts;
  if (name == "launches") return c.launches;
  if (name == "allocations") return c.allocations;
  if (name == "compilations") return c.compilations;
  return -1;
}

}  // namespace tenon_double
