// Whose code may run: checksums, owners and modes of a file and its folders, allow lists, sealed copies (F6).
#include "loader/trust.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <tenon/runtime.h>
#include <unistd.h>

#include <cstring>

#include "loader/open.h"
#include "loader/sha256.h"
#include "tests/loader/temp_folder.h"

namespace fs = std::filesystem;
using namespace tenon::loader;

namespace {

std::string sum(const std::string& text) { return sha256_text({reinterpret_cast<const std::byte*>(text.data()), text.size()}); }

// The fault of a file as the loader sees it; empty when there is none.
std::string fault(const std::string& path, const OwnerRule& rule = {geteuid(), ""}) {
  MappedFile file;
  if (auto bad = file.open(path)) return code_name(bad->code);
  const auto bad = check_owner(path, file.facts(), rule);
  if (bad) {
    EXPECT_EQ(bad->code, Code::Untrusted);
    EXPECT_EQ(bad->stage, Stage::Trust);
  }
  return bad ? bad->cause : "";
}

std::span<const std::byte> view(const std::string& text) { return {reinterpret_cast<const std::byte*>(text.data()), text.size()}; }

}  // namespace

// FIPS 180-4, and the examples that NIST publishes for it.
TEST(Sha256, gives_the_published_values) {
  EXPECT_EQ(sum("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sum(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sum("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"), "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sum(std::string(1000000, 'a')), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, entries_are_64_digits_of_either_case) {
  const std::string digits = sum("abc");
  EXPECT_TRUE(is_sha256_entry("sha256:" + digits));
  EXPECT_FALSE(is_sha256_entry("sha256:" + digits.substr(1)));
  EXPECT_FALSE(is_sha256_entry("sha256:" + digits + "0"));
  EXPECT_FALSE(is_sha256_entry("sha256:g" + digits.substr(1)));
  EXPECT_FALSE(is_sha256_entry("md5:" + digits));
}

TEST(Owner, of_file_and_folders_is_the_user_or_root_and_only_he_writes) {
  TempFolder t;
  const std::string file = t.write("dir/p.so", "x");
  chmod(file.c_str(), 0644);
  chmod((t / "dir").c_str(), 0755);
  EXPECT_EQ(fault(file), "");  // /tmp above is open to all, but sticky
}

TEST(Owner, is_doubted_when_others_can_write_the_file_or_a_folder_above_it) {
  TempFolder t;
  const std::string file = t.write("dir/sub/p.so", "x");
  for (const std::string& place : {file, t / "dir/sub", t / "dir"}) {
    struct stat before {};
    ASSERT_EQ(stat(place.c_str(), &before), 0);
    chmod(place.c_str(), before.st_mode | S_IWOTH);
    EXPECT_TRUE(fault(file).starts_with(place + " can be written by everybody (mode 0")) << fault(file);
    if (geteuid() == 0) {
      chmod(place.c_str(), before.st_mode | S_IWGRP);
      EXPECT_TRUE(fault(file).starts_with(place + " can be written by group 0 (mode 0")) << fault(file);
    }
    chmod(place.c_str(), before.st_mode & 0755);
    EXPECT_EQ(fault(file), "");
  }
}

TEST(Owner, takes_folders_open_to_all_where_the_sticky_bit_protects_what_is_in_them_but_no_such_file) {
  TempFolder t;
  const std::string file = t.write("dir/p.so", "x");
  chmod((t / "dir").c_str(), 01777);
  EXPECT_EQ(fault(file), "");
  chmod(file.c_str(), 01666);
  EXPECT_NE(fault(file), "");
}

TEST(Owner, that_is_a_stranger_is_named_with_his_number) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  TempFolder t;
  const std::string file = t.write("dir/p.so", "x");
  ASSERT_EQ(chown(file.c_str(), 4242, 0), 0);
  EXPECT_EQ(fault(file), file + " belongs to user 4242, root is wanted");
  EXPECT_EQ(fault(file, {4242, ""}), "");
  EXPECT_EQ(fault(file, {77, ""}), file + " belongs to user 4242, root or user 77 is wanted");
  ASSERT_EQ(chown(file.c_str(), 0, 0), 0);
  ASSERT_EQ(chown((t / "dir").c_str(), 4242, 0), 0);
  EXPECT_EQ(fault(file), (t / "dir") + " belongs to user 4242, root is wanted");
}

TEST(Owner, may_have_a_group_of_his_own_which_root_has_not) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  TempFolder t;
  const std::string file = t.write("p.so", "x");
  ASSERT_EQ(chown(file.c_str(), 4242, 4242), 0);
  chmod(file.c_str(), 0664);
  EXPECT_EQ(fault(file, {4242, ""}), "");
  ASSERT_EQ(chown(file.c_str(), 4242, 100), 0);
  EXPECT_NE(fault(file, {4242, ""}), "");
}

