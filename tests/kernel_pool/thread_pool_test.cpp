// The pool behind tn_host.parallel: every element once, inline when nested, alive after fork, default rounding.
#include "kernel/thread_pool.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cfenv>
#include <functional>
#include <limits>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

using tenon::kernel::ThreadPool;

namespace {

using Body = std::function<void(int64_t, int64_t, uint32_t)>;

void run(ThreadPool& pool, int64_t n, int64_t grain, Body body) {
  pool.parallel(n, grain, [](void* arg, int64_t b, int64_t e, uint32_t w) { (*static_cast<Body*>(arg))(b, e, w); }, &body);
}

struct Piece { int64_t begin, end; uint32_t worker; };

std::vector<Piece> pieces_of(ThreadPool& pool, int64_t n, int64_t grain) {
  std::mutex mutex;
  std::vector<Piece> pieces;
  run(pool, n, grain, [&](int64_t b, int64_t e, uint32_t w) {
    std::lock_guard lock(mutex);
    pieces.push_back({b, e, w});
  });
  std::sort(pieces.begin(), pieces.end(), [](const Piece& x, const Piece& y) { return x.begin < y.begin; });
  return pieces;
}

// True when the pieces cover 0..n without gap or overlap.
bool tiles(const std::vector<Piece>& pieces, int64_t n) {
  int64_t at = 0;
  for (const Piece& p : pieces) {
    if (p.begin != at || p.end <= p.begin) return false;
    at = p.end;
  }
  return at == n;
}

int exit_code_of_child(const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);  // a hang must not outlive the test
    _exit(body());
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

double sum_of(ThreadPool& pool, int64_t n) {
  std::atomic<int64_t> sum{0};
  run(pool, n, 1, [&](int64_t b, int64_t e, uint32_t) {
    for (int64_t i = b; i < e; ++i) sum += i;
  });
  return static_cast<double>(sum);
}

}  // namespace

TEST(ThreadPool, runs_every_element_once_for_every_length_grain_and_width) {
  for (uint32_t width : {1u, 2u, 3u, 8u}) {
    ThreadPool pool(width);
    for (int64_t n = 0; n <= 70; ++n) {
      for (int64_t grain : {1, 2, 3, 7, 16, 70, 1000}) {
        const auto pieces = pieces_of(pool, n, grain);
        ASSERT_TRUE(tiles(pieces, n)) << "n " << n << " grain " << grain << " width " << width;
        for (const Piece& p : pieces) {
          ASSERT_LT(p.worker, width);
          ASSERT_TRUE(p.end - p.begin >= grain || pieces.size() == 1);
        }
      }
    }
  }
}

TEST(ThreadPool, of_width_zero_is_the_caller_alone) {
  ThreadPool pool(0);
  EXPECT_EQ(pool.size(), 1u);
  EXPECT_EQ(pieces_of(pool, 100, 1).size(), 1u);
}

TEST(ThreadPool, takes_grains_below_one_and_negative_lengths_without_harm) {
  ThreadPool pool(2);
  EXPECT_TRUE(tiles(pieces_of(pool, 10, 0), 10));
  EXPECT_TRUE(tiles(pieces_of(pool, 10, -5), 10));
  EXPECT_TRUE(pieces_of(pool, -3, 1).empty());
}

TEST(ThreadPool, covers_lengths_near_the_end_of_64_bits) {
  ThreadPool pool(3);
  const int64_t n = std::numeric_limits<int64_t>::max();
  EXPECT_TRUE(tiles(pieces_of(pool, n, 1), n));
  EXPECT_EQ(pieces_of(pool, n, n).size(), 1u);
}

TEST(ThreadPool, uses_other_threads_and_gives_each_its_own_number) {
  ThreadPool pool(4);
  std::mutex mutex;
  std::set<std::pair<std::thread::id, uint32_t>> seen;
  run(pool, 16, 1, [&](int64_t, int64_t, uint32_t w) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    std::lock_guard lock(mutex);
    seen.emplace(std::this_thread::get_id(), w);
  });
  std::set<std::thread::id> threads;
  std::set<uint32_t> workers;
  for (const auto& [thread, worker] : seen) threads.insert(thread), workers.insert(worker);
  EXPECT_EQ(seen.size(), threads.size());
  EXPECT_EQ(seen.size(), workers.size());
  EXPECT_GE(threads.size(), 2u);
}

TEST(ThreadPool, runs_nested_calls_inline_on_the_same_worker) {
  ThreadPool pool(3);
  std::atomic<int> wrong{0}, inner{0};
  run(pool, 12, 1, [&](int64_t, int64_t, uint32_t outer) {
    const auto self = std::this_thread::get_id();
    run(pool, 1000, 1, [&](int64_t b, int64_t e, uint32_t w) {
      if (std::this_thread::get_id() != self || w != outer || b != 0 || e != 1000) ++wrong;
      ++inner;
    });
  });
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(inner, 12);
}

TEST(ThreadPool, runs_a_call_from_a_single_piece_inline_too) {
  ThreadPool pool(3);
  size_t inner = 0;
  run(pool, 1, 1, [&](int64_t, int64_t, uint32_t) { inner = pieces_of(pool, 100, 1).size(); });
  EXPECT_EQ(inner, 1u);
}

TEST(ThreadPool, runs_a_call_of_another_pool_from_inside_a_piece_inline_with_a_valid_number) {
  ThreadPool wide(4), narrow(1);
  std::atomic<int> wrong{0};
  run(wide, 16, 1, [&](int64_t, int64_t, uint32_t) {
    run(narrow, 10, 1, [&](int64_t, int64_t, uint32_t w) { if (w >= narrow.size()) ++wrong; });
  });
  EXPECT_EQ(wrong, 0);
}

