#include <tenon/io/file.hpp>
#include <tenon/io/safetensors.hpp>
#include <tenon/io/sha256.hpp>

#include "temp_dir.hpp"

#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <csignal>

using namespace tenon::io;
using namespace tenon::test;

TEST(Sha256, matches_the_published_vectors) {
  EXPECT_EQ(sha256_hex("", 0), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_hex("abc", 3), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  const std::string million(1000000, 'a');
  Sha256 sum;
  for (size_t i = 0; i < million.size(); i += 1000) sum.update(million.data() + i, 1000);
  EXPECT_EQ(sum.hex(), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(File, says_what_is_wrong_with_a_path) {
  TempDir dir;
  EXPECT_EQ(File::open(dir / "none").status().id, file_error(1));
  EXPECT_EQ(File::open(dir.path()).status().id, file_error(3));
  EXPECT_EQ(File::open(std::string("a\0b", 3)).status().id, file_error(1));
  ASSERT_EQ(::mkfifo((dir / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(File::open(dir / "pipe").status().id, file_error(3)) << "must not hang";
  put(dir / "file", "12345");
  EXPECT_EQ(File::open(dir / "file/below").status().id, file_error(1));
  std::filesystem::create_symlink("file", dir / "link");
  EXPECT_TRUE(File::open(dir / "link"));
  EXPECT_EQ(File::open(dir / "link", false).status().id, file_error(3));
  EXPECT_EQ(read_file(dir / "file", 4).status().id, file_error(5));
  EXPECT_EQ(*read_file(dir / "file", 5), "12345");
}

TEST(File, a_file_the_user_may_not_read_is_named) {
  TempDir dir;
  put(dir / "file", "x");
  ::chmod((dir / "file").c_str(), 0);
  ::chmod(dir.path().c_str(), 0755);
  const pid_t child = ::fork();
  if (child == 0) {  // root reads everything, so an ordinary user tries
    if (::getuid() == 0 && ::setuid(65534) != 0) ::_exit(2);
    ::_exit(File::open(dir / "file").status().id == file_error(2) ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(File, notices_a_file_that_became_shorter) {
  TempDir dir;
  put(dir / "file", "12345678");
  auto file = File::open(dir / "file");
  ASSERT_TRUE(file);
  std::filesystem::resize_file(dir / "file", 3);
  char out[8];
  EXPECT_EQ(file->read_at(0, out, 8).id, file_error(4));
}

TEST(AtomicFile, content_appears_only_at_commit) {
  TempDir dir;
  put(dir / "x", "old");
  {
    auto file = AtomicFile::create(dir / "x");
    ASSERT_TRUE(file);
    ASSERT_TRUE(file->write("new", 3).ok());
    EXPECT_EQ(get(dir / "x"), "old");
  }
  EXPECT_EQ(get(dir / "x"), "old") << "dropped without commit";
  EXPECT_EQ(count_files(dir.path()), 1u);
  ASSERT_TRUE(write_file(dir / "x", "new").ok());
  EXPECT_EQ(get(dir / "x"), "new");
  EXPECT_EQ(count_files(dir.path()), 1u);
}

TEST(AtomicFile, two_writers_of_one_file_do_not_disturb_each_other) {
  TempDir dir;
  auto a = AtomicFile::create(dir / "x"), b = AtomicFile::create(dir / "x");
  ASSERT_TRUE(a && b);
  ASSERT_TRUE(a->write("aaa", 3).ok() && b->write("bb", 2).ok());
  ASSERT_TRUE(a->commit().ok());
  EXPECT_EQ(get(dir / "x"), "aaa");
  ASSERT_TRUE(b->commit().ok());
  EXPECT_EQ(get(dir / "x"), "bb");
}

TEST(AtomicFile, refuses_folders_and_missing_folders) {
  TempDir dir;
  EXPECT_EQ(AtomicFile::create(dir.path()).status().id, file_error(3));
  EXPECT_EQ(AtomicFile::create(dir / "no/x").status().id, file_error(1));
  EXPECT_EQ(AtomicFile::create(dir.path() + "/").status().id >> 16, kFileFamily);
}

TEST(AtomicFile, a_writer_killed_at_any_moment_leaves_old_or_new) {
  TempDir dir;
  const std::string old_text(200000, 'o'), new_text(300000, 'n');
  ASSERT_TRUE(write_file(dir / "x", old_text).ok());
  for (int moment = 0; moment < 50; ++moment) {
    const pid_t child = ::fork();
    if (child == 0)
      for (;;) write_file(dir / "x", new_text), write_file(dir / "x", old_text);
    ::usleep(static_cast<useconds_t>(200 + moment * 137));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    const std::string now = get(dir / "x");
    ASSERT_TRUE(now == old_text || now == new_text) << now.size();
  }
  ASSERT_TRUE(write_file(dir / "x", "end").ok());
  EXPECT_EQ(count_files(dir.path()), 1u) << "leftovers of dead writers are removed by the next one";
}

TEST(AtomicFile, a_full_disk_leaves_the_old_file_and_nothing_else) {
  TempDir dir;
  if (::mount("tmpfs", dir.path().c_str(), "tmpfs", 0, "size=1m") != 0) GTEST_SKIP() << "mounting a small tmpfs needs root";
  ASSERT_TRUE(write_file(dir / "x", "old").ok());
  const std::string big(2 << 20, 'b');
  EXPECT_EQ(write_file(dir / "x", big).id, file_error(7));
  EXPECT_EQ(write_safetensors(dir / "x", {{"t", TN_U8, {big.size()}, big.data(), big.size()}}).id, file_error(7));
  EXPECT_EQ(get(dir / "x"), "old");
  EXPECT_EQ(count_files(dir.path()), 1u);
  ::umount(dir.path().c_str());
}

TEST(Quote, makes_any_bytes_printable_and_short) {
  EXPECT_EQ(quote("a\n\x1b[31m\xff\""), R"("a\x0a\x1b[31m\xff\x22")");
  EXPECT_EQ(quote(std::string(100, 'a'), 3), "\"aaa\"...");
}
