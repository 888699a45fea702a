// Opening and asking: causes kept word for word, tables of other sizes, the environment left as it was.
#include "loader/open.h"

#include <gtest/gtest.h>

#include <cfenv>
#include <cstring>

#include "loader/handshake.h"
#include "tests/loader/temp_folder.h"

using namespace tenon::loader;

namespace {

std::string fixture(const std::string& name) { return std::string(FIXTURE_DIR "/") + name + ".so"; }

// Opens the fixture and asks for its table.
std::optional<Verdict> ask(const std::string& name, tn_plugin* table, uint32_t abi = TN_ABI_CURRENT) {
  OpenedLibrary library;
  if (auto refused = open_library(fixture(name), false, &library)) return refused;
  return query_table(library.query, abi, nullptr, table);
}

Code code_of(const std::string& name) {
  tn_plugin table;
  const auto refused = ask(name, &table);
  return refused ? refused->code : Code::InUse;
}

}  // namespace

TEST(Open, gives_the_entry_of_a_sound_plugin) {
  OpenedLibrary library;
  ASSERT_FALSE(open_library(fixture("good"), false, &library));
  EXPECT_NE(library.query, nullptr);
  EXPECT_NE(library.handle, nullptr);
}

TEST(Open, names_the_undefined_symbol) {
  OpenedLibrary library;
  const auto v = open_library(fixture("undefined"), false, &library);
  ASSERT_TRUE(v);
  EXPECT_EQ(v->code, Code::OpenFailed);
  EXPECT_NE(v->cause.find("undefined symbol: tenon_test_symbol_that_nobody_defines"), std::string::npos) << v->cause;
}

TEST(Open, names_the_library_that_is_missing) {
  OpenedLibrary library;
  const auto v = open_library(fixture("missing_dep"), false, &library);
  ASSERT_TRUE(v);
  EXPECT_EQ(v->code, Code::MissingDependency);
  EXPECT_TRUE(v->cause.starts_with("libtenon_fixture_dep.so: ")) << v->cause;
}

TEST(Open, says_when_the_entry_is_not_exported) { EXPECT_EQ(code_of("no_symbol"), Code::NoSymbol); }

TEST(Open, adds_no_suffix_and_searches_no_folder) {
  OpenedLibrary library;
  EXPECT_TRUE(open_library(FIXTURE_DIR "/good", false, &library));
  EXPECT_TRUE(open_library("good.so", false, &library));
}

TEST(Handshake, fills_missing_entries_of_a_shorter_table_with_null) {
  tn_plugin table;
  std::memset(&table, 0xAB, sizeof table);
  ASSERT_FALSE(ask("short_table", &table));
  EXPECT_EQ(table.size, sizeof table);
  EXPECT_NE(table.close, nullptr);
  EXPECT_EQ(table.iface, nullptr);
  EXPECT_EQ(table.devices, nullptr);
  EXPECT_EQ(table.kernels, nullptr);
  EXPECT_EQ(table.ops, nullptr);
}

TEST(Handshake, ignores_what_a_longer_table_has_behind_the_known_entries) {
  tn_plugin table;
  ASSERT_FALSE(ask("later", &table));
  EXPECT_EQ(table.size, sizeof table);
  EXPECT_EQ(table.ops, nullptr);
}

TEST(Handshake, reads_no_more_than_it_knows_of_a_table_with_a_huge_size) { EXPECT_EQ(code_of("size_huge"), Code::InUse); }

TEST(Handshake, refuses_tables_that_break_the_contract) {
  for (const char* name : {"size_zero", "too_short", "null_required", "partial", "other_abi"}) {
    EXPECT_EQ(code_of(name), Code::BadTable) << name;
  }
}

TEST(Handshake, names_what_is_wrong_with_a_table) {
  tn_plugin table;
  EXPECT_EQ(ask("size_zero", &table)->cause, "table size 0, at least 40 wanted");
  EXPECT_EQ(ask("null_required", &table)->cause, "required entries are NULL: quiesce");
  EXPECT_EQ(ask("partial", &table)->cause, "some timeline entries are there, but these are NULL: wait");
  EXPECT_EQ(ask("other_abi", &table, TN_ABI(1, 2))->cause, "the table says ABI 1.3, asked for was 1.2");
}

TEST(Handshake, takes_a_plugin_with_devices) {
  tn_plugin table;
  ASSERT_FALSE(ask("device", &table));
  EXPECT_NE(table.devices, nullptr);
}

TEST(Handshake, survives_null_and_exceptions) {
  EXPECT_EQ(code_of("query_null"), Code::QueryRefused);
  EXPECT_EQ(code_of("throwing"), Code::QueryRefused);
}

TEST(LinkerText, tells_the_plugin_itself_from_its_dependency) {
  const std::string absent = ": cannot open shared object file: No such file or directory";
  EXPECT_EQ(verdict_of_linker_text("/p/x.so", "libcuda.so.1" + absent).code, Code::MissingDependency);
  EXPECT_EQ(verdict_of_linker_text("/p/x.so", "/p/x.so" + absent).code, Code::OpenFailed);
  EXPECT_EQ(verdict_of_linker_text("/p/x.so", "/p/x.so: invalid ELF header").code, Code::OpenFailed);
}

#if defined(__x86_64__)
TEST(Open, leaves_rounding_and_denormals_as_they_were_whatever_a_constructor_does) {
  volatile double denormal = 1e-323;
  volatile float small = 1e-40f;
  OpenedLibrary library;
  ASSERT_FALSE(open_library(fixture("ftz"), false, &library));
  EXPECT_TRUE(denormal * 1.0 != 0.0);
  EXPECT_EQ(small * 1.0f, small);
  EXPECT_EQ(std::fegetround(), FE_TONEAREST);
}

TEST(Open, keeps_a_rounding_mode_that_the_program_had_chosen) {
  std::fesetround(FE_DOWNWARD);
  OpenedLibrary library;
  const auto refused = open_library(fixture("ftz"), false, &library);
  const int mode = std::fegetround();
  std::fesetround(FE_TONEAREST);
  EXPECT_FALSE(refused);
  EXPECT_EQ(mode, FE_DOWNWARD);
}
#endif
