// Which files are looked at: folders, variables, order, spellings.
#include "loader/search.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/loader/temp_folder.h"

namespace fs = std::filesystem;
using namespace tenon::loader;

namespace {

std::vector<std::string> names(const std::vector<Candidate>& candidates) {
  std::vector<std::string> list;
  for (const Candidate& c : candidates) list.push_back(fs::path(c.path).filename().string());
  return list;
}

std::vector<std::string> paths(const std::vector<Folder>& folders) {
  std::vector<std::string> list;
  for (const Folder& f : folders) list.push_back(f.path);
  return list;
}

class InFolder {
 public:
  explicit InFolder(const std::string& path) : before_(fs::current_path()) { fs::current_path(path); }
  ~InFolder() { fs::current_path(before_); }

 private:
  fs::path before_;
};

Environment plain() {
  Environment env;
  env.library_folder = "/opt/tenon/lib";
  env.home = "/home/ann";
  return env;
}

}  // namespace

TEST(StandardFolders, are_the_librarys_own_the_variables_the_systems_and_the_users) {
  Environment env = plain();
  env.plugin_path = "/x:/y/z";
  EXPECT_EQ(paths(standard_folders(env)), (std::vector<std::string>{"/opt/tenon/lib/tenon/plugins", "/x", "/y/z", "/etc/tenon/plugins.d",
                                                                    "/home/ann/.local/share/tenon/plugins"}));
}

TEST(StandardFolders, follow_xdg_data_home_but_not_a_relative_one) {
  Environment env = plain();
  env.data_home = "/data";
  EXPECT_EQ(paths(standard_folders(env)).back(), "/data/tenon/plugins");
  env.data_home = "data";
  EXPECT_EQ(paths(standard_folders(env)).back(), "/home/ann/.local/share/tenon/plugins");
}

TEST(StandardFolders, ignore_variables_and_home_in_programs_with_raised_rights) {
  Environment env = plain();
  env.plugin_path = "/x";
  env.data_home = "/data";
  env.secure = true;
  EXPECT_EQ(paths(standard_folders(env)), (std::vector<std::string>{"/opt/tenon/lib/tenon/plugins", "/etc/tenon/plugins.d"}));
}

TEST(PathList, names_relative_and_empty_entries_because_they_would_mean_the_current_folder) {
  const auto folders = split_path_list("/a:b/c::/d:.", "LIST");
  EXPECT_EQ(paths(folders), (std::vector<std::string>{"/a", "b/c", "", "/d", "."}));
  EXPECT_EQ(folders[0].fault, "");
  EXPECT_EQ(folders[1].fault, "entry 2 of LIST is relative: it would follow the current directory");
  EXPECT_EQ(folders[2].fault, "entry 3 of LIST is empty: it would follow the current directory");
  EXPECT_EQ(folders[3].fault, "");
  EXPECT_EQ(folders[4].fault, "entry 5 of LIST is relative: it would follow the current directory");
}

TEST(Search, gives_a_verdict_for_each_relative_or_empty_entry_and_looks_at_none) {
  TempFolder t;
  t.write("libtenon_backend_hijack.so", "x");
  t.write("dir/libtenon_backend_hijack.so", "x");
  InFolder in(t.path());
  Environment env;
  env.etc = t / "no";
  env.plugin_path = ".:dir::./dir";
  const auto found = find_candidates(standard_folders(env));
  ASSERT_EQ(found.size(), 4u);
  for (const Candidate& c : found) {
    ASSERT_TRUE(c.refused) << c.path;
    EXPECT_EQ(c.refused->code, Code::RelativePath);
    EXPECT_NE(c.refused->cause.find("of TENON_PLUGIN_PATH is "), std::string::npos) << c.refused->cause;
  }
}

TEST(Search, takes_only_plugin_names_in_bytewise_order) {
  TempFolder t;
  for (const char* name : {"libtenon_backend_b.so", "libtenon_backend_B.so", "libtenon_backend_a1.so", "libtenon_backend_a10.so",
                           "libtenon_backend_.so", "libtenon.so", "libtenon_backend_c.so.bak", "x_libtenon_backend_d.so", "notes.txt"}) {
    t.write(name, "x");
  }
  EXPECT_EQ(names(find_candidates({{t.path(), false, {}}})), (std::vector<std::string>{"libtenon_backend_B.so", "libtenon_backend_a1.so",
                                                                           "libtenon_backend_a10.so", "libtenon_backend_b.so"}));
}

TEST(Search, looks_once_at_a_folder_spelt_in_several_ways) {
  TempFolder t;
  t.write("dir/libtenon_backend_a.so", "x");
  InFolder in(t.path());
  // As the caller's own list: relative names are his choice there.
  EXPECT_EQ(find_candidates({{"dir", true, {}}, {"dir//", true, {}}, {"./dir", true, {}}, {"dir/../dir", true, {}}, {t / "dir", true, {}}}).size(), 1u);
  const std::string d = t / "dir";
  EXPECT_EQ(find_candidates(split_path_list(d + ":" + d + "//:" + d + "/.:" + d + "/../dir", "LIST")).size(), 1u);
}

TEST(Search, looks_once_at_a_folder_reached_through_a_link) {
  TempFolder t;
  t.write("dir/libtenon_backend_a.so", "x");
  fs::create_directory_symlink("dir", t / "link");
  const auto found = find_candidates({{t / "link", false, {}}, {t / "dir", false, {}}});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].path, t / "dir/libtenon_backend_a.so");
}

TEST(Search, says_when_a_folder_that_was_asked_for_is_absent_and_is_silent_about_standard_ones) {
  TempFolder t;
  EXPECT_TRUE(find_candidates({{t / "absent", false, {}}}).empty());
  const auto found = find_candidates({{t / "absent", true, {}}});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].path, t / "absent");
  EXPECT_EQ(found[0].refused->code, Code::NotFound);
}

TEST(Search, says_when_a_folder_may_not_be_read) {
  TempFolder t;
  fs::create_directory(t / "shut");
  chmod((t / "shut").c_str(), 0);
  const int code = as_unprivileged([&] {
    const auto found = find_candidates({{t / "shut", true, {}}});
    return found.size() == 1 && found[0].refused ? static_cast<int>(found[0].refused->code) : 99;
  });
  EXPECT_EQ(code, static_cast<int>(Code::Unreadable));
}

TEST(Search, takes_a_file_given_in_place_of_a_folder) {
  TempFolder t;
  const std::string file = t.write("my_plugin.so", "x");
  const auto found = find_candidates({{file, true, {}}});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].path, file);
}

TEST(Search, keeps_a_broken_link_as_a_candidate_so_that_it_gets_a_verdict) {
  TempFolder t;
  fs::create_symlink("nowhere", t / "libtenon_backend_a.so");
  EXPECT_EQ(find_candidates({{t.path(), false, {}}}).size(), 1u);
}

TEST(NamedCandidate, is_made_absolute_and_canonical) {
  TempFolder t;
  t.write("dir/p.so", "x");
  InFolder in(t.path());
  EXPECT_EQ(named_candidate("./dir/../dir//p.so").path, t / "dir/p.so");
  EXPECT_EQ(named_candidate("absent.so").refused->code, Code::NotFound);
}
