// loader/sha256.h - the checksum of a file, as allow lists name it (FIPS 180-4).
//
//   sha256_text(bytes)   // "ba7816bf..." 64 hexadecimal digits
#pragma once
#include <cstddef>
#include <span>
#include <string>

namespace tenon::loader {

std::string sha256_text(std::span<const std::byte> bytes);

// "sha256:" and 64 digits of either case.
bool is_sha256_entry(const std::string& entry);

}  // namespace tenon::loader
