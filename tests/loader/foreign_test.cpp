// Plugins of other systems: the same record, read from PE and Mach-O files, and one true verdict: wrong-target.
#include "tests/loader/foreign_files.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>

#include "loader/check.h"
#include "tests/loader/temp_folder.h"

using namespace tenon::loader;

namespace {

// Exactly as large as the file, on the heap: a read outside is an error under the address sanitizer.
ColdResult read(const FileBytes& bytes) {
  const auto copy = std::make_unique<std::byte[]>(bytes.size());
  std::copy(bytes.begin(), bytes.end(), copy.get());
  return read_cold({copy.get(), bytes.size()});
}

FileBytes shorter(const FileBytes& bytes, size_t n) { return {bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(n)}; }

void expect(const ColdResult& r, ColdStatus status, const std::string& words) {
  EXPECT_EQ(r.status, status) << r.cause;
  EXPECT_NE(r.cause.find(words), std::string::npos) << "wanted: " << words << "\nfound: " << r.cause;
}

void expect_record(const ColdResult& r, FileKind kind, const char* machine, const char* target) {
  ASSERT_EQ(r.status, ColdStatus::Ok) << r.cause;
  EXPECT_EQ(r.kind, kind);
  EXPECT_EQ(r.machine, machine);
  EXPECT_STREQ(r.cold.target, target);
  EXPECT_STREQ(r.cold.id, "test.foreign");
  EXPECT_STREQ(r.cold.version, "1.2.3");
  EXPECT_EQ(r.cold.abi_max, TN_ABI_CURRENT);
  EXPECT_STREQ(r.cold.need[0], "driver.dll");
}

// Every byte damaged, every length, and noise: an answer, and a cause exactly when it is not Ok.
void damage(const FileBytes& whole, uint32_t seed) {
  const auto check = [](const FileBytes& bytes) {
    const ColdResult r = read(bytes);
    ASSERT_EQ(r.status == ColdStatus::Ok, r.cause.empty());
  };
  for (size_t n = 0; n < std::min<size_t>(whole.size(), 4096); ++n) {
    check(shorter(whole, n));
    auto bytes = whole;
    for (int value : {0x00, 0x7F, 0x80, 0xFF}) {
      bytes[n] = static_cast<std::byte>(value);
      check(bytes);
    }
  }
  std::mt19937 random(seed);
  for (int round = 0; round < 10000; ++round) {
    auto bytes = whole;
    if (round % 5 == 0) bytes.resize(random() % bytes.size());
    for (int hits = 1 + static_cast<int>(random() % 6); hits > 0 && !bytes.empty(); --hits) {
      bytes[random() % std::min<size_t>(bytes.size(), 1024)] = static_cast<std::byte>(random() % 4 == 0 ? 0xFF : random());
    }
    check(bytes);
  }
}

HostFacts host() {
  HostFacts facts;
  facts.target = "x86_64-linux-gnu";
  facts.abi_min = facts.abi_max = TN_ABI_CURRENT;
  return facts;
}

}  // namespace

TEST(FileKind, is_told_by_the_first_bytes) {
  EXPECT_EQ(file_kind(bytes_of(FIXTURE_DIR "/good.so")), FileKind::Elf);
  EXPECT_EQ(file_kind(pe_file()), FileKind::Pe);
  EXPECT_EQ(file_kind(macho_file()), FileKind::MachO);
  EXPECT_EQ(file_kind(universal_file({{0x01000007, macho_file()}})), FileKind::MachO);
  EXPECT_EQ(file_kind(universal_file({{0x01000007, macho_file()}}, true)), FileKind::MachO);
  EXPECT_EQ(file_kind({}), FileKind::Unknown);
  EXPECT_EQ(file_kind(note_of(foreign_record("x"))), FileKind::Unknown);
  EXPECT_EQ(read(bytes_of(FIXTURE_DIR "/good.so")).status, ColdStatus::Ok);
}

TEST(PeReader, reads_the_record_and_the_build_id) {
  const ColdResult r = read(pe_file());
  expect_record(r, FileKind::Pe, "x86_64", "x86_64-windows-gnu");
  EXPECT_EQ(r.build_id, "a0a1a2a3a4a5a6a7a8a9aaabacadaeaf");
}

