// tenon/io/status.hpp - how the file and data layer reports failure: a value, never an exception.
//
//   tenon::io::Result<std::string> text = tenon::io::read_file("run.toml", 1 << 20);
//   if (!text) std::cerr << text.status().text();      // error[TN-FILE-001]: run.toml: no such file ...
//   else use(*text);
//
// A Status owns its texts. Copyable, any thread. The Tensor layer turns a Status into tenon::Error.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <variant>

namespace tenon::io {

// Families of error ids; the same numbers as in the rest of the project (docs/errors/index.tsv).
inline constexpr uint32_t kDataFamily = 10, kFileFamily = 11, kConfFamily = 12;
constexpr uint32_t data_error(uint32_t number) { return kDataFamily << 16 | number; }
constexpr uint32_t file_error(uint32_t number) { return kFileFamily << 16 | number; }
constexpr uint32_t conf_error(uint32_t number) { return kConfFamily << 16 | number; }

// What happened, where, why (values on both sides) and one thing to try. id 0 means success.
struct Status {
  uint32_t id = 0;
  std::string what, why, fix, where;

  bool ok() const { return id == 0; }
  std::string id_text() const;  // "TN-FILE-001"
  // The whole message, several lines, as printed by the `tenon` command.
  std::string text() const;
};

// A T, or the Status that says why there is none. operator* and operator-> need ok().
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : v_(std::in_place_index<0>, std::move(value)) {}
  Result(Status status) : v_(std::in_place_index<1>, std::move(status)) {}

  explicit operator bool() const { return v_.index() == 0; }
  bool ok() const { return v_.index() == 0; }
  T& operator*() & { return std::get<0>(v_); }
  const T& operator*() const& { return std::get<0>(v_); }
  T&& operator*() && { return std::get<0>(std::move(v_)); }
  T* operator->() { return &std::get<0>(v_); }
  const T* operator->() const { return &std::get<0>(v_); }
  const Status& status() const { return std::get<1>(v_); }  // needs !ok()

 private:
  std::variant<T, Status> v_;
};

// Text from a file made fit for a message: quoted, control bytes and invalid UTF-8 escaped, cut after `limit` bytes.
std::string quote(const std::string& raw, size_t limit = 64);

}  // namespace tenon::io
