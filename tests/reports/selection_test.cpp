// Which kernel wins depends on the op, the types and the device. 1,000 ways of finding the same plugins - folders, names in
// them, the order of both, files added one by one - give the same decision for each of 200 random ops, row by row.
#include <gtest/gtest.h>
#include <tenon/ops.h>
#include <tenon/plugin.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <random>

#include "tests/reports/tie_packs.h"
#include "tools/conformance/draw.h"
#include "tools/conformance/machine.h"

namespace fs = std::filesystem;

namespace tenon::conformance {
namespace {

constexpr int kOps = 200, kRounds = 1000, kPlanned = 20;  // every kPlanned-th round prepares plans as well

struct Plugin {
  std::string name, file;
};

std::vector<Plugin> plugins() {
  std::vector<Plugin> all;
  for (const char* name : {"cpu", "onednn", "sim", "null"}) {
    const std::string file = std::string(REAL_PLUGINS "/libtenon_backend_") + name + ".so";
    if (fs::exists(file)) all.push_back({name, file});
  }
  // Kernels for every CPU device, with no estimate of their own or the same one.
  for (const char* name : {"good", "lie_cost", "rounding_open", "lie_memory", "leak", "table_old"}) all.push_back({name, std::string(FAULT_DIR "/") + name + ".so"});
  return all;
}

// One way of finding all plugins: a tree of folders with links under chosen names, the order of the folders, and what is
// loaded by name or linked afterwards.
class Way {
 public:
  Way(std::vector<Plugin> list, std::mt19937& random) : top_("/tmp/tenon_order_" + std::to_string(getpid())) {
    fs::remove_all(top_);
    std::shuffle(list.begin(), list.end(), random);
    const size_t n_folders = 1 + random() % 4;
    for (size_t i = 0; i < n_folders; ++i) {
      folders.push_back(top_ + "/" + std::to_string(random() % 100) + "_" + std::to_string(i));
      fs::create_directories(folders.back());
    }
    for (const Plugin& p : list) {
      if (random() % 4 == 0) {
        later.push_back(p.file);
        continue;
      }
      fs::create_symlink(p.file, folders[random() % n_folders] + "/libtenon_backend_" + std::to_string(random() % 1000) + "_" + p.name + ".so");
    }
    std::shuffle(folders.begin(), folders.end(), random);
    for (int i = 0; i < kTiePacks; ++i) packs.push_back(i);
    std::shuffle(packs.begin(), packs.end(), random);
    packs_first = random() % 2 == 0;
  }
  ~Way() { fs::remove_all(top_); }

  tn_runtime* boot() const {
    std::vector<const char*> paths;
    for (const std::string& f : folders) paths.push_back(f.c_str());
    tn_runtime_options options{};
    options.size = sizeof options;
    options.paths = paths.data(), options.n_paths = static_cast<uint32_t>(paths.size());
    options.threads = 1;
    tn_runtime* rt = nullptr;
    tn_diag d{};
    d.size = sizeof d;
    EXPECT_EQ(tn_runtime_create(&options, &rt, &d), TN_OK) << d.msg;
    const auto link = [&] {
      for (int i : packs) EXPECT_EQ(tn_plugin_link(rt, tie_pack_id(i).c_str(), tie_pack_query(i), nullptr, &d), TN_OK) << d.msg;
    };
    if (packs_first) link();
    for (const std::string& file : later) EXPECT_EQ(tn_plugin_load(rt, file.c_str(), nullptr, &d), TN_OK) << d.msg;
    if (!packs_first) link();
    return rt;
  }

  std::vector<std::string> folders, later;
  std::vector<int> packs;
  bool packs_first = false;

