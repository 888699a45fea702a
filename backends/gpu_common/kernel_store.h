// backends/gpu_common/kernel_store.h - compiled kernels in a folder, shared by all processes of a user.
//
// A file holds its whole key beside the binary, their lengths and a checksum; what does not fit in every point is compiled
// again, never used. Files appear by an atomic rename. One process compiles a key at a time, the others wait for its file.
// Nothing here is an error for the caller: without a usable folder every kernel is compiled.
#pragma once
#include <tenon/types.h>

#include <functional>
#include <string>

namespace tenon::gpu {

class KernelStore {
 public:
  using Compile = std::function<tn_status(std::string* binary, tn_diag*)>;

  // folder: "" = none. Made when first written, for this user alone; a folder that others may write is not used.
  KernelStore(std::string folder, uint64_t most_bytes) : folder_(std::move(folder)), most_bytes_(most_bytes) {}
  // The binary of `key`, from its file or from `compile`, whose errors are returned. name: begins the file's name. Threads: any.
  tn_status obtain(const std::string& name, const std::string& key, const Compile& compile, std::string* binary, tn_diag*) const;
  // Drops the file of a binary that the driver refused.
  void forget(const std::string& name, const std::string& key) const;

 private:
  bool ready() const;
  std::string path_of(const std::string& name, const std::string& key) const;
  bool read(const std::string& path, const std::string& key, std::string* binary) const;
  void write(const std::string& path, const std::string& key, const std::string& binary) const;
  void trim() const;
  const std::string folder_;
  const uint64_t most_bytes_;
};

}  // namespace tenon::gpu
