// Refusals before any code of a plugin runs: files, targets, ABI ranges, instruction sets, duplicates.
#include "loader/check.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <map>

#include "tests/loader/temp_folder.h"

namespace fs = std::filesystem;
using namespace tenon::loader;

namespace {

ColdResult cold_of(uint32_t abi_min, uint32_t abi_max) {
  ColdResult r;
  r.status = ColdStatus::Ok;
  r.kind = kHostFileKind;
  r.cold = {sizeof(tn_cold), 1, abi_min, abi_max, "org.example.x", "1.0.0", "x86_64-linux-gnu", {0, 0, 0, 0}, 0, 0, {""}};
  return r;
}

HostFacts host() { return {"x86_64-linux-gnu", TN_ABI(1, 0), TN_ABI(1, 4), {0x3F, 0, 0, 0}}; }

Code code_of(const std::string& path) {
  MappedFile file;
  const auto refused = file.open(path);
  return refused ? refused->code : Code::InUse;
}

}  // namespace

TEST(Verdicts, have_numbers_that_never_change) {
  const std::map<uint32_t, std::string> frozen = {
      {0, "in-use"}, {1, "not-a-plugin"}, {2, "not-regular-file"}, {3, "unreadable"}, {4, "empty-file"}, {5, "bad-elf"},
      {6, "wrong-target"}, {7, "abi-range"}, {8, "cpu-need"}, {9, "missing-dependency"}, {10, "open-failed"},
      {11, "crashed-in-probe"}, {12, "probe-timeout"}, {13, "no-symbol"}, {14, "query-refused"}, {15, "duplicate-of"},
      {16, "untrusted"}, {17, "bad-table"}, {18, "open-unavailable"}, {19, "open-error"}, {20, "not-allowed"},
      {21, "bad-record"}, {22, "unloaded"}, {23, "not-found"}, {24, "relative-path"}, {25, "probe-failed"},
      {26, "cannot-isolate"}};
  for (const auto& [code, name] : frozen) {
    const Verdict v = verdict(static_cast<Code>(code));
    EXPECT_EQ(code_name(v.code), name);
    EXPECT_NE(std::string(stage_name(v.stage)), "");
    EXPECT_NE(std::string(code_title(v.code)), "");
    EXPECT_EQ(status_of(v.code) == TN_OK, code == 0);
    EXPECT_EQ(std::string(advice(v.code)).empty(), code == 0);
  }
}

TEST(MappedFile, tells_each_kind_of_unfit_file_apart) {
  TempFolder t;
  fs::create_directory(t / "folder.so");
  ASSERT_EQ(mkfifo((t / "pipe.so").c_str(), 0600), 0);
  EXPECT_EQ(code_of(t / "absent.so"), Code::NotFound);
  EXPECT_EQ(code_of(t.write("empty.so", "")), Code::EmptyFile);
  EXPECT_EQ(code_of(t / "folder.so"), Code::NotRegularFile);
  EXPECT_EQ(code_of(t / "pipe.so"), Code::NotRegularFile);
  EXPECT_EQ(code_of("/dev/zero"), Code::NotRegularFile);
  EXPECT_EQ(code_of(t.write("text.so", "hello")), Code::InUse);  // readable; the cold reader judges its content
}

TEST(MappedFile, refuses_a_file_whose_mode_forbids_reading) {
  TempFolder t;
  const std::string path = t.write("shut.so", "x");
  chmod(path.c_str(), 0);
  EXPECT_EQ(as_unprivileged([&] { return static_cast<int>(code_of(path)); }), static_cast<int>(Code::Unreadable));
}

TEST(MappedFile, has_one_identity_for_links_and_another_for_copies) {
  TempFolder t;
  const std::string path = t.write("a.so", "x");
  t.write("b.so", "x");
  fs::create_symlink("a.so", t / "soft.so");
  fs::create_hard_link(path, t / "hard.so");
  MappedFile a, b, soft, hard;
  ASSERT_FALSE(a.open(path) || b.open(t / "b.so") || soft.open(t / "soft.so") || hard.open(t / "hard.so"));
  EXPECT_EQ(a.identity(), soft.identity());
  EXPECT_EQ(a.identity(), hard.identity());
  EXPECT_FALSE(a.identity() == b.identity());
}

// All pairs of ranges over two majors and three minors, against counting.
TEST(CommonAbi, is_the_highest_version_in_both_ranges) {
  std::vector<uint32_t> versions;
  for (uint32_t major : {1u, 2u}) for (uint32_t minor : {0u, 1u, 2u}) versions.push_back(TN_ABI(major, minor));
  for (uint32_t a : versions) for (uint32_t b : versions) for (uint32_t c : versions) for (uint32_t d : versions) {
    if (a > b || c > d) continue;
    std::optional<uint32_t> want;
    for (uint32_t v : versions) if (v >= a && v <= b && v >= c && v <= d) want = v;
    ASSERT_EQ(common_abi(a, b, c, d), want) << abi_text(a) << ".." << abi_text(b) << " and " << abi_text(c) << ".." << abi_text(d);
  }
}

TEST(ColdCheck, takes_plugins_of_an_older_and_of_a_newer_minor) {
  EXPECT_FALSE(check_cold(cold_of(TN_ABI(1, 0), TN_ABI(1, 3)), host()));
  EXPECT_FALSE(check_cold(cold_of(TN_ABI(1, 2), TN_ABI(1, 9)), host()));
  EXPECT_FALSE(check_cold(cold_of(TN_ABI(0, 9), TN_ABI(2, 0)), host()));
}

