// How it works: a call becomes a Job on the caller's stack, listed in the crew while pieces are left. Whoever takes part
// claims pieces by number; a worker that wakes late finds nothing left, so the caller never waits for a sleeper, only for
// pieces that are being run. Workers look for a few microseconds for the next job before they sleep.
#include "kernel/thread_pool.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "kernel/fp_env.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tenon::kernel {

void default_fp_env() {
#if defined(__x86_64__)
  // Reading MXCSR is cheap, loading the x87 environment is not. 0x3f: the exception flags, which are no setting.
  if ((_mm_getcsr() & ~0x3fu) == 0x1f80u) return;
#endif
  std::fesetenv(FE_DFL_ENV);
#if defined(__x86_64__)
  _mm_setcsr(0x1f80u);
#endif
}

void FpModeGuard::restore() const {
#if defined(__x86_64__)
  // Rounding lies in both units, and fesetround sets both: bits 13 and 14 of MXCSR, 10 and 11 of the x87 control word.
  constexpr int kRounding[] = {FE_TONEAREST, FE_DOWNWARD, FE_UPWARD, FE_TOWARDZERO};
  std::fesetround(kRounding[saved_ >> 13 & 3]);
  _mm_setcsr(static_cast<uint32_t>(saved_));
#elif defined(__aarch64__)
  asm volatile("msr fpcr, %0" : : "r"(saved_));
#else
  std::fesetround(static_cast<int>(saved_));
#endif
}

namespace {

constexpr std::chrono::nanoseconds kSpin{4000};
constexpr int64_t kPiecesPerThread = 4;  // evens out late wake-ups and unequal pieces

struct Job {
  tn_range_fn fn;
  void* arg;
  int64_t n, pieces;
  std::atomic<int64_t> next{0};
  uint32_t workers = 0;  // taking part, under the crew's mutex

  bool has_pieces() const { return next.load(std::memory_order_relaxed) < pieces; }

  // Pieces differ by at most one element; none is shorter than n / pieces.
  int64_t begin_of(int64_t piece) const { return n / pieces * piece + std::min(piece, n % pieces); }

  void run_pieces(uint32_t worker) noexcept {
    for (;;) {
      const int64_t piece = next.fetch_add(1, std::memory_order_relaxed);
      if (piece >= pieces) return;
      fn(arg, begin_of(piece), begin_of(piece + 1), worker);
    }
  }
};

void relax() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Waits until `word` differs from `seen`: a short look, then sleep.
void wait_for_change(const std::atomic<uint32_t>& word, uint32_t seen) {
  const auto end = std::chrono::steady_clock::now() + kSpin;
  do {
    for (int i = 0; i < 16; ++i) {
      if (word.load(std::memory_order_acquire) != seen) return;
      relax();
    }
  } while (std::chrono::steady_clock::now() < end);
  word.wait(seen, std::memory_order_acquire);
}

// Which piece this thread is inside of. Per thread, so not shared state; set only while a piece runs.
struct Inside {
  const void* pool = nullptr;
  uint32_t worker = 0;
};
thread_local Inside t_inside;

class InsideScope {
 public:
  InsideScope(const void* pool, uint32_t worker) { t_inside = {pool, worker}; }
  ~InsideScope() { t_inside = {}; }
};

// The worker threads of one process. A forked child gets a new crew, for threads and locks do not survive fork.
class Crew {
 public:
  Crew(const void* pool, uint32_t width) : pool_(pool), width_(width) {}
  ~Crew();
  void run(Job* job);

  const pid_t pid = getpid();
  Crew* before = nullptr;  // the parent process's crew: unusable here, kept so that it is not a leak

 private:
  void start();
  void work(uint32_t worker);
  Job* join(uint32_t* out_seen);
  void leave(Job* job);
  void remove(Job* job);
  void wake(int64_t wanted);

  const void* const pool_;
  const uint32_t width_;
  std::mutex mutex_;
  std::vector<Job*> jobs_;             // those which may have pieces left; under mutex_
  bool started_ = false, stop_ = false;  // under mutex_
  std::vector<std::thread> threads_;
  std::atomic<uint32_t> posted_{0};    // rises with every job: what idle workers wait on
  std::atomic<uint32_t> left_{0};      // rises whenever a job's last worker leaves: what callers wait on
};

Crew::~Crew() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  posted_.fetch_add(1);
  posted_.notify_all();
  for (auto& thread : threads_) thread.join();
}