TEST(PeReader, reads_a_library_without_debug_record_and_one_for_another_processor) {
  PeOptions o;
  o.guid = false;
  o.machine = 0xAA64;
  o.notes = note_of(foreign_record("aarch64-windows-msvc"));
  const ColdResult r = read(pe_file(o));
  expect_record(r, FileKind::Pe, "aarch64", "aarch64-windows-msvc");
  EXPECT_EQ(r.build_id, "");
}

TEST(PeReader, tells_what_is_no_plugin_library) {
  PeOptions program, narrow, other, rom;
  program.flags = 0x0022;
  narrow.width = 0x10B;
  narrow.machine = 0x014C;
  other.section = ".tenonx";
  rom.width = 0x107;
  expect(read(pe_file(program)), ColdStatus::NotALibrary, "a Windows (PE) file for x86_64: no library: the DLL flag is not set");
  expect(read(pe_file(narrow)), ColdStatus::WrongTarget, "a Windows (PE) file for i386: the file is 32-bit");
  expect(read(pe_file(other)), ColdStatus::NoRecord, "the library has no section .tenon with a record");
  expect(read(pe_file(rom)), ColdStatus::NotALibrary, "optional header 263, a 64-bit file has 523");
  FileBytes dos(64);
  put_name(&dos, 0, "MZ");
  expect(read(dos), ColdStatus::NotALibrary, "no PE header behind \"MZ\"");
}

TEST(PeReader, refuses_a_file_that_is_shorter_than_its_sections) {
  const auto whole = pe_file();
  for (size_t n = 2; n < whole.size(); n += n < 1024 ? 1 : 13) {
    const ColdResult r = read(shorter(whole, n));
    ASSERT_EQ(r.status, ColdStatus::NotALibrary) << n;
    ASSERT_EQ(r.kind, FileKind::Pe) << n;
  }
  expect(read(shorter(whole, whole.size() - 1)), ColdStatus::NotALibrary, "cut short: section 2 ends behind byte " + std::to_string(whole.size() - 1));
}

TEST(PeReader, survives_offsets_and_counts_at_the_limits) {
  using L = PeLayout;
  for (uint32_t value : {0u, 1u, 0x7FFFFFFFu, 0xFFFFFFFFu, 0xFFFFFFFCu}) {
    for (size_t at : {size_t{0x3C}, L::kSections + 80 + 16, L::kSections + 80 + 20, L::kOptional + 160, L::kOptional + 164}) {
      auto file = pe_file();
      put_at<uint32_t>(&file, at, value);
      const ColdResult r = read(file);
      EXPECT_EQ(r.status == ColdStatus::Ok, r.cause.empty()) << at << " " << value;
    }
  }
  auto many = pe_file();
  put_at<uint16_t>(&many, L::kCoff + 2, 0xFFFF);
  expect(read(many), ColdStatus::NotALibrary, "cut short");
}

TEST(PeReader, holds_records_to_the_same_rules_as_elf) {
  PeOptions o;
  tn_cold cold = foreign_record("x86_64-windows-gnu");
  cold.note_version = 2;
  o.notes = note_of(cold);
  expect(read(pe_file(o)), ColdStatus::BadRecord, "record version 2, this host reads 1");
  o.notes = note_of(foreign_record("x86_64-windows-gnu"));
  const FileBytes one = o.notes;
  o.notes.insert(o.notes.end(), one.begin(), one.end());
  expect(read(pe_file(o)), ColdStatus::BadRecord, "2 records in one file");
}

TEST(PeReader, answers_on_any_damaged_file) { damage(pe_file(), 20261130); }

TEST(MachOReader, reads_the_record_and_the_build_id_of_bundles_and_libraries) {
  for (uint32_t type : {6u, 8u}) {
    MachOOptions o;
    o.file_type = type;
    const ColdResult r = read(macho_file(o));
    expect_record(r, FileKind::MachO, "x86_64", "x86_64-macos");
    EXPECT_EQ(r.build_id, "b0b1b2b3b4b5b6b7b8b9babbbcbdbebf");
  }
}

