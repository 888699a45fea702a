#include <tenon/io/checkpoint.hpp>
#include <tenon/io/sha256.hpp>

#include "checkpoint_manifest.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <filesystem>

namespace tenon::io {
namespace {

namespace fs = std::filesystem;
constexpr const char* kSuffix = ".tenon-tmp";

int lock_directory(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
  if (fd >= 0 && ::flock(fd, LOCK_EX | LOCK_NB) == 0) return fd;
  if (fd >= 0) ::close(fd);
  return -1;
}

// Hidden folders whose lock can be had belong to writers that died.
void remove_leftovers(const std::string& root) {
  std::error_code ignored;
  for (fs::directory_iterator it(root, ignored), end; !ignored && it != end; it.increment(ignored)) {
    const std::string name = it->path().filename().string();
    if (!name.starts_with(".step-") || !name.ends_with(kSuffix)) continue;
    const int fd = lock_directory(it->path().string());
    if (fd < 0) continue;
    std::error_code failed;
    fs::remove_all(it->path(), failed);
    ::close(fd);
  }
}

// Puts `temporary` in the place of `final`. When a folder is there, the two are swapped in one step where the file system
// can; else the old one goes first: for a moment only the checkpoints of other steps exist.
Status replace_directory(const std::string& temporary, const std::string& final) {
  if (::rename(temporary.c_str(), final.c_str()) == 0) return {};
  if (errno != EEXIST && errno != ENOTEMPTY) return errno_status(final, "rename", errno);
  std::error_code failed;
  if (::renameat2(AT_FDCWD, temporary.c_str(), AT_FDCWD, final.c_str(), RENAME_EXCHANGE) == 0) {
    fs::remove_all(temporary, failed);
    return {};
  }
  fs::remove_all(final, failed);
  if (::rename(temporary.c_str(), final.c_str()) == 0) return {};
  return errno_status(final, "rename", errno);
}

}  // namespace

Result<CheckpointWriter> CheckpointWriter::begin(const std::string& root, uint64_t step) {
  static std::atomic<uint32_t> counter{0};  // only makes names differ
  std::error_code error;
  fs::create_directories(root, error);
  if (error) return errno_status(root, "create", error.value());
  remove_leftovers(root);
  const std::string temporary = root + "/." + step_directory_name(step) + "." + std::to_string(::getpid()) + "-" +
                                std::to_string(counter.fetch_add(1)) + kSuffix;
  if (::mkdir(temporary.c_str(), 0777) != 0) return errno_status(temporary, "create", errno);
  const int fd = lock_directory(temporary);
  if (fd < 0) return errno_status(temporary, "lock", EBUSY);
  return CheckpointWriter(fd, root, temporary, step);
}

CheckpointWriter::CheckpointWriter(CheckpointWriter&& other) noexcept
    : lock_fd_(other.lock_fd_), root_(std::move(other.root_)), temporary_(std::move(other.temporary_)), step_(other.step_), files_(std::move(other.files_)) {
  other.lock_fd_ = -1;
}

CheckpointWriter::~CheckpointWriter() {
  if (lock_fd_ < 0) return;
  std::error_code failed;
  fs::remove_all(temporary_, failed);
  ::close(lock_fd_);
}

Status CheckpointWriter::record(const std::string& name) {
  Result<FileSum> sum = sha256_file(temporary_ + "/" + name);
  if (!sum) return sum.status();
  files_[name] = {sum->sha256, sum->size_bytes};
  return {};
}

Status CheckpointWriter::add_tensors(const std::string& name, const std::vector<SafetensorsView>& tensors, const std::map<std::string, std::string>& metadata) {
  if (!plain_name(name) || name == kManifestName)
    return {file_error(6), quote(name) + ": not a file name for a checkpoint", "names hold letters, digits, '.', '_' and '-'", "choose a plain name", root_};
  Status status = write_safetensors(temporary_ + "/" + name, tensors, metadata);
  return status.ok() ? record(name) : status;
}

Status CheckpointWriter::add_text(const std::string& name, const std::string& text) {
  if (!plain_name(name) || name == kManifestName)
    return {file_error(6), quote(name) + ": not a file name for a checkpoint", "names hold letters, digits, '.', '_' and '-'", "choose a plain name", root_};
  Status status = write_file(temporary_ + "/" + name, text);
  return status.ok() ? record(name) : status;
}

Result<std::string> CheckpointWriter::publish() {
  Manifest manifest;
  manifest.step = step_;
  for (const auto& [name, file] : files_) manifest.files[name] = {file.sha256, file.size_bytes};
  Status status = write_file(temporary_ + "/" + kManifestName, manifest_text(manifest));  // syncs the folder too
  if (!status.ok()) return status;
  const std::string final = root_ + "/" + step_directory_name(step_);
  status = replace_directory(temporary_, final);
  if (!status.ok()) return status;
  ::close(lock_fd_);
  lock_fd_ = -1;
  status = sync_directory(root_);
  if (!status.ok()) return Status{file_error(8), final + ": written, but its folder could not be synced", status.why, "check the disk", final};
  return final;
}

Result<std::string> save_checkpoint(const std::string& root, const TrainingState& state, const std::vector<SafetensorsView>& model,
                                    const std::vector<SafetensorsView>& optimizer) {
  Result<CheckpointWriter> writer = CheckpointWriter::begin(root, state.step);
  if (!writer) return writer.status();
  Status status = writer->add_tensors("model.safetensors", model);
  if (status.ok()) status = writer->add_tensors("optimizer.safetensors", optimizer);
  if (status.ok()) status = writer->add_text("state.json", state_text(state));
  if (!status.ok()) return status;
  return writer->publish();
}

}  // namespace tenon::io