TEST(ColdCheck, refuses_ranges_that_do_not_meet_and_names_both) {
  const auto v = check_cold(cold_of(TN_ABI(2, 0), TN_ABI(2, 1)), host());
  ASSERT_TRUE(v);
  EXPECT_EQ(v->code, Code::AbiRange);
  EXPECT_EQ(v->cause, "plugin [2.0, 2.1], host [1.0, 1.4]");
  EXPECT_EQ(check_cold(cold_of(TN_ABI(0, 1), TN_ABI(0, 9)), host())->code, Code::AbiRange);
}

TEST(ColdCheck, refuses_another_target_and_names_both) {
  ColdResult r = cold_of(TN_ABI(1, 0), TN_ABI(1, 0));
  std::strcpy(r.cold.target, "aarch64-linux-gnu");
  const auto v = check_cold(r, host());
  EXPECT_EQ(v->code, Code::WrongTarget);
  EXPECT_EQ(v->cause, "the plugin says aarch64-linux-gnu, this host is x86_64-linux-gnu");
}

TEST(ColdCheck, refuses_instruction_sets_the_host_lacks_and_names_them) {
  ColdResult r = cold_of(TN_ABI(1, 0), TN_ABI(1, 0));
  r.cold.cpu_need[0] = 1 << 5 | 1 << 7;
  const auto v = check_cold(r, host());
  ASSERT_TRUE(v);
  EXPECT_EQ(v->code, Code::CpuNeed);
  EXPECT_EQ(v->cause, "needs avx512f; this processor and system offer sse4_2 popcnt avx f16c fma avx2");
}

TEST(ColdCheck, refuses_needs_that_this_host_does_not_know) {
  ColdResult r = cold_of(TN_ABI(1, 0), TN_ABI(1, 0));
  r.cold.cpu_need[3] = 1;
  EXPECT_EQ(check_cold(r, host())->code, Code::CpuNeed);
  EXPECT_NE(check_cold(r, host())->cause.find("word3.bit0"), std::string::npos);
}

TEST(Duplicates, are_the_same_file_a_copy_or_the_same_id) {
  ColdResult r = cold_of(TN_ABI(1, 0), TN_ABI(1, 0));
  r.build_id = "abc";
  EXPECT_EQ(check_identity({1, 2}, {{"/a", "x", "", {1, 2}, {}}})->cause, "the same file as /a");
  EXPECT_FALSE(check_identity({1, 2}, {{"/a", "x", "", {2, 2}, {}}}));
  EXPECT_EQ(check_duplicate(r, {{"/a", "other", "abc", {}, {}}})->cause, "a copy of /a, build id abc");
  EXPECT_EQ(check_duplicate(r, {{"/a", "org.example.x", "def", {}, {}}})->cause, "the id org.example.x is taken by /a");
  EXPECT_EQ(check_duplicate(r, {{"", "org.example.x", "", {}, {}}})->cause, "the id org.example.x is taken by a linked plugin");
  EXPECT_FALSE(check_duplicate(r, {{"/a", "other", "def", {}, {}}}));
}

TEST(Duplicates, are_not_two_files_without_build_id) {
  EXPECT_FALSE(check_duplicate(cold_of(TN_ABI(1, 0), TN_ABI(1, 0)), {{"/a", "other", "", {}, {}}}));
}

// AVX2 and AVX-512 processor, whose system saves what `xcr0` says.
TEST(CpuBits, count_only_where_the_system_saves_the_registers) {
  X86Leaves r;
  r.leaf1_ecx = r.leaf7_ebx = r.leaf7_ecx = r.leaf7_edx = r.leaf7_1_eax = 0xFFFFFFFF;
  r.xcr0 = 0;
  EXPECT_EQ(cpu_bits_text({x86_bits(r), 0, 0, 0}), "sse4_2 popcnt bmi2");
  r.xcr0 = 0x7;
  EXPECT_EQ(cpu_bits_text({x86_bits(r), 0, 0, 0}), "sse4_2 popcnt avx f16c fma avx2 bmi2 avx_vnni");
  r.xcr0 = 0xE7;
  EXPECT_NE(cpu_bits_text({x86_bits(r), 0, 0, 0}).find("avx512fp16"), std::string::npos);
  EXPECT_EQ(cpu_bits_text({x86_bits(r), 0, 0, 0}).find("amx"), std::string::npos);
  r.xcr0 = 0x600E7;
  EXPECT_NE(cpu_bits_text({x86_bits(r), 0, 0, 0}).find("amx_tile amx_bf16 amx_int8"), std::string::npos);
}

TEST(CpuBits, of_an_old_processor_are_none) { EXPECT_EQ(cpu_bits_text({x86_bits({}), 0, 0, 0}), "none"); }

TEST(CpuBits, of_arm_come_from_the_auxiliary_vector) {
  EXPECT_EQ(cpu_bits_text({0, arm_bits(1u << 1, 0), 0, 0}), "neon");
  EXPECT_EQ(cpu_bits_text({0, arm_bits(1u << 1 | 1u << 9 | 1u << 10 | 1u << 20, 1u << 13), 0, 0}), "neon fp16 dotprod i8mm");
}

#if defined(__x86_64__)
TEST(CpuBits, of_this_machine_agree_with_the_compilers_own_check) {
  const uint64_t have = host_cpu_bits()[0];
  EXPECT_EQ((have >> 5 & 1) != 0, __builtin_cpu_supports("avx2") != 0);
  EXPECT_EQ((have >> 7 & 1) != 0, __builtin_cpu_supports("avx512f") != 0);
  EXPECT_EQ((have >> 12 & 1) != 0, __builtin_cpu_supports("avx512bf16") != 0);
}
#endif
