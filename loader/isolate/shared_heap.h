// loader/isolate/shared_heap.h - memory that the program and its worker both see: copies on their way, and the memory of
// devices that work on host memory.
//
// Chunks of anonymous shared memory, mapped in both processes at addresses of their own; blocks are cut from them first fit.
// Owns: the chunks; the worker's half ends with the worker. Blocks that were not given back go with the heap.
// Threads: any.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "loader/isolate/worker_process.h"

namespace tenon::loader::isolate {

struct SharedBlock {
  char* host = nullptr;   // NULL: none
  uint64_t remote = 0;    // the same byte's address in the worker
  uint64_t bytes = 0;
};

class SharedHeap {
 public:
  explicit SharedHeap(WorkerProcess& worker) : worker_(worker) {}
  ~SharedHeap();
  SharedHeap(const SharedHeap&) = delete;
  SharedHeap& operator=(const SharedHeap&) = delete;

  // align: a power of two, at most a page. TN_E_OOM; the errors of a call.
  tn_status allocate(uint64_t bytes, uint64_t align, SharedBlock* out, tn_diag*);
  void free(char* host);
  // The worker's address of a byte of the heap; 0 when the pointer leads elsewhere.
  uint64_t remote_of(const void* host) const;

 private:
  struct Chunk {
    char* host = nullptr;
    uint64_t remote = 0, bytes = 0;
    std::map<uint64_t, uint64_t> free;  // offset -> bytes
    std::map<uint64_t, uint64_t> used;
  };
  tn_status add_chunk(uint64_t bytes, tn_diag*);
  static bool cut(Chunk*, uint64_t bytes, uint64_t align, SharedBlock* out);
  WorkerProcess& worker_;
  mutable std::mutex mutex_;
  std::map<const char*, Chunk> chunks_;  // by first byte
};

}  // namespace tenon::loader::isolate
