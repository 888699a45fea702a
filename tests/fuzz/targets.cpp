#include "targets.h"

#include <tenon/data/idx.hpp>
#include <tenon/io/safetensors.hpp>

#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#include <cstdlib>

#include "tools/config/config.h"

namespace tenon::fuzz {
namespace {

void promise(bool kept) {
  if (!kept) std::abort();
}

std::string text(const uint8_t* data, size_t size) { return {reinterpret_cast<const char*>(data), size}; }

// A failure must be explained in full.
void explained(const io::Status& status) { promise(!status.ok() && !status.what.empty() && !status.why.empty() && !status.fix.empty()); }

void run_idx(const uint8_t* data, size_t size) {
  // The whole reader, gzip included, from a file in memory.
  static const int fd = ::memfd_create("idx", 0);
  static const std::string path = "/proc/self/fd/" + std::to_string(fd);
  promise(::ftruncate(fd, 0) == 0 && ::pwrite(fd, data, size, 0) == static_cast<ssize_t>(size));
  data::IdxLimits limits;
  limits.data_bytes = 1 << 20;
  auto array = data::load_idx(path, limits);
  if (!array) return explained(array.status());
  uint64_t elements = array->header.element_bytes;
  for (uint32_t d : array->header.dims) elements *= d;
  promise(elements == array->bytes.size() && elements == array->header.data_bytes);
}

void run_safetensors(const uint8_t* data, size_t size) {
  auto header = io::parse_safetensors({reinterpret_cast<const char*>(data), size}, "input");
  if (!header) return explained(header.status());
  uint64_t next = 0;
  for (const auto& t : header->tensors) {
    promise(t.begin == next && t.end >= t.begin && header->data_offset_bytes + t.end <= size);
    next = t.end;
  }
  promise(header->data_offset_bytes + next == size);
}

void check_config(const io::Result<std::vector<config::Entry>>& entries) {
  if (!entries) return explained(entries.status());
  config::TrainConfig first, second;
  if (io::Status status = config::apply_entries(*entries, &first); !status.ok()) return explained(status);
  // What was accepted prints as text that reads back the same.
  auto again = config::read_toml(config::print_toml(first), "printed");
  promise(again.ok());
  promise(config::apply_entries(*again, &second).ok() && first == second);
}

void run_toml(const uint8_t* data, size_t size) { check_config(config::read_toml(text(data, size), "input")); }
void run_json(const uint8_t* data, size_t size) { check_config(config::read_json(text(data, size), "input")); }

std::string gz(const std::string& raw) {
  std::string out(raw.size() + 256, '\0');
  z_stream s{};
  deflateInit2(&s, 9, Z_DEFLATED, 16 + MAX_WBITS, 9, Z_DEFAULT_STRATEGY);
  s.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(raw.data())), s.avail_in = static_cast<uInt>(raw.size());
  s.next_out = reinterpret_cast<Bytef*>(out.data()), s.avail_out = static_cast<uInt>(out.size());
  deflate(&s, Z_FINISH);
  out.resize(s.total_out);
  deflateEnd(&s);
  return out;
}

std::vector<std::string> idx_seeds() {
  const std::string images = std::string("\0\0\x08\3\0\0\0\2\0\0\0\2\0\0\0\2", 16) + "abcdefgh", labels = std::string("\0\0\x08\1\0\0\0\3", 8) + "123";
  return {images, labels, gz(images), gz(labels), std::string("\0\0\x0e\1\0\0\0\1", 8) + "12345678", gz(images) + gz("x")};
}

std::string with_length(const std::string& json, const std::string& data) {
  std::string out(8, '\0');
  for (int i = 0; i < 8; ++i) out[static_cast<size_t>(i)] = static_cast<char>(json.size() >> (8 * i));
  return out + json + data;
}

std::vector<std::string> safetensors_seeds() {
  return {with_length("{}", ""), with_length(R"({"t":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", "1234"),
          with_length(R"({"__metadata__":{"a":"b"},"a":{"dtype":"BF16","shape":[2,1],"data_offsets":[0,4]},"b":{"dtype":"BOOL","shape":[],"data_offsets":[4,5]}} )", "12345")};
}

std::vector<std::string> toml_seeds() {
  return {config::print_toml({}), "epochs = 2\n[optimizer]\nname = \"sgd\"\nlr = 1e-2\nbetas = [0.9, 0.99]\n", "model.layers = [\"linear 10\"]\n[data]\nkind = 'idx'\n", "[[a]]\nb = 1979-05-27\n"};
}

std::vector<std::string> json_seeds() {
  return {R"({"epochs":2,"optimizer":{"lr":0.1,"betas":[0.9,0.99],"name":"sgd"},"model":{"layers":["linear 10"]}})", R"({"seed":18446744073709551615,"out":"\u00fc\n"})", "{\"a\":[[1]],\n\"b\":null}"};
}

}  // namespace

const Target kIdx{"idx", run_idx, idx_seeds}, kSafetensors{"safetensors", run_safetensors, safetensors_seeds}, kToml{"toml", run_toml, toml_seeds}, kJson{"json", run_json, json_seeds};

}  // namespace tenon::fuzz
