// loader/isolate/worker_process.h - the program's side of one worker process: its start, its calls, its end.
//
//   WorkerProcess worker(job);
//   worker.start(diag);
//   std::unique_ptr<Lane> lane = worker.open_lane(diag);
//   worker.call(lane.get(), Call::Alloc, request, &reply, diag);
//
// A thread of its own starts the worker, serves what the plugin asks of its host, and notices the end. From then on every
// call, also one that waits at that moment, fails with TN_E_DEVICE_LOST and the cause: nothing waits longer than the limit,
// or what its patience allows (wire.h). After fork() the child has no worker: its calls fail with TN_E_STATE.
// Threads: any; a lane serves one at a time.
#pragma once
#include <tenon/plugin.h>

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "loader/isolate/channel.h"
#include "loader/isolate/wire.h"

namespace tenon::loader::isolate {

struct Job {
  std::string program;         // the executable tenon-worker
  std::string plugin, id;      // path and id of the plugin
  int descriptor = -1;         // >= 0: the worker opens this descriptor's file instead of the path
  uint32_t timeout_ms = 10000; // without an answer
  uint32_t threads = 1;        // of the pool behind host->parallel in the worker
  uint32_t abi = TN_ABI_CURRENT;
  bool secure = false;         // raised rights: the worker gets no variable of the user
};

class WorkerProcess;

// A connection with a thread of its own on the other side.
class Lane {
 public:
  Lane(WorkerProcess* owner, int socket);
  ~Lane();
  Channel channel;

 private:
  WorkerProcess* const owner_;
};

class WorkerProcess {
 public:
  explicit WorkerProcess(Job job);
  ~WorkerProcess();  // ends the worker
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  tn_status start(tn_diag*);
  const Job& job() const { return job_; }
  pid_t pid() const { return pid_; }
  void serve(const tn_host* host) { host_.store(host); }  // whom log lines and questions go to
  std::unique_ptr<Lane> open_lane(tn_diag*);
  // One call and its answer. lane NULL: one that is free. A failure's diag is the plugin's own, if it filled it.
  tn_status call(Lane* lane, Call what, const Writer& request, std::string* reply, tn_diag* diag, int descriptor = -1);
  // A call that nobody waits for, on a lane of its own order. TN_OK: it is on its way.
  tn_status post(Lane* lane, Call what, const Writer& request, tn_diag* diag);
  // Why nothing can be called, as the answer of a call; TN_OK when something can.
  tn_status usable(Call what, tn_diag* diag) const;
  bool forked() const { return *own_ == 0; }  // this is a child process of the one that started the worker

 private:
  friend class Lane;
  class Deadline;
  int spawn(int events);
  void watch();
  bool serve_frame(uint32_t kind, const std::string& payload);
  std::string answer_for(uint32_t kind, const std::string& payload) const;
  void note_end(int status, bool known);
  tn_status lost(Call what, tn_diag* diag) const;
  void give_up(Call what);
  tn_status send(Lane* lane, Call what, uint32_t kind, const Writer& request, tn_diag* diag, int descriptor = -1);
  tn_status receive(Lane* lane, Call what, std::string* reply, tn_diag* diag);
  std::unique_ptr<Lane> take_lane(tn_diag* diag);

  const Job job_;
  volatile char* own_ = nullptr;  // 1 here, 0 in a process that was forked
  std::atomic<pid_t> pid_{0};
  std::atomic<const tn_host*> host_{nullptr};
  std::unique_ptr<Channel> events_;
  int worker_end_ = -1;
  std::mutex events_mutex_;       // of sending
  mutable std::mutex mutex_;      // of all below
  mutable std::condition_variable changed_;
  bool started_ = false, ended_ = false;
  int start_error_ = 0;
  std::string cause_;             // of the end; the first one counts
  std::vector<Lane*> lanes_;
  std::vector<std::unique_ptr<Lane>> free_lanes_;
  std::atomic<bool> lost_{false}, stopping_{false};
  std::thread* watcher_ = nullptr;
};

}  // namespace tenon::loader::isolate
