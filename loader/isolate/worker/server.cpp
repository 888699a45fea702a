#include "loader/isolate/worker/server.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "kernel/fp_env.h"
#include "kernel/status.h"
#include "loader/handshake.h"
#include "loader/open.h"

namespace tenon::loader::isolate {
namespace {

using kernel::fail;
constexpr size_t kMostFailures = 4096;

}  // namespace

tn_status Server::malformed(Task& t) {
  return fail(&t.diag, TN_E_BUG, kernel::id(kernel::kLoad, 46), "a request to a worker process is malformed\nwhy: it ends too early\ntry: install library and worker of one version");
}

void Server::serve_lane(int socket) noexcept {
  Channel lane(socket);
  uint32_t kind = 0;
  std::string request;
  while (lane.receive(&kind, &request) == Channel::Got::Frame) {
    Task t{lane, (kind & kPosted) != 0, Reader(request), {}, {}};
    t.diag.size = sizeof t.diag;
    tn_status status = TN_OK;
    {
      const kernel::FpModeGuard keep;  // lanes live long: what one call sets must not reach the next
      status = dispatch(static_cast<Call>(kind & ~kPosted), t);
    }
    if (t.posted) continue;
    Writer answer;
    const uint32_t told = status != TN_OK || t.diag.msg[0] != 0 || t.diag.id != 0;
    answer.put(status), answer.put(told);
    if (told != 0) answer.put(t.diag);
    answer.put_bytes(t.out.bytes().data(), t.out.bytes().size());
    if (!lane.send(kAnswer, answer.bytes())) return;
  }
}

tn_status Server::dispatch(Call call, Task& t) {
  switch (call) {
    case Call::Load: return load(t);
    case Call::Open: return open(t);
    case Call::Quiesce: return quiesce(t);
    case Call::Close: return table_.close(self_), TN_OK;
    case Call::Devices: return devices(t);
    case Call::Caps: return caps(t);
    case Call::DeviceOpen: return device_open(t);
    case Call::DeviceClose: {
      const std::unique_ptr<OpenDevice> d(pointer<OpenDevice>(t.in));
      return table_.device_close(d->device), TN_OK;
    }
    case Call::Spaces: return spaces(t);
    case Call::Alloc: return alloc(t);
    case Call::Free: {
      auto* d = pointer<OpenDevice>(t.in);
      const auto buffer = t.in.get<tn_buffer>();
      return table_.free(d->device, &buffer), TN_OK;
    }
    case Call::Map: return map(t);
    case Call::Unmap: {
      void* first = pointer<void>(t.in);
      return munmap(first, t.in.get<uint64_t>()), TN_OK;
    }
    case Call::Copy: return copy(t);
    case Call::QueueOpen: return queue_open(t);
    case Call::QueueClose: {
      const std::unique_ptr<OpenQueue> q(pointer<OpenQueue>(t.in));
      return table_.queue_close(q->queue), TN_OK;
    }
    case Call::TimelineOpen: return timeline_open(t);
    case Call::TimelineClose: {
      const std::unique_ptr<OpenLine> line(pointer<OpenLine>(t.in));
      return table_.timeline_close(line->line), TN_OK;
    }
    case Call::Signal: return signal(t);
    case Call::Wait: return wait(t);
    case Call::Query: return query(t);
    default: return dispatch_kernels(call, t);
  }
}

// The verdict on the file, and what its table holds.
tn_status Server::load(Task& t) {
  OpenedLibrary opened;
  auto refused = open_library(path_, true, &opened);
  if (!refused) refused = query_table(opened.query, abi_, host_.table(), &table_);
  library_ = opened.handle;
  t.out.put(static_cast<uint32_t>(refused ? refused->code : Code::InUse));
  t.out.put(refused ? refused->native_code : int64_t{0});
  t.out.put_text(refused ? refused->cause.c_str() : "");
  t.out.put<uint8_t>(table_.devices != nullptr), t.out.put<uint8_t>(table_.timeline_open != nullptr);
  t.out.put<uint8_t>(table_.caps != nullptr), t.out.put<uint8_t>(table_.kernels != nullptr);
  return TN_OK;
}

// Rules of ops are functions that build graphs of the program's: they cannot be called from here.
tn_status Server::open(Task& t) {
  if (tn_status s = table_.open(host_.table(), &self_, &t.diag)) return s;
  const tn_op_def* defs = nullptr;
  uint32_t stride = 0, n = 0;
  tn_status s = table_.ops != nullptr ? table_.ops(self_, &defs, &stride, &n, &t.diag) : TN_OK;
  if (s == TN_OK && n != 0)
    s = fail(&t.diag, TN_E_UNSUPPORTED, kernel::id(kernel::kLoad, 26), "the plugin cannot run in a process of its own\nwhy: it defines %u ops, whose rules are called while graphs are built\ntry: take it out of loader.isolate", n);
  if (s != TN_OK) table_.close(self_);
  return s;
}

// Tries again and again for as long as wanted, and tells the program in between that it is not forgotten. A plugin that does
// not use the time it is given has its own reasons: its answer stands.
template <class Attempt>
tn_status Server::in_slices(Task& t, uint64_t timeout_ns, Attempt attempt) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  const uint64_t slice = uint64_t{beat_ms_} * 1000000;
  for (;;) {
    const auto spent = static_cast<uint64_t>(std::chrono::nanoseconds(Clock::now() - begin).count());
    const uint64_t left = timeout_ns == TN_FOREVER ? TN_FOREVER : timeout_ns > spent ? timeout_ns - spent : 0;
    const auto tried = Clock::now();
    const tn_status s = attempt(std::min(left, slice));
    const bool used_its_time = static_cast<uint64_t>(std::chrono::nanoseconds(Clock::now() - tried).count()) >= slice / 2;
    if (s != TN_E_TIMEOUT || left <= slice || !used_its_time) return s;
    t.diag = {};
    t.diag.size = sizeof t.diag;
    if (!t.lane.send(kBeat, {})) return s;  // nobody waits any more
  }
}

