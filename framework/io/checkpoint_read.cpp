#include <tenon/io/checkpoint.hpp>
#include <tenon/io/sha256.hpp>

#include "checkpoint_manifest.hpp"

#include <algorithm>
#include <filesystem>

namespace tenon::io {
namespace {

namespace fs = std::filesystem;

Status check_file(const std::string& directory, const std::string& name, const ManifestFile& expected) {
  const std::string path = directory + "/" + name;
  Result<FileSum> sum = sha256_file(path);
  if (!sum && sum.status().id == file_error(1))
    return {file_error(23), path + ": a file of the checkpoint is missing", "the manifest lists " + quote(name), "copy it back, or use another checkpoint", path};
  if (!sum) return sum.status();
  if (sum->size_bytes == expected.size_bytes && sum->sha256 == expected.sha256) return {};
  const bool size = sum->size_bytes != expected.size_bytes;
  return {file_error(22), path + ": differs from the manifest",
          size ? "it has " + std::to_string(sum->size_bytes) + " bytes; the manifest says " + std::to_string(expected.size_bytes)
               : "its sha256 is " + sum->sha256.substr(0, 16) + "...; the manifest says " + expected.sha256.substr(0, 16) + "...",
          "use another checkpoint; this one is damaged", path};
}

// Folders named like checkpoints, highest step first.
Result<std::vector<std::pair<uint64_t, std::string>>> list(const std::string& root) {
  std::error_code error;
  fs::directory_iterator it(root, error);
  if (error) return errno_status(root, "open", error.value());
  std::vector<std::pair<uint64_t, std::string>> found;
  for (; it != fs::directory_iterator(); it.increment(error)) {
    uint64_t step = 0;
    if (parse_step_directory(it->path().filename().string(), &step)) found.emplace_back(step, root + "/" + it->path().filename().string());
    if (error) return errno_status(root, "read", error.value());
  }
  std::sort(found.rbegin(), found.rend());
  return found;
}

}  // namespace

Result<CheckpointInfo> verify_checkpoint(const std::string& directory) {
  const std::string path = directory + "/" + kManifestName;
  Result<std::string> text = read_file(path, 64 << 20, false);
  if (!text)
    return Status{file_error(21), path + ": manifest missing or unreadable", text.status().why, "use another checkpoint; the save of this one did not finish", path};
  Result<Manifest> manifest = parse_manifest(*text, path);
  if (!manifest) return manifest.status();
  uint64_t step = 0;
  const std::string name = fs::path(directory).lexically_normal().filename().string();
  if (parse_step_directory(name, &step) && step != manifest->step)
    return Status{file_error(21), path + ": manifest damaged", "it says step " + std::to_string(manifest->step) + "; the folder is named " + name, "use another checkpoint", path};
  CheckpointInfo info{directory, manifest->step, {}};
  for (const auto& [file, expected] : manifest->files) {
    Status status = check_file(directory, file, expected);
    if (!status.ok()) return status;
    info.files.push_back(file);
  }
  return info;
}

Result<CheckpointSearch> find_checkpoint(const std::string& root) {
  auto found = list(root);
  if (!found) return found.status();
  CheckpointSearch search;
  for (const auto& [step, directory] : *found) {
    Result<CheckpointInfo> info = verify_checkpoint(directory);
    if (info) {
      search.best = std::move(*info);
      return search;
    }
    search.skipped.push_back({directory, info.status()});
  }
  return search;
}

Status prune_checkpoints(const std::string& root, size_t keep) {
  auto found = list(root);
  if (!found) return found.status();
  size_t good = 0;
  for (const auto& [step, directory] : *found) {
    if (!verify_checkpoint(directory)) continue;
    if (++good <= std::max<size_t>(keep, 1)) continue;
    std::error_code error;
    // The manifest goes first: a removal cut short leaves an incomplete checkpoint, never a wrong one.
    fs::remove(directory + "/" + kManifestName, error);
    if (!error) fs::remove_all(directory, error);
    if (error) return errno_status(directory, "remove", error.value());
  }
  return sync_directory(root);
}

}  // namespace tenon::io
