// Runs every target without a fuzzing engine: the seeds, each cut at every length, and N random changes of them.
//   fuzz_replay [N]            N per target, 20000 unless given
//   fuzz_replay FOLDER TARGET  the files of a folder (a corpus, or a crash found elsewhere)
//   fuzz_replay --write FOLDER writes the seeds, FOLDER/TARGET/n, for an engine to start from
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "targets.h"

using tenon::fuzz::Target;

namespace {

const Target* const kTargets[] = {&tenon::fuzz::kIdx, &tenon::fuzz::kSafetensors, &tenon::fuzz::kToml, &tenon::fuzz::kJson, &tenon::fuzz::kMachine};

void run(const Target& target, const std::string& bytes) { target.run(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()); }

void change(std::string& bytes, std::mt19937_64& random, const std::vector<std::string>& seeds) {
  static const char* const kTokens[] = {"{", "}", "[", "]", "\"", ":", ",", "-1", "1e999", "18446744073709551615", "\xff", "null", "\n", "=", "[[", "'''"};
  const size_t at = bytes.empty() ? 0 : random() % bytes.size();
  switch (random() % 6) {
    case 0: if (!bytes.empty()) bytes[at] = static_cast<char>(bytes[at] ^ (1 << random() % 8)); break;
    case 1: if (!bytes.empty()) bytes[at] = static_cast<char>(random()); break;
    case 2: bytes.erase(at, random() % 8); break;
    case 3: bytes.insert(at, kTokens[random() % std::size(kTokens)]); break;
    case 4: bytes.insert(at, bytes.substr(at, random() % 32)); break;
    default: bytes = bytes.substr(0, at) + seeds[random() % seeds.size()].substr(0, random() % 64); break;
  }
}

size_t mutate(const Target& target, size_t count) {
  const std::vector<std::string> seeds = target.seeds();
  std::mt19937_64 random(1);  // the same inputs every time
  size_t runs = 0;
  for (const std::string& seed : seeds)
    for (size_t n = 0; n <= seed.size(); ++n, ++runs) run(target, seed.substr(0, n));
  for (size_t i = 0; i < count; ++i, ++runs) {
    std::string bytes = seeds[random() % seeds.size()];
    for (size_t k = 1 + random() % 4; k > 0; --k) change(bytes, random, seeds);
    run(target, bytes);
  }
  return runs;
}

int replay(const std::string& folder, const std::string& name) {
  for (const Target* target : kTargets) {
    if (name != target->name) continue;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      std::ifstream in(entry.path(), std::ios::binary);
      run(*target, {std::istreambuf_iterator<char>(in), {}});
    }
    return 0;
  }
  std::fprintf(stderr, "no target %s; there are idx, safetensors, toml, json, machine\n", name.c_str());
  return 2;
}

int write(const std::string& folder) {
  for (const Target* target : kTargets) {
    std::filesystem::create_directories(folder + "/" + target->name);
    int n = 0;
    for (const std::string& seed : target->seeds()) std::ofstream(folder + "/" + target->name + "/" + std::to_string(n++), std::ios::binary) << seed;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::strcmp(argv[1], "--write") == 0) return write(argv[2]);
  if (argc == 3) return replay(argv[1], argv[2]);
  const size_t count = argc == 2 ? std::strtoull(argv[1], nullptr, 10) : 20000;
  for (const Target* target : kTargets) std::printf("%s: %zu inputs\n", target->name, mutate(*target, count));
}
