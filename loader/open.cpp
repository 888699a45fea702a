// Boost.DLL on std::filesystem: header-only, no Boost library is linked.
#define BOOST_DLL_USE_STD_FS
#include "loader/open.h"

#include <dlfcn.h>
#include <sys/stat.h>

#include <boost/dll/shared_library.hpp>
#include <system_error>

#include "kernel/fp_env.h"

namespace tenon::loader {
namespace {

// Boost wraps dlerror's text: "... (dlerror system message: TEXT): ...".
std::string linker_text(const std::string& what) {
  constexpr std::string_view kMark = "dlerror system message: ";
  const size_t mark = what.find(kMark);
  if (mark == std::string::npos) return what;
  const size_t begin = mark + kMark.size(), end = what.rfind(')');
  return what.substr(begin, end == std::string::npos || end < begin ? std::string::npos : end - begin);
}

}  // namespace

Verdict verdict_of_linker_text(const std::string& path, const std::string& text) {
  // About a dependency the text begins with that library's name, about the plugin itself with its path.
  const bool absent = text.find("cannot open shared object file: No such file") != std::string::npos;
  return verdict(absent && !text.starts_with(path) ? Code::MissingDependency : Code::OpenFailed, text);
}

std::string descriptor_path(int descriptor) {
  struct stat info {};
  fstat(descriptor, &info);
  // The file's number in the spelling: "fd/../" is a one, "./" a zero.
  std::string path = "/proc/self/";
  for (const uint64_t number : {static_cast<uint64_t>(info.st_dev), static_cast<uint64_t>(info.st_ino)}) {
    for (uint64_t rest = number; rest != 0; rest >>= 1) path += (rest & 1) != 0 ? "fd/../" : "./";
    path += "/";  // where one number ends
  }
  return path + "fd/" + std::to_string(descriptor);
}

std::optional<Verdict> open_library(const std::string& path, bool keep_mapped, OpenedLibrary* out, int descriptor) {
  auto mode = boost::dll::load_mode::rtld_now | boost::dll::load_mode::rtld_local;
  if (keep_mapped) mode |= static_cast<boost::dll::load_mode::type>(RTLD_NODELETE);  // Boost has no name for it, and passes it on
  const std::string name = descriptor >= 0 ? descriptor_path(descriptor) : path;
  kernel::FpEnvGuard keep;
  auto library = std::make_shared<boost::dll::shared_library>();
  try {
    library->load(name, mode);
  } catch (const std::exception& failure) {
    std::string text = linker_text(failure.what());
    if (const size_t at = text.find(name); at != std::string::npos) text.replace(at, name.size(), path);
    return verdict_of_linker_text(path, text);
  } catch (...) {
    return verdict(Code::OpenFailed, "a constructor of the library threw an exception");
  }
  if (!library->has("tn_plugin_query")) return verdict(Code::NoSymbol, "the file does not export tn_plugin_query");
  out->query = &library->get<const tn_plugin*(uint32_t, const tn_host*)>("tn_plugin_query");
  out->handle = std::move(library);
  return std::nullopt;
}

}  // namespace tenon::loader
