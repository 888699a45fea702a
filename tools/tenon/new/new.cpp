// `tenon new backend`: writes a folder that builds into a plugin against an installed Tenon alone. The files are those of
// backends/null, embedded when this command is built, with the name put in.
#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <memory>

#include "tools/tenon/commands.h"
#include "tools/tenon/common/args.h"
#include "tools/tenon/common/context.h"
#include "tools/tenon/common/failure.h"
#include "tools/tenon/common/json.h"

namespace tenon::cli {
namespace {

namespace fs = std::filesystem;

struct File {
  const char *name, *text;
};
constexpr File kFiles[] = {
#include "backend_template.inc"
};

struct Choices {
  std::string what, name, folder;
  bool cxx = false;
};

void replace(std::string* text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text->find(from, at)) != std::string::npos; at += to.size()) text->replace(at, from.size(), to);
}

std::string upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

std::string named(std::string text, const Choices& c) {
  replace(&text, "dev.tenon.null", "com.example." + c.name);
  replace(&text, "TENON_BACKEND_NULL_H", upper(c.name) + "_H");
  replace(&text, "NULL_", upper(c.name) + "_");  // C's own NULL has no underscore
  replace(&text, "null", c.name);
  replace(&text, "backends/" + c.name + "/", "");
  if (!c.cxx) return text;
  replace(&text, "plugin.c", "plugin.cpp");
  replace(&text, "kernels.c", "kernels.cpp");
  replace(&text, "LANGUAGES C)", "LANGUAGES CXX)");
  replace(&text, "a C11 compiler", "a C++17 compiler");
  return text;
}

void check(const Choices& c) {
  if (c.what != "backend") throw Failure(kUsage, "TN-CLI-036", "tenon new makes one kind of thing", c.what, "`backend` is known", "tenon new backend " + (c.name.empty() ? "acme" : c.name));
  const bool good = !c.name.empty() && c.name.size() <= 24 && std::islower(static_cast<unsigned char>(c.name[0])) &&
                    std::all_of(c.name.begin(), c.name.end(), [](unsigned char x) { return std::islower(x) || std::isdigit(x) || x == '_'; });
  if (!good)
    throw Failure(kUsage, "TN-CLI-037", "this cannot be the name of a backend", c.name, "a small letter, then small letters, digits and _, at most 24", "tenon new backend acme");
}

int run(Context& context, const Choices& c) {
  check(c);
  const fs::path folder = c.folder.empty() ? fs::path(c.name) : fs::path(c.folder);
  if (fs::exists(folder) && !fs::is_empty(folder))
    throw Failure(kFailed, "TN-CLI-038", "the folder is not empty", folder.string(), "nothing is overwritten", "another folder: tenon new backend " + c.name + " DIR");
  std::error_code error;
  fs::create_directories(folder, error);
  std::vector<std::string> written;
  for (const File& file : kFiles) {
    const fs::path path = folder / named(file.name, c);
    std::ofstream out(path, std::ios::binary);
    out << named(file.text, c);
    if (!out.flush()) throw Failure(kFailed, "TN-CLI-039", "a file could not be written", path.string(), "the system refused", "a folder that you may write to");
    written.push_back(path.string());
  }
  if (context.json) {
    context.line(JsonRow().add("folder", folder.string()).add("files", written).text());
    return kDone;
  }
  for (const std::string& path : written) context.line("wrote " + path);
  context.line("\nnext:\n  cmake -S " + folder.string() + " -B " + (folder / "build").string() + " -DCMAKE_PREFIX_PATH=/path/to/tenon\n  cmake --build " + (folder / "build").string() +
               "\n  tenon conformance --plugin " + (folder / "build").string() + "/libtenon_backend_" + c.name + ".so --level 3");
  return kDone;
}

Run setup(Args& args) {
  auto c = std::make_shared<Choices>();
  args.positional("what", &c->what, "backend");
  args.positional("name", &c->name, "small letters, digits and _");
  args.positional("folder", &c->folder, "where to write; default: a folder of that name here", false);
  args.flag("--cxx", &c->cxx, "C++ files instead of C");
  return [c](Context& context) { return run(context, *c); };
}

}  // namespace

extern const Command command_new{"new", "Write the folder of a new backend: complete, right, slow, and yours to replace piece by piece.",
                                 "tenon new backend acme\ntenon new backend acme src/acme --cxx", kUsesNothing, setup};

}  // namespace tenon::cli
