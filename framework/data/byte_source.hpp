// Bytes of a file from front to back, unpacked when it is gzip; internal to framework/data.
#pragma once
#include <tenon/io/file.hpp>

#include <memory>
#include <string>

namespace tenon::data {

class ByteSource {
 public:
  static io::Result<std::unique_ptr<ByteSource>> open(const std::string& path);
  virtual ~ByteSource() = default;
  // Up to `count` bytes into `out`; fewer than asked (maybe 0) only at the end. Damage is a Status.
  virtual io::Result<size_t> read(void* out, size_t count) = 0;
  // An upper bound of how many bytes the whole file unpacks to; exact when it is not packed.
  virtual uint64_t most_bytes() const = 0;
  virtual bool packed() const = 0;
};

}  // namespace tenon::data
