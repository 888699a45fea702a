// tenon/core/error.hpp - the one exception of the framework.
//
//   try { matmul(a, b); } catch (const tenon::Error& e) { e.id(); /* "TN-SHAPE-002" */ e.what(); /* four lines */ }
//
//   error[TN-SHAPE-002]: matmul: inner dimensions differ
//     where: train.cpp:42, op matmul, device cpu:0
//     why:   a is f32[128,256], b is f32[512,64]; a[-1]=256 must equal b[-2]=512
//     try:   transpose b, or reshape b to [256,N]
//
// `tenon explain TN-SHAPE-002` opens the page of an id.
#pragma once
#include <tenon/types.h>

#include <exception>
#include <string>

namespace tenon {

// The line of source that made a call: two words, no text is built unless something fails.
struct Where {
  const char* file;
  uint32_t line;
};
constexpr Where here(const char* file = __builtin_FILE(), uint32_t line = __builtin_LINE()) { return {file, line}; }

namespace error {
// Families of ids, printed TN-<NAME>-<number>.
enum Family : uint32_t { kArg = 1, kShape, kDtype, kState, kMem, kOp, kDevice, kLoad, kPolicy, kData, kFile, kConf, kGrad, kTrain, kAbi };
constexpr uint32_t id(Family family, uint32_t number) { return family << 16 | number; }
}  // namespace error

class Error : public std::exception {
 public:
  Error(tn_status status, uint32_t id, std::string summary, Where line, std::string detail, std::string why, std::string advice);
  // From what a C call left behind; `op` and `device` may be empty.
  Error(const tn_diag& diag, Where where, const char* op, const char* device);

  const char* what() const noexcept override { return text_.c_str(); }
  const std::string& id() const noexcept { return id_; }  // "TN-SHAPE-002"
  uint32_t id_number() const noexcept { return id_number_; }
  tn_status status() const noexcept { return status_; }
  const std::string& summary() const noexcept { return summary_; }
  const std::string& where() const noexcept { return where_; }
  const std::string& why() const noexcept { return why_; }
  const std::string& advice() const noexcept { return advice_; }
  // Adds what is known further up: which module, and how it was built. Only the first, innermost, is kept.
  void add_context(const std::string& where, const std::string& why);
  // Names `line` instead, if what is named so far lies inside the framework's own layers.
  void relocate(Where line);

 private:
  void compose();
  tn_status status_;
  uint32_t id_number_;
  bool has_context_ = false;
  Where line_{nullptr, 0};
  std::string id_, summary_, detail_, where_, why_, advice_, text_;
};

std::string id_text(uint32_t id, tn_status status = TN_E_BUG);  // "TN-SHAPE-002"
std::string to_string(Where where);                             // "train.cpp:42", last part of the path only
// The nearest of `known` within a third of the word's length, else "". For "did you mean".
std::string nearest_name(const std::string& word, const std::string* known, size_t n);

}  // namespace tenon
