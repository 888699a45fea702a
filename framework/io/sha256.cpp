#include <tenon/io/file.hpp>
#include <tenon/io/sha256.hpp>

#include <openssl/evp.h>

#include <algorithm>
#include <new>
#include <vector>

namespace tenon::io {

struct Sha256::Context {
  EVP_MD_CTX* md = EVP_MD_CTX_new();
  Context() { begin(); }
  ~Context() { EVP_MD_CTX_free(md); }
  // libcrypto fails here only for want of memory.
  void begin() {
    if (md == nullptr || EVP_DigestInit_ex(md, EVP_sha256(), nullptr) != 1) throw std::bad_alloc();
  }
};

Sha256::Sha256() : context_(std::make_unique<Context>()) {}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;

void Sha256::update(const void* data, size_t count) { EVP_DigestUpdate(context_->md, data, count); }

std::string Sha256::hex() {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  EVP_DigestFinal_ex(context_->md, digest, &size);
  context_->begin();
  std::string out;
  for (unsigned int i = 0; i < size; ++i) {
    out += "0123456789abcdef"[digest[i] >> 4];
    out += "0123456789abcdef"[digest[i] & 15];
  }
  return out;
}

std::string sha256_hex(const void* data, size_t count) {
  Sha256 sum;
  sum.update(data, count);
  return sum.hex();
}

Result<FileSum> sha256_file(const std::string& path) {
  Result<File> file = File::open(path, false);
  if (!file) return file.status();
  Sha256 sum;
  std::vector<char> piece(1 << 20);
  for (uint64_t at = 0; at < file->size_bytes();) {
    const size_t n = static_cast<size_t>(std::min<uint64_t>(piece.size(), file->size_bytes() - at));
    Status status = file->read_at(at, piece.data(), n);
    if (!status.ok()) return status;
    sum.update(piece.data(), n);
    at += n;
  }
  return FileSum{sum.hex(), file->size_bytes()};
}

}  // namespace tenon::io
