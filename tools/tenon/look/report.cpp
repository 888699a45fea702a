#include "tools/tenon/look/report.h"

#include <gnu/libc-version.h>
#include <pwd.h>
#include <sys/utsname.h>
#include <tenon/io/file.hpp>
#include <tenon/tenon.hpp>
#include <unistd.h>

#include <cctype>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "tools/tenon/common/json.h"
#include "tools/tenon/common/names.h"

extern char** environ;

namespace tenon::cli {
namespace {

std::string distribution() {
  std::ifstream in("/etc/os-release");
  for (std::string line; std::getline(in, line);)
    if (line.rfind("PRETTY_NAME=", 0) == 0) return line.substr(13, line.size() - 14);
  return "unknown";
}

// Replaces what names a person or a machine.
class Discreet {
 public:
  Discreet() {
    const char* home = std::getenv("HOME");
    if (home && std::strlen(home) > 1) words_.push_back({home, "~"});
    char host[256] = {};
    if (gethostname(host, sizeof host - 1) == 0 && std::strlen(host) > 3) words_.push_back({host, "(host)"});
    const char* user = std::getenv("USER");
    if (user && std::strlen(user) > 3 && std::strcmp(user, "root") != 0) words_.push_back({user, "(user)"});
  }
  std::string operator()(std::string text) const {
    for (const auto& [word, instead] : words_)
      for (size_t at = 0; (at = text.find(word, at)) != std::string::npos; at += instead.size()) text.replace(at, word.size(), instead);
    return text;
  }

 private:
  std::vector<std::pair<std::string, std::string>> words_;
};

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-'; }

// The name of the person in what is said about rights. It may be as short as "ann", so that only whole words are names.
std::string without_person(std::string text) {
  const passwd* entry = getpwuid(geteuid());
  const std::string name = entry != nullptr ? entry->pw_name : "";
  if (name.empty() || name == "root") return text;
  for (size_t at = 0; (at = text.find(name, at)) != std::string::npos;) {
    const size_t end = at + name.size();
    const bool whole = (at == 0 || !is_word(text[at - 1])) && (end == text.size() || !is_word(text[end]));
    if (whole) text.replace(at, name.size(), "(user)");
    at += whole ? 6 : name.size();
  }
  return text;
}

std::string finding_row(const Finding& f) {
  const std::string text = JsonRow().add("kind", "finding").add("check", f.check).add("state", state_name(f.state)).add("value", f.value).add("why", f.why).add("try", f.advice)
                               .add("reason", reason_name(f.reason)).add("detail", f.detail).text();
  return f.reason == Reason::no_permission ? without_person(text) : text;
}

std::string system_row() {
  utsname names{};
  uname(&names);
  return JsonRow().add("kind", "system").add("tenon", TENON_VERSION).add("build", TENON_BUILD_TYPE).add("abi", tn_version()).add("kernel", names.release)
      .add("machine", names.machine).add("libc", gnu_get_libc_version()).add("distribution", distribution()).add("privileged", geteuid() == 0).text();
}

std::string variables_row() {
  static constexpr const char* kPrefixes[] = {"TENON_", "OMP_", "GOMP_", "CUDA_", "HIP_", "ROCR_", "HSA_", "OCL_", "VK_", "ONEAPI_", "XDG_CACHE_HOME", "XDG_DATA", "LD_"};
  JsonRow row;
  row.add("kind", "environment");
  for (char** v = environ; *v; ++v) {
    const std::string text = *v;
    const size_t equals = text.find('=');
    for (const char* prefix : kPrefixes)
      if (equals != std::string::npos && text.rfind(prefix, 0) == 0) {
        row.add(text.substr(0, equals), text.substr(equals + 1));
        break;
      }
  }
  return row.text();
}

void add_machine(Context& context, std::string* out) {
  for (const tn_plugin_entry& p : plugin_entries(context.handle()))
    *out += JsonRow().add("kind", "plugin").add("path", p.path).add("id", p.id).add("version", p.version).add("build_id", p.build_id)
                .add("code", p.code).add("verdict", load_code_name(p.code)).add("stage", stage_name(p.stage)).add("cause", p.cause).text() + "\n";
  for (const tn_device_entry& d : device_entries(context.handle())) {
    JsonRow caps;
    if (d.verdict == 0)
      for (const tn_cap& cap : device_caps(context.handle(), d.device)) {
        const CapText t = cap_text(cap);
        t.is_number ? caps.add(t.key, t.number) : caps.add(t.key, t.value);
      }
    *out += JsonRow().add("kind", "device").add("name", d.name).add("hardware", d.info.name).add("driver", d.info.driver).add("verdict", d.verdict)
                .add("cause", d.cause).add("memory_bytes", d.info.mem_total_bytes).add("flags", d.info.flags).add("caps", caps).text() + "\n";
  }
}

}  // namespace

std::string discreet(const std::string& text) { return Discreet()(text); }
std::string distribution_name() { return distribution(); }

void write_report(Context& context, const Findings& findings, const std::string& path) {
  std::string text = system_row() + "\n" + variables_row() + "\n";
  for (const Finding& f : findings) text += finding_row(f) + "\n";
  try {
    add_machine(context, &text);
  } catch (const Error& error) {  // a runtime that does not start is among the findings already
    text += JsonRow().add("kind", "error").add("text", error.what()).text() + "\n";
  }
  throw_if_failed(io::write_file(path, Discreet()(text)), Where{"", 0});
}

}  // namespace tenon::cli
