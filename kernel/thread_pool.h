// kernel/thread_pool.h - the one pool of worker threads behind tn_host.parallel and tn_parallel.
//
// Workers sleep on a futex-backed wait (no busy waiting that starves a neighbour); the calling thread takes part. A call
// from inside a piece runs inline. After fork() the child's pool starts its workers anew on first use. Workers run in the
// default floating-point environment. The first call starts the threads, so that programs that need none have none.
// Threads: parallel() from any thread; concurrent calls share the workers.
#pragma once
#include <tenon/types.h>

#include <cstdint>
#include <memory>

namespace tenon::kernel {

class ThreadPool {
 public:
  explicit ThreadPool(uint32_t threads);  // total width, the caller included; at least 1
  ~ThreadPool();                          // waits for running pieces
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  uint32_t size() const;
  // Runs fn(arg, begin, end, worker) over [0, n) in pieces of at least `grain` (>= 1); worker < size(). Blocks.
  void parallel(int64_t n, int64_t grain, tn_range_fn fn, void* arg);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Physical cores this process may use (affinity and cgroup quota respected), at least 1.
uint32_t default_thread_count();

}  // namespace tenon::kernel
