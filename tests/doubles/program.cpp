#include "tests/doubles/program.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/doubles/settings.h"

namespace tenon_double {
namespace {
namespace fs = std::filesystem;

constexpr char kMagic[16] = "TENON DOUBLE 1";
constexpr size_t kMostCached = 8192;

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream all;
  all << file.rdbuf();
  return all.str();
}

unsigned long long hash(const std::string& text, unsigned long long start) {
  for (unsigned char c : text) start = (start ^ c) * 1099511628211ull;
  return start;
}

size_t skip_space(const std::string& s, size_t at) {
  while (at < s.size() && std::isspace(static_cast<unsigned char>(s[at]))) ++at;
  return at;
}

// The place behind the parenthesis that closes the one at `open`.
size_t behind_parenthesis(const std::string& s, size_t open) {
  int depth = 0;
  for (size_t i = open; i < s.size(); ++i) {
    if (s[i] == '(') ++depth;
    if (s[i] == ')' && --depth == 0) return i + 1;
  }
  return s.size();
}

bool is_word(const std::string& s, size_t at, const std::string& word) {
  const auto part = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  return s.compare(at, word.size(), word) == 0 && (at + word.size() == s.size() || !part(s[at + word.size()]));
}

// An export line for each `__global__ ... void [__launch_bounds__(n)] name(` of the text.
std::string export_lines(const std::string& text) {
  std::string lines;
  for (size_t at = text.find("__global__"); at != std::string::npos; at = text.find("__global__", at)) {
    at += std::strlen("__global__");
    if (text.rfind("#define", at) != std::string::npos && text.find('\n', text.rfind("#define", at)) > at) continue;
    std::string bounds = "1024", name;
    for (size_t end = at;;) {
      end = skip_space(text, end);
      size_t word_end = end;
      while (word_end < text.size() && (std::isalnum(static_cast<unsigned char>(text[word_end])) || text[word_end] == '_')) ++word_end;
      if (word_end == end) break;
      const size_t next = skip_space(text, word_end);
      if (is_word(text, end, "__launch_bounds__")) {
        const size_t behind = behind_parenthesis(text, next);
        bounds = text.substr(next + 1, behind - next - 2);
        end = behind;
      } else if (next < text.size() && text[next] == '(') {
        name = text.substr(end, word_end - end);
        break;
      } else {
        end = word_end;
      }
    }
    if (!name.empty()) lines += "TENON_EXPORT_KERNEL(" + name + ", " + bounds + ")\n";
  }
  return lines;
}

// The oldest of too many compiled kernels go.
void bound_cache(const fs::path& folder) {
  std::error_code error;
  std::vector<std::pair<fs::file_time_type, fs::path>> all;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (entry.path().extension() == ".so") all.emplace_back(entry.last_write_time(error), entry.path());
  if (all.size() <= kMostCached) return;
  std::sort(all.begin(), all.end());
  for (size_t i = 0; i < all.size() / 2; ++i) fs::remove(all[i].second, error);
}

std::string flags(const std::string& more) {
  std::string all = "-std=c++17 -w -O1 -fPIC -shared -fno-strict-aliasing -fwrapv -ffp-contract=off -fno-math-errno -fno-exceptions -fno-rtti -fvisibility=hidden " + more + " " + settings().flags;
#if defined(__x86_64__)
  all += __builtin_cpu_supports("fma") ? " -mavx2 -mfma" : "";
#endif
  return all;
}

bool build(const std::string& source, const std::string& options, const fs::path& target, std::string* log) {
  char pattern[] = "/tmp/tenon-double-XXXXXX";
  if (mkdtemp(pattern) == nullptr) return *log = "no temporary folder", false;
  const fs::path folder = pattern;
  std::ofstream(folder / "kernel.cpp") << source;
  const std::string quoted = folder.string();
  const std::string command = std::string("LC_ALL=C " TENON_DOUBLE_CXX " ") + options + " -I" TENON_DOUBLE_SOURCE " -o " + quoted + "/kernel.so " + quoted + "/kernel.cpp -lm >" + quoted + "/log 2>&1";
  const bool good = std::system(command.c_str()) == 0;
  *log = read_file(folder / "log");
  std::error_code error;
  if (good) {
    // Renamed into place: another process sees all of it or nothing.
    const fs::path fresh = target.string() + "." + std::to_string(getpid()) + "." + std::to_string(reinterpret_cast<uintptr_t>(&source) >> 4);
    fs::copy_file(folder / "kernel.so", fresh, fs::copy_options::overwrite_existing, error);
    fs::rename(fresh, target, error);
    if (error) *log = "the cache's folder cannot be written: " + error.message();
  }
  std::error_code ignored;
  fs::remove_all(folder, ignored);
  return good && !error;
}

std::string image_of(const std::string& library, const std::string& target) {
  ImageHead head{};
  std::memcpy(head.magic, kMagic, sizeof kMagic);
  std::snprintf(head.target, sizeof head.target, "%s", target.c_str());
  head.bytes = library.size();
  return std::string(reinterpret_cast<const char*>(&head), sizeof head) + library;
}

}  // namespace

bool compile(const std::string& text, const std::string& target, const std::string& more_flags, std::string* image, std::string* log) {
  const std::string source = "#include \"shim.h\"\n#line 1 \"kernel\"\n" + text + "\n" + export_lines(text);
  const std::string options = flags(more_flags);
  static const std::string shim = read_file(fs::path(TENON_DOUBLE_SOURCE) / "shim.h") + read_file(fs::path(TENON_DOUBLE_SOURCE) / "device_abi.h") + __VERSION__;
  const std::string all = shim + options + source;
  char name[48];
  std::snprintf(name, sizeof name, "%016llx%016llx.so", hash(all, 14695981039346656037ull), hash(all, 1099511628211ull * 31));
  std::error_code error;
  fs::create_directories(settings().cache, error);
  const fs::path path = fs::path(settings().cache) / name;
  std::string library = read_file(path);
  if (library.empty()) {
    if (!build(source, options, path, log)) return false;
    if (counters().compilations++ % 256 == 0) bound_cache(settings().cache);
    library = read_file(path);
  }
  *image = image_of(library, target);
  return !library.empty();
}

std::shared_ptr<Module> Module::load(const void* image, std::string* target) {
  ImageHead head;
  std::memcpy(&head, image, sizeof head);
  if (std::memcmp(head.magic, kMagic, sizeof kMagic) != 0) return nullptr;
  *target = head.target;
  // Each time under another name: the linker takes a known name for a library that it has.
  char path[] = "/tmp/tenon-double-XXXXXX";
  const int file = mkstemp(path);
  if (file < 0) return nullptr;
  const char* bytes = static_cast<const char*>(image) + sizeof head;
  auto module = std::make_shared<Module>();
  const bool written = write(file, bytes, head.bytes) == static_cast<ssize_t>(head.bytes);
  close(file);
  if (written) module->library_ = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (module->library_ == nullptr) std::fprintf(stderr, "[double] %s\n", dlerror());
  unlink(path);
  if (module->library_ == nullptr) return nullptr;
  counters().modules++;
  return module;
}

Module::~Module() {
  if (library_ == nullptr) return;
  dlclose(library_);
  counters().modules--;
}

const TenonKernel* Module::kernel(const std::string& name) const { return static_cast<const TenonKernel*>(dlsym(library_, ("tenon_kernel_" + name).c_str())); }

}  // namespace tenon_double
