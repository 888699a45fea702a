#include "tools/drivers/library.h"

#include <dlfcn.h>
#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>

#include <cstdio>

#include "tools/drivers/say.h"

namespace tenon::drivers {
namespace {

constexpr const char* kAbsent = "cannot open shared object file: No such file or directory";

bool holds(const std::string& text, const char* word) { return text.find(word) != std::string::npos; }

// What a build for another machine, C library or partner says of itself.
bool is_mismatch(const std::string& message) {
  for (const char* sign : {"undefined symbol", "' not found (required by", "wrong ELF class", "invalid ELF header", "file too short", "ELF file version", "ELF file OS ABI", "cannot enable executable stack"})
    if (holds(message, sign)) return true;
  return false;
}

// The library itself is not there, as opposed to one that it needs.
bool is_absent(const std::string& name, const std::string& message) { return message == name + ": " + kAbsent; }

// The path, and whose the file is where that can be seen.
JsonRow owner_of(const std::string& path) {
  JsonRow row;
  row.add("path", path).add("code", "EACCES");
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return row;
  const passwd* owner = getpwuid(info.st_uid);
  const group* group = getgrgid(info.st_gid);
  char mode[16];
  std::snprintf(mode, sizeof mode, "%04o", static_cast<unsigned>(info.st_mode & 07777u));
  return row.add("owner", owner != nullptr ? owner->pw_name : std::to_string(info.st_uid)).add("group", group != nullptr ? group->gr_name : std::to_string(info.st_gid)).add("mode", mode);
}

}  // namespace

void say_link_fault(const std::string& asked, const std::string& message) {
  const size_t colon = message.find(": ");
  const std::string about = colon == std::string::npos ? asked : message.substr(0, colon);
  if (holds(message, kAbsent)) {
    JsonRow more;
    more.add("library", about);
    if (about != asked) more.add("needed_by", asked);
    return fault("library_missing", about == asked ? about + " is not installed" : asked + " needs " + about + ", which is not installed", more);
  }
  if (holds(message, ": Permission denied")) return fault("no_permission", message, owner_of(about));
  if (is_mismatch(message)) return fault("abi_mismatch", message, JsonRow().add("library", about));
  fault("init_failed", message, JsonRow().add("code", "dlopen"));
}

void* open_library(const std::vector<std::string>& names) {
  std::string first;
  for (const std::string& name : names) {
    void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    used_files();
    if (library != nullptr) return library;
    const char* text = dlerror();
    const std::string message = text != nullptr ? text : "";
    if (!is_absent(name, message)) return say_link_fault(name, message), nullptr;  // it is there, and broken: that is the answer
    if (first.empty()) first = message;
  }
  if (!names.empty()) say_link_fault(names.front(), first);
  return nullptr;
}

void* symbol(void* library, const char* name, const std::string& library_name) {
  void* address = dlsym(library, name);
  if (address == nullptr) fault("abi_mismatch", library_name + " has no " + name, JsonRow().add("library", library_name).add("symbol", name));
  return address;
}

}  // namespace tenon::drivers