TEST(MachOReader, tells_what_is_no_plugin_library) {
  MachOOptions object, other_section, other_segment, zero_filled;
  object.file_type = 1;
  other_section.section = "__const";
  other_segment.segment = "__DATA";
  zero_filled.section_type = 1;
  expect(read(macho_file(object)), ColdStatus::NotALibrary, "a macOS (Mach-O) file for x86_64: file type 1, a library has 6, a bundle 8");
  for (const MachOOptions& o : {other_section, other_segment, zero_filled}) {
    expect(read(macho_file(o)), ColdStatus::NoRecord, "the library has no section __TENON,__cold with a record");
  }
}

TEST(MachOReader, refuses_32_bit_files_and_the_other_byte_order_as_wrong_target) {
  auto file = macho_file();
  put_at<uint32_t>(&file, 0, 0xFEEDFACE);
  expect(read(file), ColdStatus::WrongTarget, "the file is 32-bit");
  for (uint32_t magic : {0xFEEDFACFu, 0xFEEDFACEu}) {
    put_big<uint32_t>(&file, 0, magic);
    expect(read(file), ColdStatus::WrongTarget, "the other byte order");
  }
}

TEST(MachOReader, refuses_a_file_that_is_shorter_than_its_segments) {
  const auto whole = macho_file();
  for (size_t n = 4; n < whole.size(); n += n < 1024 ? 1 : 13) {
    ASSERT_EQ(read(shorter(whole, n)).status, ColdStatus::NotALibrary) << n;
  }
  expect(read(shorter(whole, whole.size() - 1)), ColdStatus::NotALibrary, "cut short: the segment of load command 1 ends behind byte");
}

TEST(MachOReader, survives_sizes_and_counts_at_the_limits) {
  using L = MachOLayout;
  for (uint64_t value : {uint64_t{0}, uint64_t{1}, uint64_t{7}, uint64_t{0x7FFFFFFF}, uint64_t{0xFFFFFFFF}, UINT64_MAX, UINT64_MAX - 7, uint64_t{1} << 63}) {
    for (size_t at : {size_t{16}, size_t{20}, L::kText + 4, L::kTenon + 4, L::kTenon + 64, L::kSection + 48, L::kUuid + 4}) {
      auto file = macho_file();
      put_at<uint32_t>(&file, at, static_cast<uint32_t>(value));
      const ColdResult r = read(file);
      EXPECT_EQ(r.status == ColdStatus::Ok, r.cause.empty()) << at << " " << value;
    }
    for (size_t at : {L::kTenon + 40, L::kTenon + 48, L::kSection + 40}) {
      auto file = macho_file();
      put_at<uint64_t>(&file, at, value);
      const ColdResult r = read(file);
      EXPECT_EQ(r.status == ColdStatus::Ok, r.cause.empty()) << at << " " << value;
    }
  }
  auto endless = macho_file();
  put_at<uint32_t>(&endless, L::kText + 4, 0);
  expect(read(endless), ColdStatus::NotALibrary, "load command 0 does not fit into its table");
}

TEST(MachOReader, answers_on_any_damaged_file) {
  damage(macho_file(), 20261201);
  damage(universal_file({{0x0100000C, macho_file()}, {0x01000007, macho_file()}}), 20261202);
}

TEST(UniversalFile, gives_the_slice_of_this_processor_else_the_first) {
  MachOOptions arm;
  arm.cpu = 0x0100000C;
  arm.notes = note_of(foreign_record("aarch64-macos"));
  const bool host_is_arm = std::string(host_target()).starts_with("aarch64");
  for (bool wide : {false, true}) {
    const auto both = universal_file({{0x0100000C, macho_file(arm)}, {0x01000007, macho_file()}}, wide);
    EXPECT_STREQ(read(both).cold.target, host_is_arm ? "aarch64-macos" : "x86_64-macos") << read(both).cause;
    EXPECT_STREQ(read(universal_file({{0x0100000C, macho_file(arm)}}, wide)).cold.target, "aarch64-macos");
  }
}