// Under mutex_. A system that gives no more threads leaves a smaller crew, down to the caller alone.
void Crew::start() {
  started_ = true;
  sigset_t all, old;  // signals of the process are for the program's own threads
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  try {
    threads_.reserve(width_ - 1);
    for (uint32_t worker = 1; worker < width_; ++worker) threads_.emplace_back([this, worker] { work(worker); });
  } catch (const std::system_error&) {
  } catch (const std::bad_alloc&) {
  }
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
}

void Crew::wake(int64_t wanted) {
  posted_.fetch_add(1, std::memory_order_release);
  if (wanted >= static_cast<int64_t>(width_) - 1) {
    posted_.notify_all();
  } else {
    for (int64_t i = 0; i < wanted; ++i) posted_.notify_one();
  }
}

void Crew::remove(Job* job) { std::erase(jobs_, job); }

void Crew::run(Job* job) {
  {
    std::lock_guard lock(mutex_);
    if (!started_) start();
    jobs_.push_back(job);
  }
  wake(job->pieces - 1);
  {
    InsideScope inside(pool_, 0);
    job->run_pieces(0);
  }
  for (;;) {
    const uint32_t seen = left_.load(std::memory_order_acquire);
    {
      std::lock_guard lock(mutex_);
      remove(job);
      if (job->workers == 0) return;
    }
    wait_for_change(left_, seen);
  }
}

// The job with the fewest helpers, so that concurrent calls share the workers. nullptr: none now.
Job* Crew::join(uint32_t* out_seen) {
  *out_seen = posted_.load(std::memory_order_acquire);
  std::lock_guard lock(mutex_);
  Job* best = nullptr;
  for (Job* job : jobs_) {
    if (job->has_pieces() && (best == nullptr || job->workers < best->workers)) best = job;
  }
  if (best != nullptr) ++best->workers;
  return best;
}

void Crew::leave(Job* job) {
  {
    std::lock_guard lock(mutex_);
    if (--job->workers != 0) return;
  }
  // `job` may be gone from here on: its caller may have seen the zero.
  left_.fetch_add(1, std::memory_order_release);
  left_.notify_all();
}

void Crew::work(uint32_t worker) {
  default_fp_env();
  pthread_setname_np(pthread_self(), "tenon-pool");
  for (;;) {
    uint32_t seen = 0;
    Job* job = join(&seen);
    if (job == nullptr) {
      {
        std::lock_guard lock(mutex_);
        if (stop_) return;
      }
      wait_for_change(posted_, seen);
      continue;
    }
    {
      InsideScope inside(pool_, worker);
      job->run_pieces(worker);
    }
    default_fp_env();  // a piece that changed it must not colour the next one
    leave(job);
  }
}

}  // namespace

struct ThreadPool::State {
  uint32_t width = 1;
  std::atomic<Crew*> crew{nullptr};

  // The crew of this process, made anew in a forked child.
  Crew& current(const void* pool) {
    Crew* have = crew.load(std::memory_order_acquire);
    while (have->pid != getpid()) {
      auto fresh = std::make_unique<Crew>(pool, width);
      fresh->before = have;
      if (crew.compare_exchange_strong(have, fresh.get(), std::memory_order_acq_rel)) return *fresh.release();
    }
    return *have;
  }
};

ThreadPool::ThreadPool(uint32_t threads) : state_(std::make_unique<State>()) {
  state_->width = std::max(threads, 1u);
  state_->crew = new Crew(this, state_->width);
}

ThreadPool::~ThreadPool() {
  Crew* crew = state_->crew.load();
  // In a forked child that never used the pool the crew's threads do not exist here: nothing to join, nothing to free.
  if (crew->pid == getpid()) delete crew;
}

uint32_t ThreadPool::size() const { return state_->width; }

void ThreadPool::parallel(int64_t n, int64_t grain, tn_range_fn fn, void* arg) {
  if (n <= 0) return;
  const int64_t width = state_->width;
  const int64_t pieces = std::min(n / std::max<int64_t>(grain, 1), width * kPiecesPerThread);
  if (t_inside.pool != nullptr) {
    // Nested in a piece of this pool the worker's number goes on; it is the only one that is surely free.
    fn(arg, 0, n, t_inside.pool == this ? t_inside.worker : 0);
    return;
  }
  if (pieces <= 1 || width == 1) {
    InsideScope inside(this, 0);
    fn(arg, 0, n, 0);
    return;
  }
  Job job{fn, arg, n, pieces};
  state_->current(this).run(&job);
}

}  // namespace tenon::kernel
