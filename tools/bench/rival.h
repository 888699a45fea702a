// tools/bench/rival.h - a rival is a program of its own, so that neither its libraries nor its threads touch Tenon's.
//
// It reads lines and answers each with one line:
//   info             -> text that names the library and its version
//   open CASE        -> ok | no REASON        makes the case ready; the one before is dropped
//   sample           -> nanoseconds of one call (or images a second, where the case's unit is img/s)
// End of input ends it. Cases are named as `tenon bench` names them, "gemm.f32.512.t2".
#pragma once
#include <cstdio>
#include <functional>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>

#include "tools/bench/sampler.h"

namespace tenon::bench {

// make(case) returns what to measure; it throws std::exception for a case that it does not know or cannot run.
inline int serve(const std::string& info, const std::function<std::unique_ptr<Sampler>(const std::string&)>& make) {
  std::unique_ptr<Sampler> sampler;
  for (std::string line; std::getline(std::cin, line);) {
    try {
      if (line == "info") {
        std::cout << info << std::endl;
      } else if (line.rfind("open ", 0) == 0) {
        sampler.reset();
        sampler = make(line.substr(5));
        std::cout << "ok" << std::endl;
      } else if (line == "sample" && sampler) {
        char text[64];
        std::snprintf(text, sizeof text, "%.9g", sampler->sample());
        std::cout << text << std::endl;
      } else {
        std::cout << "no such request" << std::endl;
      }
    } catch (const std::exception& error) {
      std::cout << "no " << error.what() << std::endl;
    }
  }
  return 0;
}

// "gemm.f32.512.t2" -> {"gemm", "f32", "512", "t2"}
inline std::string part(const std::string& name, int index) {
  size_t begin = 0;
  for (; index > 0; --index) {
    begin = name.find('.', begin);
    if (begin == std::string::npos) return "";
    ++begin;
  }
  return name.substr(begin, name.find('.', begin) - begin);
}

// Memory as large blocks want it: on huge pages where the system has them.
std::shared_ptr<float[]> large_floats(size_t n);

}  // namespace tenon::bench
