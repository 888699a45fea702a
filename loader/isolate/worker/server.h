// loader/isolate/worker/server.h - answers the program's calls with the plugin, inside the worker process.
//
// Each lane has a thread that reads a request, makes the one call that it stands for, and answers. What a request names by
// address was made by this plugin and handed out here before; the program is trusted to hand back nothing else.
// A plugin that throws ends the process: the contract forbids it, and the program then sees how the worker ended.
#pragma once
#include <tenon/plugin.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "loader/isolate/channel.h"
#include "loader/isolate/wire.h"
#include "loader/isolate/worker/host.h"

namespace tenon::loader::isolate {

class Server {
 public:
  Server(std::string path, uint32_t abi, uint32_t beat_ms, WorkerHost& host) : path_(std::move(path)), abi_(abi), beat_ms_(beat_ms), host_(host) {}
  void serve_lane(int socket) noexcept;  // until the program closes it

 private:
  // A device with the reference that its own kernels get.
  struct OpenDevice {
    tn_device* device = nullptr;
    tn_device_info info{};
    std::vector<tn_cap> caps;
    tn_device_ref ref{};
  };
  struct OpenQueue {
    tn_dev_queue* queue = nullptr;
    bool failed = false;      // a posted launch since the last signal; used by the queue's lane
    tn_diag failure{};
  };
  struct OpenLine {
    tn_dev_timeline* line = nullptr;
    std::mutex mutex;
    std::vector<std::pair<uint64_t, tn_diag>> failures;  // values in front of which a posted launch was refused
  };
  struct Prepared {
    const tn_kernel_plan* plan = nullptr;
    const tn_kernel_info* row = nullptr;
    OpenDevice* device = nullptr;
  };
  // One request at work.
  struct Task {
    Channel& lane;
    const bool posted;
    Reader in;
    Writer out;
    tn_diag diag{};
  };
  tn_status dispatch(Call call, Task&);
  tn_status dispatch_kernels(Call call, Task&);
  tn_status load(Task&);
  tn_status open(Task&);
  tn_status quiesce(Task&);
  tn_status devices(Task&);
  tn_status caps(Task&);
  tn_status device_open(Task&);
  tn_status spaces(Task&);
  tn_status alloc(Task&);
  tn_status map(Task&);
  tn_status copy(Task&);
  tn_status queue_open(Task&);
  tn_status timeline_open(Task&);
  tn_status signal(Task&);
  tn_status wait(Task&);
  tn_status query(Task&);
  // server_kernels.cpp
  tn_status kernels(Task&);
  tn_status supports(Task&);
  tn_status prepare(Task&);
  tn_status launch(Task&);
  tn_status packed_bytes(Task&);
  tn_status pack(Task&);
  const tn_kernel_info* row(uint32_t number) const;
  bool read_request(Task&, const tn_kernel_info** row, OpenDevice** device, OpCopy* op) const;

  static constexpr uint32_t kMostDevices = 256;
  template <class T>
  static T* pointer(Reader& in) { return reinterpret_cast<T*>(in.get<uint64_t>()); }
  static void put_pointer(Writer& out, const void* p) { out.put(reinterpret_cast<uint64_t>(p)); }
  static tn_status malformed(Task&);
  template <class Attempt>
  tn_status in_slices(Task&, uint64_t timeout_ns, Attempt attempt);

  const std::string path_;
  const uint32_t abi_, beat_ms_;
  WorkerHost& host_;
  std::shared_ptr<void> library_;
  tn_plugin table_{};
  tn_instance* self_ = nullptr;
  const char* rows_ = nullptr;  // the plugin's own array
  uint32_t row_stride_ = 0, n_rows_ = 0;
};

}  // namespace tenon::loader::isolate