TEST(UniversalFile, is_refused_when_its_table_or_slice_does_not_fit) {
  auto lost = universal_file({{0x01000007, macho_file()}});
  put_big<uint32_t>(&lost, 8 + 8, 0xFFFFFFF0);
  expect(read(lost), ColdStatus::NotALibrary, "cut short: the slice for x86_64 ends behind byte");
  auto none = universal_file({});
  expect(read(none), ColdStatus::NotALibrary, "0 slices");
  expect(read(shorter(universal_file({{0x01000007, macho_file()}}), 20)), ColdStatus::NotALibrary, "cut short: the table of 1 slices");
  auto nested = universal_file({{0x01000007, universal_file({{0x01000007, macho_file()}})}});
  expect(read(nested), ColdStatus::NotALibrary, "begins with");
}

TEST(UniversalFile, is_not_taken_for_a_java_class_or_the_other_way) {
  FileBytes java(64);
  put_big<uint32_t>(&java, 0, 0xCAFEBABE);
  put_big<uint32_t>(&java, 4, 61);  // minor 0, major 61: Java 17
  expect(read(java), ColdStatus::NotALibrary, "61 slices, a universal file has 1 to 44");
}

TEST(ColdCheck, calls_a_plugin_of_another_system_by_its_target) {
  EXPECT_EQ(check_cold(read(pe_file()), host())->code, Code::WrongTarget);
  EXPECT_EQ(check_cold(read(pe_file()), host())->cause, "a Windows (PE) library for x86_64-windows-gnu, this host takes ELF for x86_64-linux-gnu");
  EXPECT_EQ(check_cold(read(macho_file()), host())->code, Code::WrongTarget);
  EXPECT_EQ(check_cold(read(macho_file()), host())->cause, "a macOS (Mach-O) library for x86_64-macos, this host takes ELF for x86_64-linux-gnu");
}

TEST(ColdCheck, believes_the_file_more_than_its_record) {
  PeOptions o;
  o.notes = note_of(foreign_record("x86_64-linux-gnu"));
  EXPECT_EQ(check_cold(read(pe_file(o)), host())->code, Code::WrongTarget);
}

TEST(ColdCheck, says_of_a_foreign_library_without_record_that_it_is_no_plugin_and_of_a_damaged_one_that_it_is_cut_short) {
  PeOptions o;
  o.section = ".rsrc";
  EXPECT_EQ(check_cold(read(pe_file(o)), host())->code, Code::NotAPlugin);
  EXPECT_EQ(check_cold(read(shorter(pe_file(), 1000)), host())->code, Code::BadElf);
}

// What real tools make; each is built when its tools are on this machine.
TEST(ForeignTools, windows_library_of_mingw) {
  if (std::string(PE_FIXTURE).empty()) GTEST_SKIP() << "no x86_64-w64-mingw32-gcc here (Debian: gcc-mingw-w64-x86-64-win32), so no DLL was built";
  const ColdResult r = read(bytes_of(PE_FIXTURE));
  expect_record(r, FileKind::Pe, "x86_64", "x86_64-windows-gnu");
  EXPECT_EQ(r.build_id.size(), 32u);
  EXPECT_EQ(check_cold(r, host())->code, Code::WrongTarget);
}

TEST(ForeignTools, macos_libraries_of_clang) {
  if (std::string(MACHO_FIXTURE).empty()) GTEST_SKIP() << "no clang with ld64.lld here (Debian: clang lld), so no Mach-O library was built";
  const ColdResult r = read(bytes_of(MACHO_FIXTURE));
  expect_record(r, FileKind::MachO, "x86_64", "x86_64-macos");
  EXPECT_EQ(r.build_id.size(), 32u);
  const auto universal = universal_file({{0x0100000C, bytes_of(MACHO_ARM_FIXTURE)}, {0x01000007, bytes_of(MACHO_FIXTURE)}});
  EXPECT_EQ(read(bytes_of(MACHO_ARM_FIXTURE)).machine, "aarch64");
  EXPECT_EQ(read(universal).status, ColdStatus::Ok);
}
