// loader/isolate/worker/host.h - the tn_host of a plugin that runs in a worker process.
//
// Log lines and questions about the configuration go to the program over the event channel; memory and the thread pool are
// the worker's own. Threads: any.
#pragma once
#include <tenon/plugin.h>

#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "kernel/thread_pool.h"
#include "loader/isolate/channel.h"

namespace tenon::loader::isolate {

class WorkerHost {
 public:
  WorkerHost(Channel& events, uint32_t threads);
  const tn_host* table() const { return &table_; }
  void answered(const std::string& payload);  // a Reply came in

 private:
  static void log(void* ctx, uint32_t level, const char* msg, uint32_t len);
  static const char* config(void* ctx, const char* key);
  static int32_t cancelled(void* ctx);
  std::string ask(uint32_t kind, const std::string& payload);

  Channel& events_;
  kernel::ThreadPool pool_;
  tn_host table_{};
  std::mutex send_mutex_;   // of the channel
  std::mutex ask_mutex_;    // one question at a time; also of values_
  std::map<std::string, std::pair<bool, std::string>> values_;  // answers live until close
  std::mutex answer_mutex_;
  std::condition_variable answer_came_;
  bool has_answer_ = false;
  std::string answer_;
};

}  // namespace tenon::loader::isolate