TEST(ThreadPool, shares_its_workers_among_concurrent_callers) {
  ThreadPool pool(3);
  std::atomic<int64_t> wrong{0};
  std::vector<std::thread> callers;
  for (int c = 0; c < 4; ++c) {
    callers.emplace_back([&, c] {
      for (int round = 0; round < 300; ++round) {
        const int64_t n = 1 + (round * 7 + c) % 97;
        std::vector<int> count(static_cast<size_t>(n));  // plain ints: a second writer is a data race to the sanitizer
        std::vector<std::atomic<int>> busy(pool.size());
        run(pool, n, 1 + round % 3, [&](int64_t b, int64_t e, uint32_t w) {
          if (busy[w].fetch_add(1) != 0) ++wrong;  // one number, two threads at once
          for (int64_t i = b; i < e; ++i) ++count[static_cast<size_t>(i)];
          busy[w].fetch_sub(1);
        });
        for (int k : count) wrong += k != 1;
      }
    });
  }
  for (auto& caller : callers) caller.join();
  EXPECT_EQ(wrong, 0);
}

TEST(ThreadPool, makes_the_results_of_all_pieces_visible_to_the_caller) {
  ThreadPool pool(2);
  std::vector<int64_t> data(4096);
  for (int64_t round = 1; round <= 200; ++round) {
    run(pool, 4096, 64, [&](int64_t b, int64_t e, uint32_t) {
      for (int64_t i = b; i < e; ++i) data[static_cast<size_t>(i)] = i * round;
    });
    for (int64_t i = 0; i < 4096; ++i) ASSERT_EQ(data[static_cast<size_t>(i)], i * round);
  }
}

TEST(ThreadPool, is_made_used_and_destroyed_many_times) {
  for (int i = 0; i < 100; ++i) {
    ThreadPool pool(1 + static_cast<uint32_t>(i % 4));
    if (i % 3 != 0) {
      EXPECT_EQ(sum_of(pool, 100), 4950);
    }
  }
}

#if !defined(__SANITIZE_THREAD__)  // the sanitizer's runtime does not follow a threaded process through fork
TEST(ThreadPool, works_in_a_forked_child_and_still_in_the_parent) {
  ThreadPool pool(3);
  ASSERT_EQ(sum_of(pool, 1000), 499500);
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(exit_code_of_child([&] {
      if (sum_of(pool, 1000) != 499500 || sum_of(pool, 77) != 2926) return 1;
      std::set<uint32_t> workers;
      for (const Piece& p : pieces_of(pool, 1000, 1)) workers.insert(p.worker);
      return workers.empty() ? 2 : 0;
    }), 0);
    EXPECT_EQ(sum_of(pool, 1000), 499500);
  }
}

TEST(ThreadPool, works_in_a_child_forked_while_another_thread_is_inside_a_call) {
  ThreadPool pool(3);
  std::atomic<bool> stop{false};
  std::thread busy([&] { while (!stop) sum_of(pool, 200); });
  for (int i = 0; i < 20; ++i) EXPECT_EQ(exit_code_of_child([&] { return sum_of(pool, 1000) == 499500 ? 0 : 1; }), 0);
  stop = true;
  busy.join();
}

TEST(ThreadPool, of_a_parent_can_be_destroyed_in_a_child_that_never_used_it) {
  auto pool = std::make_unique<ThreadPool>(3);
  sum_of(*pool, 100);
  EXPECT_EQ(exit_code_of_child([&] { pool.reset(); return 0; }), 0);
}
#endif

// Loading a fast-math library on the thread that first uses the pool must not colour the workers (K12).
TEST(ThreadPool, runs_workers_in_the_default_floating_point_environment) {
  std::fenv_t saved;
  std::fegetenv(&saved);
  ThreadPool pool(3);
  std::atomic<int> wrong{0}, others{0};
  const auto caller = std::this_thread::get_id();
  volatile double tiny = 1e-323;
  std::fesetround(FE_UPWARD);
#if defined(__x86_64__)
  _mm_setcsr(_mm_getcsr() | 0x8040);  // flush to zero, denormals are zero
#endif
  for (int round = 0; round < 20; ++round) {
    run(pool, 12, 1, [&](int64_t, int64_t, uint32_t) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      if (std::this_thread::get_id() == caller) return;
      ++others;
      if (std::fegetround() != FE_TONEAREST || !(tiny * 1.0 != 0.0)) ++wrong;
    });
  }
  std::fesetenv(&saved);
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(others, 0);
}

TEST(ThreadPool, undoes_what_a_piece_did_to_the_floating_point_environment_of_a_worker) {
  ThreadPool pool(2);
  std::atomic<int> wrong{0};
  const auto caller = std::this_thread::get_id();
  for (int round = 0; round < 40; ++round) {
    run(pool, 8, 1, [&](int64_t begin, int64_t, uint32_t) {
      std::this_thread::sleep_for(std::chrono::microseconds(300));
      if (std::this_thread::get_id() == caller) return;
      if (begin == 0 && std::fegetround() != FE_TONEAREST) ++wrong;
      if (round % 2 == 0 && begin == 7) std::fesetround(FE_DOWNWARD);
      if (round % 2 == 1 && std::fegetround() != FE_TONEAREST) ++wrong;
    });
  }
  EXPECT_EQ(wrong, 0);
}
