// loader/isolate/proxy.cpp - lifecycle, devices and memory of an isolated plugin.
#include "loader/isolate/proxy.h"

#include <algorithm>
#include <new>

#include "kernel/status.h"

namespace tenon::loader::isolate {
namespace {

using kernel::fail;

// What a struct of this build is cut to for a caller of another version.
template <class T>
void give(const T& value, void* out, uint32_t stride, uint32_t i) {
  T sized = value;
  sized.size = static_cast<uint32_t>(std::min<size_t>(stride, sizeof sized));
  std::memcpy(static_cast<char*>(out) + size_t{i} * stride, &sized, sized.size);
}

tn_status quiesce(tn_instance* self, uint64_t timeout_ns, uint32_t* out_live, tn_diag* diag) {
  Instance* in = of(self);
  Writer w;
  w.put(timeout_ns);
  std::string reply;
  const tn_status s = in->call(Call::Quiesce, w, &reply, diag);
  *out_live = s == TN_OK ? Reader(reply).get<uint32_t>() : 0;
  // Nothing of a worker that is gone is alive.
  return s == TN_E_DEVICE_LOST ? TN_OK : s;
}

void close(tn_instance* self) {
  Instance* in = of(self);
  if (in->worker->forked()) return;  // all of it is the parent's
  std::string reply;
  in->call(Call::Close, {}, &reply, nullptr);
  delete in;
}

const void* iface(tn_instance*, const char*) { return nullptr; }

tn_status devices(tn_instance* self, tn_device_info* out, uint32_t stride, uint32_t cap, uint32_t* out_n, tn_diag* diag) {
  std::string reply;
  if (tn_status s = of(self)->call(Call::Devices, {}, &reply, diag)) return s;
  Reader r(reply);
  *out_n = r.get<uint32_t>();
  for (uint32_t i = 0; i < *out_n && i < cap; ++i) {
    const auto info = r.get<tn_device_info>();
    if (!r.good()) break;
    give(info, out, stride, i);
  }
  return TN_OK;
}

// Fetched once: the texts live until close.
tn_status fetch_caps(Instance* in, uint32_t index, std::unique_ptr<std::vector<tn_cap>>* out, tn_diag* diag) {
  Writer w;
  w.put(index);
  std::string reply, text;
  if (tn_status s = in->call(Call::Caps, w, &reply, diag)) return s;
  Reader r(reply);
  auto list = std::make_unique<std::vector<tn_cap>>();
  for (uint32_t n = r.get<uint32_t>(); n != 0 && r.good(); --n) {
    list->push_back(r.get<tn_cap>());
    if (list->back().type != TN_CAP_TEXT) continue;
    list->back().v.s = nullptr;
    if (r.get_text(&text)) list->back().v.s = in->texts.emplace_back(text).c_str();
  }
  *out = std::move(list);
  return TN_OK;
}

tn_status caps(tn_instance* self, uint32_t index, tn_cap* out, uint32_t cap, uint32_t* out_n, tn_diag* diag) {
  Instance* in = of(self);
  std::lock_guard lock(in->caps_mutex);
  if (index < 256 && in->caps.size() <= index) in->caps.resize(index + 1);
  std::unique_ptr<std::vector<tn_cap>> beyond;
  auto& list = index < 256 ? in->caps[index] : beyond;
  if (list == nullptr)
    if (tn_status s = fetch_caps(in, index, &list, diag)) return s;
  *out_n = static_cast<uint32_t>(list->size());
  std::copy_n(list->begin(), std::min<size_t>(cap, list->size()), out);
  return TN_OK;
}

tn_status fetch_spaces(DeviceProxy* d, std::vector<tn_space_info>* out, tn_diag* diag) {
  Writer w;
  w.put(d->remote);
  std::string reply;
  if (tn_status s = d->owner->call(Call::Spaces, w, &reply, diag)) return s;
  Reader r(reply);
  for (uint32_t n = r.get<uint32_t>(); n != 0 && r.good(); --n) {
    out->push_back(r.get<tn_space_info>());
    out->back().next = nullptr;
    // Its host address would be one of the worker.
    if (!d->inline_work) out->back().flags &= ~uint32_t{TN_SPACE_HOST_VISIBLE | TN_SPACE_COHERENT};
  }
  return TN_OK;
}

tn_status device_open(tn_instance* self, uint32_t index, const tn_ext* options, tn_device** out, tn_diag* diag) {
  Instance* in = of(self);
  for (; options != nullptr; options = options->next) {
    if ((options->id & TN_EXT_CRITICAL) != 0)
      return fail(diag, TN_E_EXT, kernel::id(kernel::kAbi, 5), "device_open: unknown critical option\nwhy: extension 0x%08x cannot be sent to a worker process\ntry: leave it out", options->id);
  }
  Writer w;
  w.put(index);
  std::string reply;
  if (tn_status s = in->call(Call::DeviceOpen, w, &reply, diag)) return s;
  Reader r(reply);
  const auto remote = r.get<uint64_t>();
  auto d = std::unique_ptr<DeviceProxy>(new DeviceProxy{in, remote, index, (r.get<uint32_t>() & TN_DEVICE_INLINE) != 0, {}});
  if (d->inline_work) fetch_spaces(d.get(), &d->spaces, nullptr);
  *out = reinterpret_cast<tn_device*>(d.release());
  return TN_OK;
}

// A call for an object that goes. Its failure means that the object is gone already.
void drop(Instance* in, Call what, uint64_t remote) {
  Writer w;
  w.put(remote);
  std::string reply;
  in->call(what, w, &reply, nullptr);
}

void device_close(tn_device* device) {
  DeviceProxy* d = of(device);
  if (d->owner->worker->forked()) return;
  drop(d->owner, Call::DeviceClose, d->remote);
  delete d;
}

tn_status spaces(tn_device* device, tn_space_info* out, uint32_t stride, uint32_t cap, uint32_t* out_n, tn_diag* diag) {
  std::vector<tn_space_info> all;
  if (tn_status s = fetch_spaces(of(device), &all, diag)) return s;
  *out_n = static_cast<uint32_t>(all.size());
  for (uint32_t i = 0; i < *out_n && i < cap; ++i) give(all[i], out, stride, i);
  return TN_OK;
}

// Memory of an inline device: the program reads and writes it in place, so it is shared memory whatever the plugin would take.
tn_status alloc_shared(DeviceProxy* d, uint32_t space, uint64_t bytes, uint64_t align, tn_buffer* out, tn_diag* diag) {
  const auto place = std::find_if(d->spaces.begin(), d->spaces.end(), [&](const tn_space_info& s) { return s.id == space; });
  if (place == d->spaces.end() || (align & (align - 1)) != 0)
    return fail(diag, TN_E_ARG, kernel::id(kernel::kAbi, 7), "alloc: no such memory\nwhy: space %u, alignment %llu; the device has %zu spaces, alignments are powers of two\ntry: use a space that spaces() lists", space,
                static_cast<unsigned long long>(align), d->spaces.size());
  const uint64_t budget = place->budget_bytes != 0 ? place->budget_bytes : UINT64_MAX, used = d->used_bytes.fetch_add(bytes);
  tn_status s = TN_OK;
  if (bytes > budget || used > budget - bytes)
    s = fail(diag, TN_E_OOM, kernel::id(kernel::kMem, 1), "an isolated device is out of memory\nwhy: %llu bytes asked, %llu of %llu in use\ntry: use a smaller batch, or free tensors", static_cast<unsigned long long>(bytes),
             static_cast<unsigned long long>(used), static_cast<unsigned long long>(budget));
  SharedBlock block;
  if (s == TN_OK) s = d->owner->heap.allocate(bytes, align, &block, diag);
  if (s != TN_OK) return d->used_bytes.fetch_sub(bytes), s;
  *out = {reinterpret_cast<uintptr_t>(block.host), 0, bytes, block.host, space, 0};
  return TN_OK;
}

tn_status alloc(tn_device* device, uint32_t space, uint64_t bytes, uint64_t align, tn_buffer* out, tn_diag* diag) {
  DeviceProxy* d = of(device);
  if (tn_status s = d->owner->worker->usable(Call::Alloc, diag)) return s;
  if (d->inline_work) return alloc_shared(d, space, bytes, align, out, diag);
  Writer w;
  w.put(d->remote), w.put(space), w.put(bytes), w.put(align);
  std::string reply;
  if (tn_status s = d->owner->call(Call::Alloc, w, &reply, diag)) return s;
  *out = Reader(reply).get<tn_buffer>();
  out->host = nullptr;
  return TN_OK;
}

void free_buffer(tn_device* device, const tn_buffer* buffer) {
  DeviceProxy* d = of(device);
  if (d->owner->worker->forked()) return;
  if (d->inline_work) {
    d->used_bytes.fetch_sub(buffer->bytes);
    return d->owner->heap.free(static_cast<char*>(buffer->host));
  }
  Writer w;
  w.put(d->remote), w.put(*buffer);
  std::string reply;
  d->owner->call(Call::Free, w, &reply, nullptr);
}

tn_status ops(tn_instance*, const tn_op_def** out, uint32_t* out_stride, uint32_t* out_n, tn_diag*) {
  *out = nullptr, *out_stride = sizeof(tn_op_def), *out_n = 0;
  return TN_OK;
}

}  // namespace

std::optional<Verdict> start_worker(const Job& job, std::shared_ptr<WorkerProcess>* out, Facts* facts) {
  auto worker = std::make_shared<WorkerProcess>(job);
  tn_diag diag{};
  diag.size = sizeof diag;
  if (worker->start(&diag) != TN_OK) return verdict(Code::CannotIsolate, std::string(diag.msg).substr(0, std::string(diag.msg).find("\ntry: ")));
  std::string reply;
  if (worker->call(nullptr, Call::Load, {}, &reply, &diag) != TN_OK) {
    const std::string text = diag.msg;
    const size_t why = text.find("\nwhy: "), end = text.find("; asked for was");
    return verdict(Code::OpenError, why == std::string::npos ? text : text.substr(why + 6, end - why - 6) + " in constructor or query");
  }
  Reader r(reply);
  const auto code = static_cast<Code>(r.get<uint32_t>());
  const auto native = r.get<int64_t>();
  std::string cause;
  r.get_text(&cause);
  if (code != Code::InUse) return verdict(code, cause, native);
  const bool has_devices = r.get<uint8_t>() != 0;
  facts->timelines = r.get<uint8_t>() != 0, facts->caps = r.get<uint8_t>() != 0, facts->kernels = r.get<uint8_t>() != 0;
  if (!has_devices) return verdict(Code::CannotIsolate, "it has no devices of its own, only kernels for those of others");
  *out = std::move(worker);
  return std::nullopt;
}

tn_plugin proxy_table(const Facts& facts, OpenEntry open) {
  tn_plugin t{};
  t.size = sizeof t, t.abi = TN_ABI_CURRENT;
  t.open = open, t.quiesce = quiesce, t.close = close, t.iface = iface;
  t.devices = devices, t.device_open = device_open, t.device_close = device_close;
  if (facts.caps) t.caps = caps;
  t.spaces = spaces, t.alloc = alloc, t.free = free_buffer, t.copy = copy;
  t.queue_open = queue_open, t.queue_close = queue_close;
  if (facts.timelines) t.timeline_open = timeline_open, t.timeline_close = timeline_close, t.signal = signal, t.wait = wait, t.query = query;
  if (facts.kernels) t.kernels = kernels;
  t.ops = ops;
  return t;
}

tn_status open_proxy(std::shared_ptr<WorkerProcess> worker, const tn_host* host, tn_instance** out, tn_diag* diag) {
  worker->serve(host);
  std::string reply;
  if (tn_status s = worker->call(nullptr, Call::Open, {}, &reply, diag)) return s;
  auto in = std::make_unique<Instance>(std::move(worker));
  if (tn_status s = fetch_rows(in.get(), diag)) {
    in->call(Call::Close, {}, &reply, nullptr);
    return s;
  }
  *out = reinterpret_cast<tn_instance*>(in.release());
  return TN_OK;
}

}  // namespace tenon::loader::isolate
