// The cold reader on sound files, on damaged ones and on noise: always an answer, never a step outside the bytes.
#include "loader/cold/elf.h"

#include <elf.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <string_view>

#include "tests/loader/temp_folder.h"

using namespace tenon::loader;

namespace {

std::vector<std::byte> good() { return bytes_of(FIXTURE_DIR "/good.so"); }

// Exactly as large as the file, on the heap: a read outside is an error under the address sanitizer.
ColdResult read(const std::vector<std::byte>& bytes) {
  const auto copy = std::make_unique<std::byte[]>(bytes.size());
  std::copy(bytes.begin(), bytes.end(), copy.get());
  return read_cold_elf({copy.get(), bytes.size()});
}

template <class T>
void put(std::vector<std::byte>* bytes, size_t offset, T value) {
  std::memcpy(bytes->data() + offset, &value, sizeof value);
}

// Where the record lies in the file: behind the only "Tenon.abi".
size_t record_offset(const std::vector<std::byte>& bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return text.find(std::string_view(TN_NOTE_NAME "\0\0\0", 12)) + 12;
}

ColdResult with_record(void (*change)(tn_cold*)) {
  auto bytes = good();
  tn_cold cold;
  const size_t at = record_offset(bytes);
  std::memcpy(&cold, bytes.data() + at, sizeof cold);
  change(&cold);
  put(&bytes, at, cold);
  return read(bytes);
}

}  // namespace

TEST(ColdReader, reads_every_field_of_a_sound_plugin) {
  const ColdResult r = read(good());
  ASSERT_EQ(r.status, ColdStatus::Ok) << r.cause;
  EXPECT_STREQ(r.cold.id, "test.good");
  EXPECT_STREQ(r.cold.version, "1.2.3");
  EXPECT_STREQ(r.cold.target, host_target());
  EXPECT_EQ(r.cold.abi_min, TN_ABI_CURRENT);
  EXPECT_EQ(r.cold.abi_max, TN_ABI_CURRENT);
  EXPECT_EQ(r.cold.flags, uint32_t{TN_COLD_UNLOADABLE});
  ASSERT_EQ(r.cold.n_need, 1u);
  EXPECT_STREQ(r.cold.need[0], "libdriver.so.7");
  EXPECT_EQ(r.build_id.size(), 40u);
  EXPECT_EQ(r.build_id.find_first_not_of("0123456789abcdef"), std::string::npos);
}

TEST(ColdReader, says_of_a_library_without_a_record_that_it_is_no_plugin) {
  const ColdResult r = read(bytes_of(FIXTURE_DIR "/no_record.so"));
  EXPECT_EQ(r.status, ColdStatus::NoRecord);
  EXPECT_EQ(r.build_id.size(), 40u);
}

TEST(ColdReader, quotes_the_first_bytes_of_a_text_file) {
  const std::string text = "hello, I am no library\n";
  const auto* data = reinterpret_cast<const std::byte*>(text.data());
  const ColdResult r = read_cold_elf({data, text.size()});
  EXPECT_EQ(r.status, ColdStatus::NotALibrary);
  EXPECT_NE(r.cause.find("\"hell\""), std::string::npos) << r.cause;
}

TEST(ColdReader, never_shows_control_characters_of_a_file) {
  const std::string text = "\x1b[2J";
  const ColdResult r = read_cold_elf({reinterpret_cast<const std::byte*>(text.data()), text.size()});
  EXPECT_EQ(r.cause.find('\x1b'), std::string::npos);
}

TEST(ColdReader, names_both_processors_of_a_file_for_another_one) {
  auto bytes = good();
  const uint16_t other = host_target()[0] == 'x' ? EM_AARCH64 : EM_X86_64;
  put<uint16_t>(&bytes, 18, other);
  const ColdResult r = read(bytes);
  EXPECT_EQ(r.status, ColdStatus::WrongTarget);
  EXPECT_NE(r.cause.find("aarch64"), std::string::npos) << r.cause;
  EXPECT_NE(r.cause.find("x86_64"), std::string::npos) << r.cause;
}

TEST(ColdReader, judges_a_bare_header_of_another_machine_by_its_target) {
  auto bytes = good();
  bytes.resize(64);
  put<uint16_t>(&bytes, 18, EM_S390);
  EXPECT_EQ(read(bytes).status, ColdStatus::WrongTarget);
}

TEST(ColdReader, refuses_32_bit_files_and_the_other_byte_order_as_wrong_target) {
  auto narrow = good(), swapped = good();
  narrow[EI_CLASS] = std::byte{ELFCLASS32};
  swapped[EI_DATA] = std::byte{ELFDATA2MSB};
  EXPECT_EQ(read(narrow).status, ColdStatus::WrongTarget);
  EXPECT_EQ(read(swapped).status, ColdStatus::WrongTarget);
}

TEST(ColdReader, refuses_programs_and_object_files) {
  for (uint16_t type : {ET_NONE, ET_REL, ET_EXEC, ET_CORE}) {
    auto bytes = good();
    put<uint16_t>(&bytes, 16, type);
    EXPECT_EQ(read(bytes).status, ColdStatus::NotALibrary) << type;
  }
}

