// A folder of its own for each test, and where the shared test data lies.
#pragma once
#include <gtest/gtest.h>

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace tenon::test {

class TempDir {
 public:
  TempDir() {
    std::string pattern = (std::filesystem::temp_directory_path() / "tenon-test-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempDir(const TempDir&) = delete;
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

inline void put(const std::string& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }
inline std::string get(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
inline size_t count_files(const std::string& directory) {
  size_t n = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(directory)) ++n;
  return n;
}

// TENON_TEST_DATA, else ../shared/data beside the source tree or shared/data in it; "" when there is none.
inline std::string test_data() {
  if (const char* set = std::getenv("TENON_TEST_DATA")) return set;
  for (const char* relative : {"/../shared/data", "/shared/data", "/../../shared/data"})
    if (std::filesystem::is_directory(std::string(TENON_SOURCE_DIR) + relative)) return std::string(TENON_SOURCE_DIR) + relative;
  return "";
}

}  // namespace tenon::test

#define TENON_NEED_DATA(variable, part)                                                                       \
  const std::string variable = tenon::test::test_data().empty() ? "" : tenon::test::test_data() + "/" + part; \
  if (variable.empty() || !std::filesystem::exists(variable)) GTEST_SKIP() << "test data not found (set TENON_TEST_DATA): " << part
