// tests/loader/temp_folder.h - a folder that is gone after the test, and files in it.
#pragma once
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

class TempFolder {
 public:
  TempFolder() {
    char name[] = "/tmp/tenon_loader_XXXXXX";
    path_ = std::filesystem::canonical(mkdtemp(name)).string();
    chmod(path_.c_str(), 0755);
  }
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  std::string write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(*this / name).parent_path());
    std::ofstream(*this / name, std::ios::binary) << text;
    return *this / name;
  }
  // A fixture plugin under a plugin's name: add("good", "a") makes libtenon_backend_a.so.
  std::string add(const std::string& fixture, const std::string& as) const {
    const std::string to = *this / ("libtenon_backend_" + as + ".so");
    std::filesystem::copy_file(std::string(FIXTURE_DIR "/") + fixture + ".so", to);
    return to;
  }

 private:
  std::string path_;
};

inline std::vector<std::byte> bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  const auto* data = reinterpret_cast<const std::byte*>(text.data());
  return {data, data + text.size()};
}

// Runs `body` in a child process as a user without special rights (root would be refused nothing); its return value, or
// -1 if it did not end by itself.
template <class Body>
int as_unprivileged(Body body) {
  const pid_t child = fork();
  if (child == 0) {
    if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0)) _exit(120);
    _exit(body());
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