TEST(ColdReader, refuses_every_file_that_is_shorter_than_its_segments) {
  const auto whole = good();
  Elf64_Ehdr header;
  std::memcpy(&header, whole.data(), sizeof header);
  uint64_t needed = 0;
  for (uint32_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    std::memcpy(&segment, whole.data() + header.e_phoff + i * sizeof segment, sizeof segment);
    if (segment.p_type == PT_LOAD) needed = std::max(needed, segment.p_offset + segment.p_filesz);
  }
  ASSERT_GT(needed, 1000u);
  for (size_t n = 0; n < needed; n += n < 2048 ? 1 : 37) {
    ASSERT_EQ(read({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(n)}).status, ColdStatus::NotALibrary) << n << " bytes";
  }
}

TEST(ColdReader, survives_offsets_and_counts_at_the_limits) {
  for (uint64_t offset : {uint64_t{0}, uint64_t{1}, UINT64_MAX, UINT64_MAX - 55, uint64_t{1} << 63}) {
    auto bytes = good();
    put<uint64_t>(&bytes, offsetof(Elf64_Ehdr, e_phoff), offset);
    EXPECT_NE(read(bytes).status, ColdStatus::Ok) << offset;
  }
  for (uint16_t count : {0, 65535, 65534}) {
    auto bytes = good();
    put<uint16_t>(&bytes, offsetof(Elf64_Ehdr, e_phnum), count);
    EXPECT_EQ(read(bytes).status, ColdStatus::NotALibrary) << count;
  }
  auto bytes = good();
  put<uint16_t>(&bytes, offsetof(Elf64_Ehdr, e_phentsize), 32);
  EXPECT_EQ(read(bytes).status, ColdStatus::NotALibrary);
}

TEST(ColdReader, refuses_records_of_wrong_size) {
  EXPECT_EQ(with_record([](tn_cold* c) { c->size = 0; }).status, ColdStatus::BadRecord);
  EXPECT_EQ(with_record([](tn_cold* c) { c->size = 4; }).status, ColdStatus::BadRecord);
  EXPECT_EQ(with_record([](tn_cold* c) { c->size = sizeof(tn_cold) - 1; }).status, ColdStatus::BadRecord);
  EXPECT_EQ(with_record([](tn_cold* c) { c->size = sizeof(tn_cold) + 1; }).status, ColdStatus::BadRecord);
  EXPECT_EQ(with_record([](tn_cold* c) { c->size = UINT32_MAX; }).status, ColdStatus::BadRecord);
}

TEST(ColdReader, refuses_records_that_break_a_rule_and_says_which) {
  struct { void (*change)(tn_cold*); const char* words; } cases[] = {
      {[](tn_cold* c) { c->note_version = 2; }, "record version 2, this host reads 1"},
      {[](tn_cold* c) { c->abi_min = c->abi_max + 1; }, "lowest ABI version is above its highest"},
      {[](tn_cold* c) { c->id[0] = '\0'; }, "the id is empty"},
      {[](tn_cold* c) { std::memset(c->id, 'a', sizeof c->id); }, "the id is empty, unterminated"},
      {[](tn_cold* c) { c->id[1] = '\n'; }, "not printable"},
      {[](tn_cold* c) { std::memset(c->version, '1', sizeof c->version); }, "the version is unterminated"},
      {[](tn_cold* c) { c->target[0] = '\0'; }, "the target is empty"},
      {[](tn_cold* c) { c->n_need = 7; }, "names 7 libraries, at most 6"},
      {[](tn_cold* c) { c->n_need = UINT32_MAX; }, "at most 6"},
      {[](tn_cold* c) { c->n_need = 2; }, "library name 1 is empty"},
  };
  for (const auto& c : cases) {
    const ColdResult r = with_record(c.change);
    EXPECT_EQ(r.status, ColdStatus::BadRecord) << c.words;
    EXPECT_NE(r.cause.find(c.words), std::string::npos) << r.cause;
  }
}

TEST(ColdReader, survives_note_sizes_at_the_limits) {
  const size_t head = record_offset(good()) - 24  /* tn_note: sizes, type, name */;
  for (uint32_t size : {0u, 1u, 0x7FFFFFFFu, 0xFFFFFFFFu, 0xFFFFFFFCu}) {
    auto name = good(), desc = good();
    put<uint32_t>(&name, head, size);
    put<uint32_t>(&desc, head + 4, size);
    EXPECT_NE(read(name).status, ColdStatus::Ok) << size;
    EXPECT_NE(read(desc).status, ColdStatus::Ok) << size;
  }
}

TEST(ColdReader, answers_on_any_damaged_file) {
  const auto whole = good();
  std::mt19937 random(20240607);
  for (int round = 0; round < 20000; ++round) {
    auto bytes = whole;
    if (round % 5 == 0) bytes.resize(random() % bytes.size());
    // Most damage goes where the reader looks: the headers, and the notes behind them.
    const size_t reach = std::min<size_t>(bytes.size(), round % 2 == 0 ? 2048 : bytes.size());
    for (int hits = 1 + static_cast<int>(random() % 6); hits > 0 && reach > 0; --hits) {
      bytes[random() % reach] = static_cast<std::byte>(random() % 4 == 0 ? 0xFF : random());
    }
    const ColdResult r = read_cold_elf(bytes);
    ASSERT_EQ(r.status == ColdStatus::Ok, r.cause.empty());
  }
}
