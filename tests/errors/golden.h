// tests/errors/golden.h - the golden texts: one file a family, golden/TN-XXX.txt.
//
//   [TN-SHAPE-001 of two operands]
//   what: add: shapes do not broadcast
//   why: ...
//   try: ...
//   where: ...
//
// What differs from run to run is written as a word: FILE:LINE for a line of these tests, DIR for a folder of the test,
// ADDRESS for a pointer, BUILD_ID for the build id of a plugin. With TENON_GOLDEN_UPDATE=1 in the environment the files are
// written instead of compared.
#pragma once
#include "tests/errors/said.h"

#include <map>

namespace tenon::errors {

class Golden {
 public:
  explicit Golden(const std::string& family);
  bool updating() const { return updating_; }
  // "" when they agree, else what differs. When updating, takes the text over.
  std::string compare(const Case& c, const Said& said);
  std::vector<std::string> left_over() const;  // golden texts that no case asked for
  void write() const;

 private:
  std::string path_;
  bool updating_;
  std::map<std::string, std::string> texts_;  // "id label" -> text
  std::map<std::string, std::string> seen_;
};

// Folders that are named DIR in texts; a case adds its own.
void call_it_dir(const std::string& path);

}  // namespace tenon::errors
