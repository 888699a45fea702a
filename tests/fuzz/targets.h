// What the fuzzers feed: each takes any bytes, must not crash, and may check what it got (abort on a broken promise).
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tenon::fuzz {

struct Target {
  const char* name;
  void (*run)(const uint8_t* data, size_t size);
  std::vector<std::string> (*seeds)();  // small good and bad inputs to start from
};
extern const Target kIdx, kSafetensors, kToml, kJson, kMachine;

}  // namespace tenon::fuzz