TEST(Owner, is_asked_up_to_the_folder_that_holds_the_library_too) {
  TempFolder t;
  const std::string file = t.write("prefix/lib/tenon/plugins/p.so", "x");
  chmod((t / "prefix").c_str(), 0777);
  const OwnerRule rule{geteuid(), t / "prefix/lib"};
  EXPECT_EQ(fault(file, rule), "");  // who can write prefix can change the library itself
  chmod((t / "prefix/lib/tenon").c_str(), 0777);
  EXPECT_NE(fault(file, rule), "");
  EXPECT_NE(fault(file, {geteuid(), t / "prefix/lib64"}), "");
}

TEST(AllowList, takes_ids_and_checksums_and_gives_the_checksum_to_add) {
  const std::string content = "abc";
  EXPECT_FALSE(check_allowed("org.x", view(content), {TN_TRUST_OFF, {}}));
  EXPECT_FALSE(check_allowed("org.x", view(content), {TN_TRUST_OFF, {"org.y", "org.x"}}));
  EXPECT_FALSE(check_allowed("org.x", view(content), {TN_TRUST_ENFORCE, {"sha256:BA7816BF8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"}}));
  const auto bad = check_allowed("org.x", view(content), {TN_TRUST_OFF, {"org.y"}});
  ASSERT_TRUE(bad);
  EXPECT_EQ(bad->code, Code::NotAllowed);
  EXPECT_EQ(bad->cause, "org.x is not among the 1 allowed entries, nor is sha256:" + sum(content));
  EXPECT_EQ(check_allowed("org.x", view(content), {TN_TRUST_ENFORCE, {}})->code, Code::NotAllowed);
}

TEST(SealedCopy, keeps_its_bytes_whatever_becomes_of_the_file) {
  TempFolder t;
  const std::string path = t.write("p.so", std::string(100000, 'a'));
  MappedFile file;
  ASSERT_FALSE(file.open(path));
  ASSERT_FALSE(file.seal());
  t.write("p.so", std::string(100000, 'b'));
  EXPECT_EQ(sha256_text(file.bytes()), sum(std::string(100000, 'a')));
  EXPECT_EQ(write(file.descriptor(), "c", 1), -1);
  EXPECT_EQ(ftruncate(file.descriptor(), 0), -1);
}

TEST(Descriptor, opens_the_file_that_was_checked_and_not_the_one_that_took_its_name) {
  TempFolder t;
  const std::string path = t.add("good", "p");
  MappedFile file;
  ASSERT_FALSE(file.open(path));
  fs::rename(path, t / "away");
  fs::copy_file(FIXTURE_DIR "/no_symbol.so", path);
  OpenedLibrary library;
  EXPECT_FALSE(open_library(path, false, &library, file.descriptor()));
  EXPECT_EQ(open_library(path, false, &library)->code, Code::NoSymbol);
}

TEST(Descriptor, numbers_that_come_again_do_not_lead_to_the_library_before) {
  std::vector<OpenedLibrary> open;
  for (const char* name : {"good", "other", "device"}) {
    MappedFile file;  // closed at the end of the round: the next one gets the same number
    ASSERT_FALSE(file.open(std::string(FIXTURE_DIR "/") + name + ".so"));
    OpenedLibrary library;
    ASSERT_FALSE(open_library(name, false, &library, file.descriptor()));
    for (const OpenedLibrary& before : open) EXPECT_NE(library.query, before.query) << name;
    open.push_back(std::move(library));
  }
}

TEST(Descriptor, is_not_what_messages_call_the_file) {
  MappedFile file;
  ASSERT_FALSE(file.open(FIXTURE_DIR "/undefined.so"));
  OpenedLibrary library;
  const auto bad = open_library("/opt/p/x.so", false, &library, file.descriptor());
  ASSERT_TRUE(bad);
  EXPECT_TRUE(bad->cause.starts_with("/opt/p/x.so: undefined symbol: ")) << bad->cause;
}
