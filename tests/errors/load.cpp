// TN-ABI and TN-LOAD: structs that cross the C interface; plugins that cannot be used.
#include <sys/stat.h>
#include <sys/wait.h>
#include <tenon/tenon.hpp>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "tests/errors/fake.h"
#include "tests/errors/golden.h"
#include "tests/errors/stage.h"
#include "tests/errors/tables.h"

namespace tenon::errors {
namespace {

namespace fs = std::filesystem;

Said create(const std::function<void(tn_runtime_options&)>& change) {
  tn_runtime_options options{};
  options.size = sizeof options;
  options.flags = TN_RT_NO_SEARCH;
  change(options);
  tn_runtime* rt = nullptr;
  const Said said = refused([&](tn_diag* d) { return tn_runtime_create(&options, &rt, d); });
  tn_runtime_destroy(rt, TN_FOREVER, nullptr);
  return said;
}

std::vector<tn_plugin_entry> entries(tn_runtime* rt) {
  uint32_t n = 0;
  tn_plugins(rt, nullptr, 0, 0, &n, nullptr);
  std::vector<tn_plugin_entry> all(n);
  tn_plugins(rt, all.data(), sizeof all[0], n, &n, nullptr);
  return all;
}

// A plugin written in the test and linked: the error that made it unusable.
Said link(void (*change)(Fake&), bool in_cause = true) {
  Stage s;
  fake = Fake{};
  change(fake);
  const Said told = refused([&](tn_diag* d) { return tn_plugin_link(s.rt, "test.fake", fake_query, nullptr, d); });
  return in_cause ? said_in_cause(entries(s.rt).back()) : told;
}

class Folder {
 public:
  Folder() {
    char name[] = "/tmp/tenon-errors-XXXXXX";
    path = fs::canonical(mkdtemp(name)).string();
    chmod(path.c_str(), 0755);
    call_it_dir(path);
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
  std::string file(const char* name) const { return path + "/libtenon_backend_" + name + ".so"; }
  std::string put(const char* name, const std::string& bytes) const {
    std::ofstream(file(name), std::ios::binary) << bytes;
    return file(name);
  }
  std::string fixture(const char* which, const char* as = "x") const {
    fs::copy_file(std::string(TENON_FIXTURES "/") + which + ".so", file(as));
    return file(as);
  }
  std::string path;
};

Said load(const std::string& path) {
  Stage s;
  return refused([&](tn_diag* d) { return tn_plugin_load(s.rt, path.c_str(), nullptr, d); });
}
Said load_fixture(const char* which) {
  Folder folder;
  return load(folder.fixture(which));
}

// As a user without special rights: root would be refused nothing. The text comes back through a pipe.
Said load_unprivileged(const std::string& path) {
  int ends[2];
  if (pipe(ends)) return {};
  tn_diag diag{};
  const pid_t child = fork();
  if (child == 0) {
    if (geteuid() == 0 && (setgid(65534) || setuid(65534))) _exit(1);
    Stage s;
    tn_plugin_load(s.rt, path.c_str(), nullptr, &diag);
    _exit(write(ends[1], &diag, sizeof diag) == sizeof diag ? 0 : 1);
  }
  close(ends[1]);
  const bool told = read(ends[0], &diag, sizeof diag) == sizeof diag;
  close(ends[0]);
  waitpid(child, nullptr, 0);
  return told ? said(diag) : Said{};
}

// What the machine offers is no part of the text that is compared.
Said without_this_machine(Said s) {
  const size_t at = s.why.find("offer ");
  if (at != std::string::npos) s.why = s.why.substr(0, at) + "offer (what there is)";
  return s;
}

std::string bad_record() {
  std::ifstream in(TENON_FIXTURES "/good.so", std::ios::binary);
  std::string bytes(std::istreambuf_iterator<char>(in), {});
  // The note: sizes of name and record, type, name. A record of 8 bytes is none.
  const size_t name = bytes.find(std::string("Tenon.abi\0\0\0", 12));
  if (name != std::string::npos) std::memcpy(bytes.data() + name - 8, "\x08\0\0\0", 4);
  return bytes;
}

// A setting for as long as it lives.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~Variable() { unsetenv(name_); }

