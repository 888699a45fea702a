#include "byte_source.hpp"

#include <zlib.h>

#include <algorithm>
#include <vector>

namespace tenon::data {
namespace {

using io::File;
using io::Result;
using io::Status;

class PlainSource final : public ByteSource {
 public:
  explicit PlainSource(File file) : file_(std::move(file)) {}
  Result<size_t> read(void* out, size_t count) override {
    const size_t n = static_cast<size_t>(std::min<uint64_t>(count, file_.size_bytes() - at_));
    Status status = file_.read_at(at_, out, n);
    if (!status.ok()) return status;
    at_ += n;
    return n;
  }
  uint64_t most_bytes() const override { return file_.size_bytes(); }
  bool packed() const override { return false; }

 private:
  File file_;
  uint64_t at_ = 0;
};

class GzipSource final : public ByteSource {
 public:
  explicit GzipSource(File file) : file_(std::move(file)), input_(1 << 16) {
    ready_ = inflateInit2(&stream_, 16 + MAX_WBITS) == Z_OK;
  }
  GzipSource(const GzipSource&) = delete;
  GzipSource& operator=(const GzipSource&) = delete;
  ~GzipSource() override {
    if (ready_) inflateEnd(&stream_);
  }

  Result<size_t> read(void* out, size_t count) override {
    if (!ready_) return damaged("zlib could not start (out of memory)");
    stream_.next_out = static_cast<Bytef*>(out);
    size_t left = count;
    while (left > 0 && !ended_) {
      Status status = step(&left);
      if (!status.ok()) return status;
    }
    return count - left;
  }
  // Deflate cannot pack better than 1032 to 1.
  uint64_t most_bytes() const override { return file_.size_bytes() * 1032 + 64; }
  bool packed() const override { return true; }

 private:
  Status damaged(const std::string& why) const {
    return {io::data_error(8), file_.path() + ": gzip data damaged", why, "copy or download it again (`gzip -t` shows the same)", file_.path()};
  }

  Status refill() {
    const size_t n = static_cast<size_t>(std::min<uint64_t>(input_.size(), file_.size_bytes() - at_));
    Status status = file_.read_at(at_, input_.data(), n);
    if (!status.ok()) return status;
    at_ += n;
    stream_.next_in = input_.data();
    stream_.avail_in = static_cast<uInt>(n);
    return {};
  }

  // One call of inflate; takes what was produced off *left.
  Status step(size_t* left) {
    if (stream_.avail_in == 0) {
      Status status = refill();
      if (!status.ok()) return status;
      if (stream_.avail_in == 0) return damaged("it ends in the middle, after " + std::to_string(at_) + " packed bytes");
    }
    const uInt room = static_cast<uInt>(std::min<size_t>(*left, 1u << 30));
    stream_.avail_out = room;
    const int code = inflate(&stream_, Z_NO_FLUSH);
    *left -= room - stream_.avail_out;
    if (code == Z_STREAM_END) return next_member();
    if (code != Z_OK && code != Z_BUF_ERROR) return damaged(stream_.msg != nullptr ? stream_.msg : "zlib error " + std::to_string(code));
    return {};
  }

  // gzip files may be joined; anything else after the end is damage.
  Status next_member() {
    if (stream_.avail_in == 0) {
      Status status = refill();
      if (!status.ok()) return status;
    }
    if (stream_.avail_in == 0) {
      ended_ = true;
      return {};
    }
    if (*stream_.next_in != 0x1f) return damaged("other bytes follow the packed data");
    inflateReset(&stream_);
    return {};
  }

  File file_;
  std::vector<Bytef> input_;
  uint64_t at_ = 0;
  z_stream stream_{};
  bool ready_ = false, ended_ = false;
};

}  // namespace

Result<std::unique_ptr<ByteSource>> ByteSource::open(const std::string& path) {
  Result<File> file = File::open(path);
  if (!file) return file.status();
  unsigned char magic[2] = {};
  if (file->size_bytes() >= 2) {
    Status status = file->read_at(0, magic, 2);
    if (!status.ok()) return status;
  }
  if (magic[0] == 0x1f && magic[1] == 0x8b) return std::unique_ptr<ByteSource>(std::make_unique<GzipSource>(std::move(*file)));
  return std::unique_ptr<ByteSource>(std::make_unique<PlainSource>(std::move(*file)));
}

}  // namespace tenon::data
