// Versions that meet or do not, and tables of every length: nothing is guessed, nothing is read that is not there.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <random>
#include <set>

#include "loader/check.h"
#include "loader/handshake.h"

using namespace tenon::loader;

namespace {

struct Range {
  uint32_t min, max;
};

std::string text(const Range& r) { return "[" + abi_text(r.min) + ", " + abi_text(r.max) + "]"; }

std::optional<Verdict> judge(const Range& plugin, const Range& host) {
  ColdResult read;
  read.status = ColdStatus::Ok;
  read.kind = kHostFileKind;
  read.cold = {sizeof(tn_cold), 1, plugin.min, plugin.max, "org.example.x", "1.0.0", "x86_64-linux-gnu", {0, 0, 0, 0}, 0, 0, {""}};
  HostFacts facts;
  facts.target = "x86_64-linux-gnu";
  facts.abi_min = host.min, facts.abi_max = host.max;
  return check_cold(read, facts);
}

// What the rule says, by sets: the versions of the finite world that lie in both ranges.
std::optional<uint32_t> highest(const std::set<uint32_t>& world, const Range& a, const Range& b) {
  std::optional<uint32_t> best;
  for (uint32_t v : world) {
    if (v >= a.min && v <= a.max && v >= b.min && v <= b.max) best = v;
  }
  return best;
}

// One page of memory with an unreadable one behind it.
class GuardedPage {
 public:
  GuardedPage() : size_(static_cast<size_t>(sysconf(_SC_PAGESIZE))) {
    begin_ = static_cast<std::byte*>(mmap(nullptr, 2 * size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(begin_ + size_, size_, PROT_NONE);
  }
  ~GuardedPage() { munmap(begin_, 2 * size_); }
  GuardedPage(const GuardedPage&) = delete;
  GuardedPage& operator=(const GuardedPage&) = delete;
  // The last `bytes` bytes that can be read.
  std::byte* last(size_t bytes) const { return begin_ + size_ - bytes; }

 private:
  size_t size_;
  std::byte* begin_;
};

// A table with every entry set, and 64 bytes of a later version behind the known ones.
struct LaterTable {
  tn_plugin known;
  uint64_t unknown[8];
};
LaterTable full_table() {
  LaterTable t;
  std::memset(&t, 0x5A, sizeof t);
  t.known.abi = TN_ABI_CURRENT;
  t.known.next = nullptr;
  return t;
}

}  // namespace

TEST(AbiRanges, give_the_highest_common_version_or_a_refusal_that_names_both) {
  std::mt19937 random(1);
  int met = 0, refused = 0;
  for (int round = 0; round < 20000; ++round) {
    // Few majors and minors, so that ranges touch often; now and then the limits of the number.
    std::set<uint32_t> world = {0, TN_ABI(0, 0xFFFF), UINT32_MAX};
    const auto version = [&] {
      const uint32_t v = random() % 50 == 0 ? UINT32_MAX : random() % 50 == 0 ? 0 : TN_ABI(random() % 3, random() % 6);
      world.insert(v);
      return v;
    };
    Range plugin{version(), version()}, host{version(), version()};
    if (plugin.min > plugin.max) std::swap(plugin.min, plugin.max);
    if (host.min > host.max) std::swap(host.min, host.max);
    const auto want = highest(world, plugin, host);
    ASSERT_EQ(common_abi(host.min, host.max, plugin.min, plugin.max), want) << text(plugin) << " and " << text(host);
    const auto verdict = judge(plugin, host);
    ASSERT_EQ(!verdict, want.has_value()) << text(plugin) << " and " << text(host);
    if (verdict) {
      ASSERT_EQ(verdict->code, Code::AbiRange);
      ASSERT_EQ(verdict->cause, "plugin " + text(plugin) + ", host " + text(host));
    }
    ++(want ? met : refused);
  }
  EXPECT_GT(met, 1000);
  EXPECT_GT(refused, 1000);
}

TEST(AbiRanges, are_symmetric_in_who_is_newer) {
  for (uint32_t a = 0; a < 4; ++a) for (uint32_t b = a; b < 4; ++b) for (uint32_t c = 0; c < 4; ++c) for (uint32_t d = c; d < 4; ++d) {
    EXPECT_EQ(common_abi(a, b, c, d), common_abi(c, d, a, b));
  }
}

TEST(Table, of_every_length_is_read_to_its_end_and_no_further) {
  const GuardedPage page;
  const LaterTable whole = full_table();
  constexpr size_t kLeast = offsetof(tn_plugin, close) + sizeof(tn_plugin::close);
  for (uint32_t size = 4; size <= sizeof whole; ++size) {
    std::byte* at = page.last(size);
    std::memcpy(at, &whole, size);
    std::memcpy(at, &size, sizeof size);
    tn_plugin out;
    const auto refused = validate_table(reinterpret_cast<const tn_plugin*>(at), TN_ABI_CURRENT, &out);
    if (size < kLeast) {
      ASSERT_TRUE(refused && refused->code == Code::BadTable) << size;
      continue;
    }
    // Groups with holes are refused; what is copied is right all the same.
    ASSERT_EQ(out.size, sizeof out) << size;
    const auto* entries = reinterpret_cast<const std::byte*>(&out);
    for (size_t entry = kLeast; entry < sizeof out; entry += sizeof(void*)) {
      void* value = nullptr;
      std::memcpy(&value, entries + entry, sizeof value);
      ASSERT_EQ(value != nullptr, entry + sizeof value <= size) << "size " << size << ", entry at " << entry;
    }
  }
}

TEST(Table, with_a_size_beyond_all_memory_is_read_as_far_as_this_host_knows) {
  const GuardedPage page;
  LaterTable whole = full_table();
  for (uint32_t size : {uint32_t{sizeof(tn_plugin)}, uint32_t{sizeof(tn_plugin) + 1}, UINT32_MAX - 7, UINT32_MAX}) {
    whole.known.size = size;
    std::byte* at = page.last(sizeof(tn_plugin));
    std::memcpy(at, &whole, sizeof(tn_plugin));
    tn_plugin out;
    EXPECT_FALSE(validate_table(reinterpret_cast<const tn_plugin*>(at), TN_ABI_CURRENT, &out)) << size;
    EXPECT_EQ(out.ops, whole.known.ops);
  }
}
