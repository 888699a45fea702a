// TN-FILE and TN-DATA: files, safetensors, checkpoints; data sets.
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <tenon/data/dataset.hpp>
#include <tenon/data/loader.hpp>
#include <tenon/io/checkpoint.hpp>
#include <tenon/io/file.hpp>
#include <tenon/io/safetensors.hpp>
#include <tenon/io/tensors.hpp>
#include <tenon/tenon.hpp>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "tests/errors/golden.h"
#include "tests/errors/tables.h"
#include "tools/tenon/look/machine_file.h"

namespace tenon::errors {
namespace {

namespace fs = std::filesystem;
using io::Status;

struct Folder {
  Folder() {
    char name[] = "/tmp/tenon-errors-XXXXXX";
    path = fs::canonical(mkdtemp(name)).string();
    call_it_dir(path);
  }
  ~Folder() {
    std::error_code ignored;
    chmod(path.c_str(), 0755);
    fs::remove_all(path, ignored);
  }
  std::string operator/(const char* name) const { return path + "/" + name; }
  std::string put(const char* name, const std::string& bytes) const {
    std::ofstream(*this / name, std::ios::binary) << bytes;
    return *this / name;
  }
  std::string path;
};

// `body` as a user without special rights (root would be refused nothing); its error comes back through a pipe.
Said unprivileged(const std::function<Status()>& body) {
  int ends[2];
  if (pipe(ends)) return {};
  const pid_t child = fork();
  if (child == 0) {
    if (geteuid() == 0 && (setgid(65534) || setuid(65534))) _exit(1);
    const Status s = body();
    for (const std::string& part : {s.id_text(), s.what, s.where, s.why, s.fix})
      if (write(ends[1], part.c_str(), part.size() + 1) < 0) _exit(1);
    _exit(0);
  }
  close(ends[1]);
  std::string all;
  char piece[512];
  for (ssize_t n; (n = read(ends[0], piece, sizeof piece)) > 0;) all.append(piece, static_cast<size_t>(n));
  close(ends[0]);
  waitpid(child, nullptr, 0);
  std::vector<std::string> parts(1);
  for (char c : all) {
    if (c) parts.back().push_back(c);
    else parts.emplace_back();
  }
  return parts.size() < 5 ? Said{} : Said{parts[0], parts[1], parts[2], parts[3], parts[4]};
}

Said written_without_a_synced_folder() {
  Folder f;
  chmod(f.path.c_str(), 0333);  // a name can be made there, but the folder cannot be opened
  return unprivileged([&] { return io::write_file(f / "x", "new"); });
}

Said shortened_while_read() {
  Folder f;
  auto file = io::File::open(f.put("x", "12345678"));
  fs::resize_file(f / "x", 3);
  char out[8];
  return said(file->read_at(0, out, 8));
}

// ---- safetensors -----------------------------------------------------------------------------------------------------

std::string image(const std::string& json, const std::string& data = "") {
  std::string out(8, '\0');
  for (size_t i = 0; i < 8; ++i) out[i] = static_cast<char>(uint64_t{json.size()} >> (8 * i));
  return out + json + data;
}
std::string one(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return R"({"t":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}";
}
Said parse(const std::string& bytes) { return said(io::parse_safetensors(bytes, "m.safetensors")); }
Said save(const std::vector<io::SafetensorsView>& tensors) {
  Folder f;
  return said(io::write_safetensors(f / "m.safetensors", tensors));
}

// ---- checkpoints -----------------------------------------------------------------------------------------------------

struct Checkpoint : Folder {
  Checkpoint() {
    const float w = 1;
    io::TrainingState state;
    state.step = 7;
    at = *io::save_checkpoint(path, state, {{"w", TN_F32, {1}, &w, 4}}, {});
  }
  std::string at;
};

// ---- IDX ---------------------------------------------------------------------------------------------------------------

std::string idx(uint8_t type, const std::vector<uint32_t>& dims, const std::string& data) {
  std::string out{0, 0, static_cast<char>(type), static_cast<char>(dims.size())};
  for (uint32_t d : dims)
    for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(d >> shift);
  return out + data;
}
const std::string kImages = idx(8, {3, 2, 2}, "abcdefghijkl"), kLabels = idx(8, {3}, std::string("\x02\x00\x01", 3));

Said read_idx(const std::string& bytes) {
  Folder f;
  return said(data::load_idx(f.put("f.idx", bytes)));
}
Said pair(const std::string& images, const std::string& labels) {
  Folder f;
  return said(data::load_idx_pair(f.put("images", images), f.put("labels", labels)));
}
std::shared_ptr<const data::Dataset> three() { return *data::MemoryDataset::create({1, 1, 1}, {1, 2, 3}, {0, 1, 2}); }
Said next(const data::LoaderOptions& options) {
  data::DataLoader loader(three(), options);
  data::Batch batch;
  return said(loader.next(batch));
}

Table file_table() {
  return {
      {"TN-FILE-001", "to read", [] { Folder f; return said(io::read_file(f / "none", 100)); }},
      {"TN-FILE-001", "with a NUL byte", [] { return said(io::read_file(std::string("a\0b", 3), 100)); }},
      {"TN-FILE-001", "of the C++ API", [] { Folder f; return thrown([&] { load_safetensors(f / "none"); }); }},
      {"TN-FILE-002", "", [] {
         Folder f;
         chmod(f.path.c_str(), 0755);
         chmod(f.put("x", "1").c_str(), 0);
         return unprivileged([&] { return Status(io::File::open(f / "x").status()); });
       }},
      {"TN-FILE-003", "a folder", [] { Folder f; return said(io::read_file(f.path, 100)); }},
      {"TN-FILE-003", "a pipe", [] { Folder f; mkfifo((f / "pipe").c_str(), 0600); return said(io::read_file(f / "pipe", 100)); }},
      {"TN-FILE-003", "a link", [] { Folder f; fs::create_symlink("x", f / "link"); return said(io::read_file(f / "link", 100, false)); }},
      {"TN-FILE-003", "to write", [] { Folder f; return said(io::write_file(f.path, "x")); }},
      {"TN-FILE-004", "", shortened_while_read},
      {"TN-FILE-005", "", [] { Folder f; return said(io::read_file(f.put("x", "12345"), 4)); }},
      {"TN-FILE-006", "no name", [] { return said(io::write_file("folder/", "x")); }},
      {"TN-FILE-006", "in a checkpoint", [] {
         Folder f;
         auto writer = io::CheckpointWriter::begin(f.path, 1);
         return said(writer->add_text("../x", "text"));
       }},
      {"TN-FILE-007", "", [] { Folder f; auto file = io::AtomicFile::create(f / "x"); return said(file->reserve(UINT64_MAX)); }},
      {"TN-FILE-008", "", written_without_a_synced_folder},
      {"TN-FILE-010", "no length", [] { return parse("1234"); }},
      {"TN-FILE-010", "no header", [] { return parse(image("{}").substr(0, 9)); }},
      {"TN-FILE-011", "", [] { return parse(std::string("PK\3\4\x14\0\0\0", 8)); }},
      {"TN-FILE-012", "no JSON", [] { return parse(image("{\"t\":")); }},
      {"TN-FILE-012", "no object", [] { return parse(image("[]")); }},
      {"TN-FILE-012", "a negative size", [] { return parse(image(one("F32", "[-1]", "[0,4]"))); }},
      {"TN-FILE-012", "an unknown key", [] { return parse(image(R"({"t":{"dtype":"F32","shape":[],"data_offsets":[0,4],"x":1}})")); }},
      {"TN-FILE-013", "", [] { return parse(image(R"({"t":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"t":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})")); }},
      {"TN-FILE-014", "", [] { return parse(image(one("FLOAT", "[1]", "[0,4]"), "1234")); }},
      {"TN-FILE-015", "", [] { return parse(image(one("F32", "[2]", "[0,4]"), "1234")); }},
      {"TN-FILE-015", "of a buffer", [] {
         Folder f;
         auto file = io::SafetensorsFile::open(f.put("m", image(one("F32", "[1]", "[0,4]"), "1234")));
         char out[3];
         return said(file->read(file->tensors()[0], out, 3));
       }},
      {"TN-FILE-016", "a hole", [] { return parse(image(one("F32", "[1]", "[4,8]"), "12345678")); }},
      {"TN-FILE-016", "an overlap", [] {
         return parse(image(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})", "123"));
       }},
      {"TN-FILE-017", "missing", [] { return parse(image(one("F32", "[1]", "[0,4]"), "12")); }},
      {"TN-FILE-017", "left over", [] { return parse(image(one("F32", "[1]", "[0,4]"), "123456")); }},
      {"TN-FILE-018", "", [] { Folder f; return thrown([&] { load_safetensors(f.put("m", image(one("C64", "[1]", "[0,8]"), "12345678"))); }); }},
      {"TN-FILE-019", "two of a name", [] { const float v = 1; return save({{"w", TN_F32, {1}, &v, 4}, {"w", TN_F32, {1}, &v, 4}}); }},
      {"TN-FILE-019", "the reserved name", [] { const float v = 1; return save({{"__metadata__", TN_F32, {1}, &v, 4}}); }},
      {"TN-FILE-019", "bytes", [] { const float v = 1; return save({{"w", TN_F32, {2}, &v, 4}}); }},
      {"TN-FILE-021", "missing", [] { Checkpoint c; fs::remove(c.at + "/manifest.json"); return said(io::verify_checkpoint(c.at)); }},
      {"TN-FILE-021", "damaged", [] { Checkpoint c; std::ofstream(c.at + "/manifest.json") << "[]"; return said(io::verify_checkpoint(c.at)); }},
      {"TN-FILE-022", "", [] { Checkpoint c; std::ofstream(c.at + "/state.json", std::ios::app) << " "; return said(io::verify_checkpoint(c.at)); }},
      {"TN-FILE-023", "", [] { Checkpoint c; fs::remove(c.at + "/model.safetensors"); return said(io::verify_checkpoint(c.at)); }},
      {"TN-FILE-024", "", [] { return said(io::parse_state("{\"version\": 1}", "state.json")); }},
      {"TN-FILE-031", "no JSON", [] { return said(cli::parse_machine("{", "lab.json")); }},
      {"TN-FILE-031", "another format", [] { return said(cli::parse_machine("{\"format\": \"other\"}", "lab.json")); }},
      {"TN-FILE-031", "a key twice", [] { return said(cli::parse_machine("{\"a\": 1, \"a\": 2}", "lab.json")); }},
      {"TN-FILE-032", "", [] { return said(cli::parse_machine("{\"format\": \"tenon-machine\", \"version\": 2}", "lab.json")); }},
      {"TN-FILE-033", "", [] { return said(cli::parse_machine("{\"format\": \"tenon-machine\", \"version\": 1, \"tenon\": 3}", "lab.json")); }},
      {"TN-FILE-024", "of another version", [] { return said(io::parse_state("{\"version\": 2}", "state.json")); }},
  };
}

Table data_table() {
  return {
      {"TN-DATA-001", "", [] { return read_idx("PK\3\4 zip"); }},
      {"TN-DATA-002", "", [] { return read_idx(idx(0x0A, {1}, "x")); }},
      {"TN-DATA-003", "", [] { return read_idx(std::string("\0\0\x08\xff", 4) + std::string(2000, '\0')); }},
      {"TN-DATA-004", "empty", [] { return read_idx(""); }},
      {"TN-DATA-004", "cut short", [] { return read_idx(std::string("\0\0\x08\3\0\0\0\1\0\0", 10)); }},
      {"TN-DATA-005", "", [] { return read_idx(idx(8, {0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF}, "x")); }},
      {"TN-DATA-006", "", [] { return read_idx(kImages.substr(0, 20)); }},
      {"TN-DATA-007", "", [] { return read_idx(kImages + "x"); }},
      {"TN-DATA-008", "", [] { return read_idx("\x1f\x8b\x08"); }},
      {"TN-DATA-009", "images", [] { return pair(kLabels, kLabels); }},
      {"TN-DATA-009", "labels", [] { return pair(kImages, kImages); }},
      {"TN-DATA-010", "of a pair", [] { return pair(kImages, idx(8, {2}, "\1\1")); }},
      {"TN-DATA-010", "in memory", [] { return said(data::MemoryDataset::create({1, 1, 2}, {1, 2, 3}, {0, 1})); }},
      {"TN-DATA-011", "", [] { Folder f; f.put("other.txt", "x"); return said(data::load_idx_dataset(f.path)); }},
      {"TN-DATA-012", "", [] { return said(data::MemoryDataset::create({1, 1, 1}, {1, 2, 3}, {0, 5, 1}, 3)); }},
      {"TN-DATA-013", "of a file", [] { return pair(idx(8, {0, 2, 2}, ""), idx(8, {0}, "")); }},
      {"TN-DATA-013", "in memory", [] { return said(data::MemoryDataset::create({1, 1, 1}, {}, {})); }},
      {"TN-DATA-014", "", [] { const uint64_t far = 100; uint8_t p; int64_t l; return said(three()->read({&far, 1}, &p, &l)); }},
      {"TN-DATA-015", "", [] {
         Folder f;
         return said(data::StreamingIdxDataset::open(f.put("images.gz", "\x1f\x8b\x08"), f.put("labels", kLabels)));
       }},
      {"TN-DATA-016", "a batch", [] { return next({.batch = 0}); }},
      {"TN-DATA-016", "a rank", [] { return next({.rank = 2, .world = 2}); }},
      {"TN-DATA-016", "a state", [] { data::DataLoader loader(three(), {}); return said(loader.restore({0, 0, 100})); }},
      {"TN-DATA-016", "a deviation", [] { data::LoaderOptions o; o.normalise.mean = {0}, o.normalise.stddev = {0}; return next(o); }},
  };
}

}  // namespace

Table file_cases() { return file_table(); }
Table data_cases() { return data_table(); }

}  // namespace tenon::errors
