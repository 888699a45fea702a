// The manifest of a checkpoint folder; internal to framework/io.
#pragma once
#include <tenon/io/status.hpp>

#include <cstdint>
#include <map>
#include <string>

namespace tenon::io {

struct ManifestFile { std::string sha256; uint64_t size_bytes = 0; };
struct Manifest { uint64_t step = 0; std::map<std::string, ManifestFile> files; };

inline constexpr const char* kManifestName = "manifest.json";

std::string manifest_text(const Manifest& manifest);
Result<Manifest> parse_manifest(const std::string& json, const std::string& where);
// A name that stays in its folder: letters, digits, '.', '_', '-', not starting with '.', at most 200 bytes.
bool plain_name(const std::string& name);
std::string step_directory_name(uint64_t step);                    // "step-000000137"
bool parse_step_directory(const std::string& name, uint64_t* step);

}  // namespace tenon::io