 private:
  const char* name_;
};

// A plugin of the fault kit, tried in a child process; nothing is remembered of it.
Said load_fault(const char* which) {
  const Variable settings("TENON_CONFIG", "loader.cache=off;loader.probe_timeout_ms=200");
  Folder f;
  fs::copy_file(std::string(TENON_FAULTS "/") + which + ".so", f.file("x"));
  return load(f.file("x"));
}

// The verdict of this code among those of the standard folders.
Said found(uint32_t code) {
  tn_runtime* rt = nullptr;
  if (tn_runtime_create(nullptr, &rt, nullptr)) return {};
  Said told;
  for (const tn_plugin_entry& e : entries(rt))
    if (e.code == code) told = said(e);
  tn_runtime_destroy(rt, TN_FOREVER, nullptr);
  return told;
}

// With sim in a worker process; a case sees it through `body`.
Said isolated(const std::function<Said(tn_runtime*, tn_queue*, pid_t worker)>& body) {
  const Variable ids("TENON_ISOLATE", "dev.tenon.sim"), settings("TENON_CONFIG", "loader.cache=off");
  Stage s;
  if (tn_plugin_load(s.rt, plugin_file("sim").c_str(), nullptr, nullptr)) return {};
  uint32_t device = 0;
  tn_queue* queue = nullptr;
  if (tn_device_find(s.rt, "sim:0", TN_POLICY_REQUIRE, &device, nullptr) || tn_queue_get(s.rt, device, &queue, nullptr)) return {};
  const std::string note = entries(s.rt).back().cause;
  return body(s.rt, queue, std::atoi(note.substr(note.rfind(' ') + 1).c_str()));
}

Said allocate(tn_runtime* rt, tn_queue* queue) {
  tn_type type{};
  type.dtype = TN_F32, type.rank = 1, type.dim[0] = 10, type.stride[0] = 1;
  uint32_t id = 0;
  tn_type_intern(rt, &type, &id, nullptr);
  tn_tensor* t = nullptr;
  return refused([&](tn_diag* d) { return tn_tensor_create(queue, id, &t, d); });
}

Said after_the_worker_was_killed() {
  return isolated([](tn_runtime* rt, tn_queue* queue, pid_t worker) {
    kill(worker, SIGKILL);
    Said said;
    for (int i = 0; i < 1000 && said.id.empty(); ++i) said = allocate(rt, queue);
    if (const size_t at = said.why.find("process "); at != std::string::npos) said.why = said.why.substr(0, at) + "process N" + said.why.substr(said.why.find(':', at));
    return said;
  });
}

// In the child of a fork; the text comes back through a pipe.
Said after_fork() {
  return isolated([](tn_runtime* rt, tn_queue* queue, pid_t) {
    int ends[2];
    if (pipe(ends)) return Said{};
    const pid_t child = fork();
    if (child == 0) {
      tn_type type{};
      type.dtype = TN_F32, type.rank = 1, type.dim[0] = 10, type.stride[0] = 1;
      uint32_t id = 0;
      tn_type_intern(rt, &type, &id, nullptr);
      tn_tensor* t = nullptr;
      tn_diag diag{};
      tn_tensor_create(queue, id, &t, &diag);
      _exit(write(ends[1], &diag, sizeof diag) == sizeof diag ? 0 : 1);
    }
    close(ends[1]);
    tn_diag diag{};
    const bool told = read(ends[0], &diag, sizeof diag) == sizeof diag;
    close(ends[0]);
    waitpid(child, nullptr, 0);
    return told ? said(diag) : Said{};
  });
}

// Checksums change with the compiler.
Said without_checksum(Said s) {
  if (const size_t at = s.why.find("sha256:"); at != std::string::npos) s.why = s.why.substr(0, at) + "sha256:(its sum)";
  return s;
}

}  // namespace

Table abi_cases() {
  return {
      {"TN-ABI-001", "", [] { return link([](Fake& f) { f.kernels.resize(2), f.kernel_stride = 8; }); }},
      {"TN-ABI-002", "", [] {
         return link([](Fake& f) {
           tn_kernel_info row{};
           row.size = sizeof row;
           row.name = "fake.add";
           f.kernels.push_back(row);
         });
       }},
      {"TN-ABI-003", "", [] { return link([](Fake& f) { f.devices = 1000; }); }},
      {"TN-ABI-004", "", [] { Stage s; tn_plugin_entry e; uint32_t n; return refused([&](tn_diag* d) { return tn_plugins(s.rt, &e, 4, 1, &n, d); }); }},
      {"TN-ABI-005", "", [] {
         static const tn_ext ext{sizeof(tn_ext), TN_EXT_CRITICAL | 7, nullptr};
         return create([](tn_runtime_options& o) { o.next = &ext; });
       }},
      {"TN-ABI-006", "", [] {
         static tn_ext ext{sizeof(tn_ext), 7, nullptr};
         ext.next = &ext;
         return create([](tn_runtime_options& o) { o.next = &ext; });
       }},
      {"TN-ABI-007", "a pointer", [] { return refused([](tn_diag* d) { return tn_runtime_create(nullptr, nullptr, d); }); }},
      {"TN-ABI-007", "a list", [] { return create([](tn_runtime_options& o) { o.n_paths = 2; }); }},
      {"TN-ABI-007", "a number", [] { return create([](tn_runtime_options& o) { o.policy = 9; }); }},
      {"TN-ABI-101", "", [] {
         struct { uint32_t major, minor; void* ctx; void (*deleter)(void*); uint64_t flags; char rest[48]; } managed{2, 0, nullptr, nullptr, 0, {}};
         return thrown([&] { from_dlpack(&managed); });
       }},
  };
}

Table load_cases() {
  return {
      {"TN-LOAD-001", "", [] { return load_fixture("no_record"); }},
      {"TN-LOAD-002", "", [] { Folder f; fs::create_directory(f.file("x")); return load(f.file("x")); }},
      {"TN-LOAD-003", "", [] { Folder f; chmod(f.fixture("good").c_str(), 0); return load_unprivileged(f.file("x")); }},
      {"TN-LOAD-004", "", [] { Folder f; return load(f.put("x", "")); }},
      {"TN-LOAD-005", "a text", [] { Folder f; return load(f.put("x", std::string(200, 'x'))); }},
      {"TN-LOAD-005", "cut short", [] { Folder f; fs::resize_file(f.fixture("good"), 4096); return load(f.file("x")); }},
      {"TN-LOAD-006", "", [] { return load_fixture("wrong_target"); }},
      {"TN-LOAD-007", "", [] { return load_fixture("next_major"); }},
      {"TN-LOAD-008", "", [] { return without_this_machine(load_fixture("cpu_need")); }},
      {"TN-LOAD-009", "", [] { return load_fixture("missing_dep"); }},
      {"TN-LOAD-010", "", [] { return load_fixture("undefined"); }},
      {"TN-LOAD-011", "", [] { return load_fault("crash_open"); }},
      {"TN-LOAD-012", "", [] { return load_fault("hang_open"); }},
      {"TN-LOAD-013", "", [] { return load_fixture("no_symbol"); }},
      {"TN-LOAD-014", "of a file", [] { return load_fixture("query_null"); }},
      {"TN-LOAD-014", "of a linked plugin", [] { return link([](Fake& f) { f.refuses = true; }, false); }},
      {"TN-LOAD-015", "of one id", [] {
         Folder f;
         Stage s;
         tn_plugin_load(s.rt, f.fixture("good", "a").c_str(), nullptr, nullptr);
         const std::string copy = f.fixture("good", "b");
         std::ofstream(copy, std::ios::app) << ' ';
         return refused([&](tn_diag* d) { return tn_plugin_load(s.rt, copy.c_str(), nullptr, d); });
       }},
      {"TN-LOAD-015", "of one file", [] {
         Folder f;
         Stage s;
         tn_plugin_load(s.rt, f.fixture("good", "a").c_str(), nullptr, nullptr);
         return refused([&](tn_diag* d) { return tn_plugin_load(s.rt, f.file("a").c_str(), nullptr, d); });
       }},
      {"TN-LOAD-016", "", [] { Folder f; chmod(f.fixture("good").c_str(), 0666); return load(f.file("x")); }},
      {"TN-LOAD-017", "", [] { return link([](Fake& f) { f.without_close = true; }, false); }},
      {"TN-LOAD-018", "", [] { return link([](Fake& f) { f.open_status = TN_E_UNAVAILABLE; }, false); }},
      {"TN-LOAD-019", "", [] { return link([](Fake& f) { f.open_status = TN_E_FAILED; }, false); }},
      {"TN-LOAD-019", "by its own fault", [] { return link([](Fake& f) { f.devices = 1000; }, false); }},
      {"TN-LOAD-020", "", [] {
         Folder f;
         tn_runtime_options o{};
         o.size = sizeof o;
         o.flags = TN_RT_NO_SEARCH;
         const char* only[] = {"org.example.a", "org.example.b"};
         o.allow = only, o.n_allow = 2;
         tn_runtime* rt = nullptr;
         if (tn_runtime_create(&o, &rt, nullptr)) return Said{};
         const Said said = refused([&](tn_diag* d) { return tn_plugin_load(rt, f.fixture("good").c_str(), nullptr, d); });
         tn_runtime_destroy(rt, TN_FOREVER, nullptr);
         return without_checksum(said);
       }},
      {"TN-LOAD-021", "", [] { Folder f; return load(f.put("x", bad_record())); }},
      {"TN-LOAD-022", "", [] {
         Stage s;
         uint32_t index = 0;
         tn_plugin_load(s.rt, plugin_file("cpu").c_str(), &index, nullptr);
         tn_plugin_unload(s.rt, index, TN_FOREVER, nullptr);
         return said(entries(s.rt).back());
       }},
      {"TN-LOAD-023", "", [] { Folder f; return load(f.file("none")); }},
      {"TN-LOAD-024", "", [] { const Variable list("TENON_PLUGIN_PATH", "/no/such/folder:plugins"); return found(24); }},
      {"TN-LOAD-026", "a kernel pack", [] { const Variable ids("TENON_ISOLATE", "dev.tenon.cpu-kernels"); Stage s; return refused([&](tn_diag* d) { return tn_plugin_load(s.rt, plugin_file("cpu").c_str(), nullptr, d); }); }},
      {"TN-LOAD-026", "linked", [] { const Variable ids("TENON_ISOLATE", "dev.tenon.cpu"); return create([](tn_runtime_options&) {}); }},
      {"TN-LOAD-040", "", [] { return create([](tn_runtime_options& o) { o.trust = 7; }); }},
      {"TN-LOAD-041", "", [] { Stage s; return refused([&](tn_diag* d) { return tn_plugin_unload(s.rt, 7, 0, d); }); }},
      {"TN-LOAD-042", "", [] {
         setenv("TENON_CONFIG", "sim.devices", 1);
         const Said said = create([](tn_runtime_options&) {});
         unsetenv("TENON_CONFIG");
         return said;
       }},
      {"TN-LOAD-044", "a checksum", [] {
         static const char* allow[] = {"sha256:0123456789abcdef0123456789abcdef"};
         return create([](tn_runtime_options& o) { o.allow = allow, o.n_allow = 1; });
       }},
      {"TN-LOAD-044", "two in one", [] {
         static const char* allow[] = {"org.example.a,org.example.b"};
         return create([](tn_runtime_options& o) { o.allow = allow, o.n_allow = 1; });
       }},
      {"TN-LOAD-045", "a key", [] { const Variable settings("TENON_CONFIG", "loader.colour=red"); return create([](tn_runtime_options&) {}); }},
      {"TN-LOAD-045", "a value", [] { const Variable settings("TENON_CONFIG", "loader.trust=yes"); return create([](tn_runtime_options&) {}); }},
      {"TN-LOAD-045", "a folder", [] { return create([](tn_runtime_options& o) { o.cache_dir = "cache"; }); }},
      {"TN-LOAD-046", "", after_the_worker_was_killed},
      {"TN-LOAD-047", "", [] {
         const Variable ids("TENON_ISOLATE", "dev.tenon.smi");
         Folder f;
         const char* paths[] = {f.path.c_str()};
         return create([&](tn_runtime_options& o) { o.flags = 0, o.paths = paths, o.n_paths = 1; });
       }},
      {"TN-LOAD-048", "", after_fork},
      {"TN-LOAD-043", "", [] {
         Stage s;
         s.tensor("f32[1024]");
         return refused([&](tn_diag* d) { return tn_runtime_destroy(s.rt, 0, d); });
       }},
  };
}

}  // namespace tenon::errors