tn_status Server::quiesce(Task& t) {
  // Nothing of the program is at work any more: what is not let go of soon is not going to be.
  const auto timeout = std::min(t.in.get<uint64_t>(), uint64_t{beat_ms_} * 4000000);
  uint32_t live = 0;
  const tn_status s = in_slices(t, timeout, [&](uint64_t ns) {
    const tn_status one = table_.quiesce(self_, ns, &live, &t.diag);
    return one == TN_OK && live != 0 && ns != 0 ? TN_E_TIMEOUT : one;
  });
  t.out.put(live);
  return s == TN_E_TIMEOUT ? TN_OK : s;
}

tn_status Server::devices(Task& t) {
  std::vector<tn_device_info> infos;
  uint32_t n = 0;
  if (tn_status s = table_.devices(self_, nullptr, sizeof(tn_device_info), 0, &n, &t.diag)) return s;
  infos.resize(std::min(n, kMostDevices));
  for (tn_device_info& info : infos) info.size = sizeof info;
  if (!infos.empty())
    if (tn_status s = table_.devices(self_, infos.data(), sizeof infos[0], static_cast<uint32_t>(infos.size()), &n, &t.diag)) return s;
  t.out.put(n);
  for (tn_device_info& info : infos) {
    info.next = nullptr;
    t.out.put(info);
  }
  return TN_OK;
}

tn_status Server::caps(Task& t) {
  const auto index = t.in.get<uint32_t>();
  uint32_t n = 0;
  if (table_.caps == nullptr) return t.out.put(n), TN_OK;
  if (tn_status s = table_.caps(self_, index, nullptr, 0, &n, &t.diag)) return s;
  std::vector<tn_cap> list(n);
  if (n != 0)
    if (tn_status s = table_.caps(self_, index, list.data(), n, &n, &t.diag)) return s;
  list.resize(std::min<size_t>(list.size(), n));
  t.out.put(static_cast<uint32_t>(list.size()));
  for (const tn_cap& cap : list) {
    t.out.put(cap);
    if (cap.type == TN_CAP_TEXT) t.out.put_text(cap.v.s);
  }
  return TN_OK;
}

tn_status Server::device_open(Task& t) {
  const auto index = t.in.get<uint32_t>();
  auto d = std::make_unique<OpenDevice>();
  if (tn_status s = table_.device_open(self_, index, nullptr, &d->device, &t.diag)) return s;
  std::vector<tn_device_info> infos(index + 1);
  for (tn_device_info& info : infos) info.size = sizeof info;
  uint32_t n = 0;
  if (table_.devices(self_, infos.data(), sizeof infos[0], index + 1, &n, nullptr) == TN_OK && n > index) d->info = infos[index];
  if (table_.caps != nullptr && table_.caps(self_, index, nullptr, 0, &n, nullptr) == TN_OK && n != 0) {
    d->caps.resize(n);
    table_.caps(self_, index, d->caps.data(), n, &n, nullptr);
  }
  const auto* native = table_.iface != nullptr ? static_cast<const tn_native*>(table_.iface(self_, "tn.native.v1")) : nullptr;
  d->ref = {sizeof d->ref, 0, d->info.kind, native != nullptr ? native->native_kind : 0, 0, d->device, &d->info, native, self_, d->caps.data(), static_cast<uint32_t>(d->caps.size()), 0};
  if (native != nullptr && native->device != nullptr) native->device(self_, d->device, &d->ref.native_handle, nullptr);
  const uint32_t flags = d->info.flags;
  put_pointer(t.out, d.release());
  t.out.put(flags);
  return TN_OK;
}

