// tests/doctor/fixture.h - a folder that stands for a machine: files, nodes, a PCI bus; gone when the test ends.
#pragma once
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "tools/tenon/look/drivers.h"

namespace tenon::cli {

class Machine : public ::testing::Test {
 protected:
  Machine() {
    char name[] = "/tmp/tenon-doctor-XXXXXX";
    root = mkdtemp(name);
  }
  ~Machine() override { std::filesystem::remove_all(root); }

  std::string write(const std::string& path, const std::string& text, mode_t mode = 0644) {
    const std::string at = root + path;
    std::filesystem::create_directories(std::filesystem::path(at).parent_path());
    std::ofstream(at) << text;
    chmod(at.c_str(), mode);
    return at;
  }
  void link(const std::string& path, const std::string& to) {
    std::filesystem::create_directories(std::filesystem::path(root + path).parent_path());
    std::filesystem::create_symlink(to, root + path);
  }
  void gpu(const std::string& address, const char* vendor, const char* device, const char* kind, const char* driver = nullptr) {
    const std::string at = "/sys/bus/pci/devices/" + address;
    write(at + "/vendor", std::string(vendor) + "\n");
    write(at + "/device", std::string(device) + "\n");
    write(at + "/class", std::string(kind) + "\n");
    if (driver != nullptr) link(at + "/driver", std::string("../../drivers/") + driver);
  }
  Survey look(const std::map<std::string, std::string>& variables = {}) { return survey({root, variables}); }

  std::string root;
};

// A child in the place of tenon-drivers: a shell script that speaks on descriptor 3 and notes each of its starts.
struct Script {
  std::string path, log;
  int starts() const {
    std::ifstream in(log);
    int n = 0;
    for (std::string line; std::getline(in, line);) ++n;
    return n;
  }
};

inline DriverAnswer said(const std::string& kind, const std::string& library, const std::string& rows, const std::string& source = "") {
  return read_answer({kind, {library}, source}, rows);
}

}  // namespace tenon::cli
