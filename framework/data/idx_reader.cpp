#include <tenon/data/idx.hpp>

#include "byte_source.hpp"

#include <algorithm>

namespace tenon::data {

struct IdxReader::Impl {
  std::string path;
  std::unique_ptr<ByteSource> source;
  IdxHeader header;
  uint64_t read_bytes = 0;  // of the elements
  io::Sha256 sum;

  Status bad(uint32_t number, const char* what, std::string why, const char* fix) const {
    return {io::data_error(number), path + ": " + what, std::move(why), fix, path};
  }
  Status too_short(uint64_t have, const char* how) const {
    return bad(6, "fewer bytes than its counts say", "the counts need " + std::to_string(header.data_bytes) + " bytes of data; the file " + how + " " + std::to_string(have),
               "copy or download it again");
  }
  Status read_header(const IdxLimits& limits);
  Status check_length() const;
};

Status IdxReader::Impl::read_header(const IdxLimits& limits) {
  // Only the bytes of the header itself are taken: 4, then as many as the rank asks for.
  std::string prefix(4, '\0');
  Result<size_t> n = source->read(prefix.data(), 4);
  if (!n) return n.status();
  prefix.resize(*n);
  if (*n == 4 && prefix[0] == 0 && prefix[1] == 0) {
    const size_t counts = 4 * std::min<size_t>(static_cast<unsigned char>(prefix[3]), limits.rank);
    prefix.resize(4 + counts);
    n = source->read(prefix.data() + 4, counts);
    if (!n) return n.status();
    prefix.resize(4 + *n);
  }
  Result<IdxHeader> parsed = parse_idx_header(prefix, path, limits);
  if (!parsed) return parsed.status();
  header = std::move(*parsed);
  sum.update(prefix.data(), prefix.size());
  return {};
}

Status IdxReader::Impl::check_length() const {
  const uint64_t most = source->most_bytes() - std::min(source->most_bytes(), header.header_bytes);
  if (header.data_bytes > most) return too_short(most, source->packed() ? "can unpack to at most" : "has");
  if (!source->packed() && header.data_bytes < most)
    return bad(7, "bytes left over at the end", "the counts need " + std::to_string(header.data_bytes) + " bytes of data; the file has " + std::to_string(most),
               "check that the file is not damaged");
  return {};
}

IdxReader::IdxReader(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
IdxReader::IdxReader(IdxReader&&) noexcept = default;
IdxReader::~IdxReader() = default;
const IdxHeader& IdxReader::header() const { return impl_->header; }
uint64_t IdxReader::remaining_bytes() const { return impl_->header.data_bytes - impl_->read_bytes; }

Result<IdxReader> IdxReader::open(const std::string& path, const IdxLimits& limits) {
  auto impl = std::make_unique<Impl>();
  impl->path = path;
  Result<std::unique_ptr<ByteSource>> source = ByteSource::open(path);
  if (!source) return source.status();
  impl->source = std::move(*source);
  Status status = impl->read_header(limits);
  if (status.ok()) status = impl->check_length();
  if (!status.ok()) return status;
  return IdxReader(std::move(impl));
}

Status IdxReader::read(void* out, size_t count) {
  if (count > remaining_bytes()) return impl_->bad(6, "no more data", std::to_string(count) + " bytes wanted, " + std::to_string(remaining_bytes()) + " left", "read less");
  Result<size_t> n = impl_->source->read(out, count);
  if (!n) return n.status();
  impl_->sum.update(out, *n);
  impl_->read_bytes += *n;
  return *n == count ? Status{} : impl_->too_short(impl_->read_bytes, "has");
}

Result<std::string> IdxReader::finish() {
  if (remaining_bytes() != 0) return impl_->bad(6, "not read to its end", std::to_string(remaining_bytes()) + " bytes are left", "read all elements first");
  char extra = 0;
  Result<size_t> n = impl_->source->read(&extra, 1);
  if (!n) return n.status();
  if (*n != 0)
    return impl_->bad(7, "bytes left over at the end", "the counts need " + std::to_string(impl_->header.data_bytes) + " bytes of data; more follow", "check that the file is not damaged");
  return impl_->sum.hex();
}

namespace {

constexpr uint64_t kPiece = 16 << 20;

void to_host_order(std::vector<uint8_t>& bytes, uint64_t element_bytes) {
  for (size_t i = 0; element_bytes > 1 && i < bytes.size(); i += element_bytes)
    std::reverse(bytes.begin() + static_cast<std::ptrdiff_t>(i), bytes.begin() + static_cast<std::ptrdiff_t>(i + element_bytes));
}

}  // namespace

Result<IdxArray> load_idx(const std::string& path, const IdxLimits& limits) {
  Result<IdxReader> reader = IdxReader::open(path, limits);
  if (!reader) return reader.status();
  IdxArray array;
  array.header = reader->header();
  while (reader->remaining_bytes() > 0) {
    // Doubles at most, and only after the bytes so far were really there: counts alone never take much memory.
    const size_t old = array.bytes.size();
    const uint64_t piece = std::min<uint64_t>(reader->remaining_bytes(), std::max<uint64_t>(kPiece, old));
    array.bytes.resize(old + piece);
    Status status = reader->read(array.bytes.data() + old, piece);
    if (!status.ok()) return status;
  }
  Result<std::string> sum = reader->finish();
  if (!sum) return sum.status();
  array.sha256 = *sum;
  array.known_as = known_idx_file(*sum);
  to_host_order(array.bytes, array.header.element_bytes);
  return array;
}

}  // namespace tenon::data
