// Boost.DLL on std::filesystem: header-only, no Boost library is linked.
#define BOOST_DLL_USE_STD_FS
#include "loader/open.h"

#include <dlfcn.h>

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

std::optional<Verdict> open_library(const std::string& path, bool keep_mapped, OpenedLibrary* out) {
  auto mode = boost::dll::load_mode::rtld_now | boost::dll::load_mode::rtld_local;
  if (keep_mapped) mode |= static_cast<boost::dll::load_mode::type>(RTLD_NODELETE);  // Boost has no name for it, and passes it on
  kernel::FpEnvGuard keep;
  auto library = std::make_shared<boost::dll::shared_library>();
  try {
    library->load(path, mode);
  } catch (const std::exception& failure) {
    return verdict_of_linker_text(path, linker_text(failure.what()));
  } catch (...) {
    return verdict(Code::OpenFailed, "a constructor of the library threw an exception");
  }
  if (!library->has("tn_plugin_query")) return verdict(Code::NoSymbol, "the file does not export tn_plugin_query");
  out->query = &library->get<const tn_plugin*(uint32_t, const tn_host*)>("tn_plugin_query");
  out->handle = std::move(library);
  return std::nullopt;
}

}  // namespace tenon::loader