tn_status Server::spaces(Task& t) {
  auto* d = pointer<OpenDevice>(t.in);
  tn_space_info infos[8]{};
  for (tn_space_info& s : infos) s.size = sizeof s;
  uint32_t n = 0;
  if (tn_status s = table_.spaces(d->device, infos, sizeof infos[0], 8, &n, &t.diag)) return s;
  t.out.put(std::min(n, 8u));
  for (uint32_t i = 0; i < std::min(n, 8u); ++i) t.out.put(infos[i]);
  return TN_OK;
}

tn_status Server::alloc(Task& t) {
  auto* d = pointer<OpenDevice>(t.in);
  const auto space = t.in.get<uint32_t>();
  const auto bytes = t.in.get<uint64_t>(), align = t.in.get<uint64_t>();
  tn_buffer buffer{};
  if (tn_status s = table_.alloc(d->device, space, bytes, align, &buffer, &t.diag)) return s;
  t.out.put(buffer);
  return TN_OK;
}

tn_status Server::map(Task& t) {
  const auto bytes = t.in.get<uint64_t>();
  const int file = t.lane.take_descriptor();
  void* pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  const int error = errno;
  if (file >= 0) close(file);
  if (pages == MAP_FAILED)
    return fail(&t.diag, TN_E_OOM, kernel::id(kernel::kMem, 2), "host memory is exhausted\nwhy: %llu bytes to share with the program: %s\ntry: free tensors or use a smaller batch", static_cast<unsigned long long>(bytes), std::strerror(error));
  put_pointer(t.out, pages);
  return TN_OK;
}

tn_status Server::copy(Task& t) {
  auto* q = pointer<OpenQueue>(t.in);
  const auto to = t.in.get<tn_view>(), from = t.in.get<tn_view>();
  return t.in.good() ? table_.copy(q->queue, &to, &from, &t.diag) : malformed(t);
}

tn_status Server::queue_open(Task& t) {
  auto* d = pointer<OpenDevice>(t.in);
  const auto flags = t.in.get<uint32_t>();
  const auto priority = t.in.get<int32_t>();
  auto q = std::make_unique<OpenQueue>();
  if (tn_status s = table_.queue_open(d->device, flags, priority, &q->queue, &t.diag)) return s;
  put_pointer(t.out, q.release());
  return TN_OK;
}

tn_status Server::timeline_open(Task& t) {
  auto* d = pointer<OpenDevice>(t.in);
  const auto initial = t.in.get<uint64_t>();
  auto line = std::make_unique<OpenLine>();
  if (tn_status s = table_.timeline_open(d->device, initial, &line->line, &t.diag)) return s;
  put_pointer(t.out, line.release());
  return TN_OK;
}

tn_status Server::signal(Task& t) {
  auto* q = pointer<OpenQueue>(t.in);
  auto* line = pointer<OpenLine>(t.in);
  const auto value = t.in.get<uint64_t>();
  const bool failed = q != nullptr && q->failed;
  if (failed) {  // noted first: the value may be reached before signal() returns
    std::lock_guard lock(line->mutex);
    if (line->failures.size() >= kMostFailures) line->failures.erase(line->failures.begin());
    line->failures.emplace_back(value, q->failure);
  }
  const tn_status s = table_.signal(q != nullptr ? q->queue : nullptr, line->line, value, &t.diag);
  if (failed && s == TN_OK) q->failed = false;
  if (failed && s != TN_OK) {
    std::lock_guard lock(line->mutex);
    line->failures.pop_back();
  }
  return s;
}

tn_status Server::wait(Task& t) {
  auto* q = pointer<OpenQueue>(t.in);
  auto* line = pointer<OpenLine>(t.in);
  const auto value = t.in.get<uint64_t>(), timeout = t.in.get<uint64_t>();
  if (q != nullptr) return table_.wait(q->queue, line->line, value, timeout, &t.diag);
  return in_slices(t, timeout, [&](uint64_t ns) { return table_.wait(nullptr, line->line, value, ns, &t.diag); });
}

tn_status Server::query(Task& t) {
  auto* line = pointer<OpenLine>(t.in);
  const auto after = t.in.get<uint64_t>();
  uint64_t value = 0, failed = 0;
  if (tn_status s = table_.query(line->line, after, &value, &failed, &t.diag)) return s;
  {
    std::lock_guard lock(line->mutex);
    for (const auto& [at, why] : line->failures) {
      if (at <= after || at > value || (failed != 0 && failed <= at)) continue;
      failed = at, t.diag = why;
      break;
    }
  }
  t.out.put(value), t.out.put(failed);
  return TN_OK;
}

}  // namespace tenon::loader::isolate