 private:
  std::string top_;
};

struct Question {
  Draw draw;
  Call call;
  std::string device;
};

// 200 calls that something on the device takes; views are made by no kernel.
std::vector<Question> questions(Machine& m) {
  std::vector<Question> list;
  const auto decls = all_decls();
  std::mt19937 random(20261130);
  const char* const devices[] = {"cpu:0", "cpu:0", "sim:0", "null:0", "good:0"};
  while (list.size() < kOps) {
    const ops::OpDecl& decl = *decls[random() % decls.size()];
    const auto cases = decl.cases();
    if (decl.def.view != nullptr || cases.empty()) continue;
    const Draw draw = drawn(decl, cases, random);
    Question q{draw, draw.call(decl), devices[random() % std::size(devices)]};
    for (Array& a : q.call.in) a.v.clear();  // types alone are asked about
    if (m.device(q.device) != 0 && !m.candidates(q.call, q.device).empty()) list.push_back(std::move(q));
  }
  return list;
}

// A record of what was decided, in words that no order of loading is part of.
class Scribe {
 public:
  explicit Scribe(tn_runtime* rt) {
    uint32_t n = 0;
    tn_plugins(rt, nullptr, 0, 0, &n, nullptr);
    std::vector<tn_plugin_entry> entries(n);
    tn_plugins(rt, entries.data(), sizeof entries[0], n, &n, nullptr);
    for (const tn_plugin_entry& e : entries) ids_.push_back(e.id);
  }
  std::string text(const std::vector<tn_candidate>& rows) const {
    std::string all;
    char line[800];
    for (const tn_candidate& r : rows) {
      std::snprintf(line, sizeof line, "%s | %s | %u %u %s | tier %d est %.17g move %.17g from %u work %llu | %u %s\n", r.kernel, r.kind == TN_ROW_KERNEL ? ids_.at(r.plugin).c_str() : "",
                    r.why, r.constraint, r.reason, r.tier, r.est_ns, r.move_ns, r.source, static_cast<unsigned long long>(r.workspace_bytes), r.depth, r.call);
      all += line;
    }
    return all;
  }

 private:
  std::vector<std::string> ids_;
};

struct Decided {
  std::vector<std::string> asked, planned;
};

Decided decide_all(Machine& m, const std::vector<Question>& list, bool plans) {
  const Scribe scribe(m.runtime());
  Decided d;
  for (const Question& q : list) {
    q.draw.use();
    d.asked.push_back(scribe.text(m.why(q.call, q.device)));
    if (plans) d.planned.push_back(scribe.text(m.planned(q.call, q.device)));
  }
  return d;
}

// "kernel | plugin | why ..." a line; why 0 is TN_WHY_WON.
void count_winners(const std::string& text, std::map<std::string, int>* winners) {
  for (size_t at = 0; at < text.size(); at = text.find('\n', at) + 1) {
    const size_t name = text.find(" | ", at), why = text.find(" | ", name + 3);
    if (text[why + 3] == '0') ++(*winners)[text.substr(at, name - at)];
  }
}

}  // namespace

TEST(Order, of_folders_names_and_loading_changes_no_decision_in_a_thousand_ways) {
  setenv("TENON_CONFIG", "loader.probe=off", 1);
  const std::vector<Plugin> all = plugins();
  ASSERT_GE(all.size(), 8u);
  std::mt19937 random(7);
  std::vector<Question> list;
  Decided first;
  std::map<std::string, int> winners;
  int ties = 0;
  for (int round = 0; round < kRounds; ++round) {
    const Way way(all, random);
    Machine m(way.boot(), Machine::Take::Over);
    const bool plans = round % kPlanned == 0;
    if (round == 0) list = questions(m);
    const Decided now = decide_all(m, list, plans);
    if (round == 0) {
      first = now;
      for (const std::string& text : now.planned) count_winners(text, &winners);
      for (const std::string& text : now.asked) {
        ties += text.find("| 3 ") != std::string::npos || text.find("| 2 ") != std::string::npos;  // TN_WHY_NAME, TN_WHY_TIER
      }
    }
    for (size_t i = 0; i < list.size(); ++i) {
      ASSERT_EQ(now.asked[i], first.asked[i]) << call_text(list[i].call) << " on " << list[i].device << ", round " << round;
      if (plans) {
        ASSERT_EQ(now.planned[i], first.planned[i]) << call_text(list[i].call) << " on " << list[i].device << ", round " << round;
        if (!now.planned[i].empty()) { ASSERT_EQ(now.planned[i].substr(0, now.planned[i].find(" |")), now.asked[i].substr(0, now.asked[i].find(" |"))); }
      }
    }
  }
  // The questions are worth asking: many kernels win, and many decisions are ties.
  EXPECT_GE(winners.size(), 10u);
  EXPECT_GE(ties, 20);
}

}  // namespace tenon::conformance
