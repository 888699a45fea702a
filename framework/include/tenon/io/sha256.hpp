// tenon/io/sha256.hpp - SHA-256 of bytes and files (computed by libcrypto, which uses the processor's instructions).
//
//   tenon::io::Sha256 sum;  sum.update(data, size);  std::string hex = sum.hex();
#pragma once
#include <tenon/io/status.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace tenon::io {

// One running sum; one thread at a time.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  void update(const void* data, size_t count_bytes);
  std::string hex();  // 64 lower-case digits; ends the sum and begins a new, empty one

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

std::string sha256_hex(const void* data, size_t count_bytes);
// Sum and size of a file, read in pieces. Links are not followed. Blocks.
struct FileSum { std::string sha256; uint64_t size_bytes = 0; };
Result<FileSum> sha256_file(const std::string& path);

}  // namespace tenon::io
