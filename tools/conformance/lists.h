// tools/conformance/lists.h - what a plugin says it does not pass, and why: a JSON file of the vendor's.
//
//   {"tags": ["pack"],
//    "never":   [{"check": "2.import", "why": "the device has memory of its own"}],
//    "not_yet": [{"check": "3.values.acme.matmul", "why": "f64 comes with firmware 2"},
//                {"tag": "f16", "why": "..."}]}
//
// `check` may end in `*`. `never` is not run; `not_yet` is run, and a check that passes although it is listed is a failure,
// so that no list outlives its reason. An entry without a reason, or that names nothing, is an error.
#pragma once
#include <string>
#include <vector>

namespace tenon::conformance {

struct Exception {
  std::string check, tag, why;
  bool names(const std::string& id, const std::vector<std::string>& tags) const;
};

struct Lists {
  std::vector<std::string> tags;  // the vendor's own words for the plugin; they go into the report of nobody but its readers
  std::vector<Exception> never, not_yet;
};

// Throws std::runtime_error with the place and what is wanted.
Lists parse_lists(const std::string& json, const std::string& name);
Lists read_lists(const std::string& file);
const Exception* find(const std::vector<Exception>& list, const std::string& id, const std::vector<std::string>& tags);

}  // namespace tenon::conformance
