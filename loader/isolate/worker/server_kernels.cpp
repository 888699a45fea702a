// loader/isolate/worker/server_kernels.cpp - rows, plans and launches, inside the worker process.
#include <algorithm>
#include <cstring>

#include "loader/isolate/worker/server.h"

namespace tenon::loader::isolate {
namespace {

constexpr uint32_t kMostViews = 4096;

const tn_kernel_packed* packed_of(const tn_kernel_info& row) {
  int links = 0;
  for (const tn_ext* e = row.next; e != nullptr && ++links <= 16; e = e->next)
    if (e->id == TN_EXT_KERNEL_PACKED && e->size >= sizeof(tn_kernel_packed)) return reinterpret_cast<const tn_kernel_packed*>(e);
  return nullptr;
}

void put_row(Writer& out, const tn_kernel_info& given) {
  tn_kernel_info row{};
  std::memcpy(static_cast<void*>(&row), &given, std::min<size_t>(given.size, sizeof row));
  if (row.cons == nullptr) row.n_cons = 0;
  out.put(row);
  out.put_text(row.name);
  out.put_bytes(row.cons, sizeof(tn_constraint) * row.n_cons);
  std::vector<uint32_t> critical;
  int links = 0;
  for (const tn_ext* e = row.next; e != nullptr && ++links <= 16; e = e->next)
    if (e->id != TN_EXT_KERNEL_PACKED && (e->id & TN_EXT_CRITICAL) != 0) critical.push_back(e->id);
  out.put(static_cast<uint32_t>(critical.size()));
  out.put_bytes(critical.data(), sizeof(uint32_t) * critical.size());
  const tn_kernel_packed* packed = packed_of(row);
  out.put(packed != nullptr ? *packed : tn_kernel_packed{});
  out.put_text(packed != nullptr ? packed->layout : nullptr);
}

}  // namespace

tn_status Server::dispatch_kernels(Call call, Task& t) {
  switch (call) {
    case Call::Kernels: return kernels(t);
    case Call::Supports: return supports(t);
    case Call::Prepare: return prepare(t);
    case Call::Launch: return launch(t);
    case Call::PackedBytes: return packed_bytes(t);
    case Call::Pack: return pack(t);
    case Call::Retire: {
      const std::unique_ptr<Prepared> p(pointer<Prepared>(t.in));
      return p->row->retire(self_, &p->device->ref, p->plan), TN_OK;
    }
    default: return malformed(t);
  }
}

tn_status Server::kernels(Task& t) {
  const tn_kernel_info* first = nullptr;
  tn_status s = table_.kernels != nullptr ? table_.kernels(self_, &first, &row_stride_, &n_rows_, &t.diag) : TN_OK;
  if (s != TN_OK) return s;
  if (n_rows_ != 0 && (first == nullptr || row_stride_ < offsetof(tn_kernel_info, retire))) {
    n_rows_ = 0;
    return malformed(t);
  }
  rows_ = reinterpret_cast<const char*>(first);
  // For inline devices the program must know which bytes a call touches.
  std::vector<tn_device_info> infos(kMostDevices);
  for (tn_device_info& info : infos) info.size = sizeof info;
  uint32_t n = 0;
  const bool known = table_.devices(self_, infos.data(), sizeof infos[0], kMostDevices, &n, nullptr) == TN_OK;
  const bool one_size = std::any_of(infos.begin(), infos.begin() + (known ? std::min(n, kMostDevices) : 0), [](const tn_device_info& info) { return (info.flags & TN_DEVICE_INLINE) != 0; });
  t.out.put(n_rows_), t.out.put(uint32_t{one_size});
  for (uint32_t i = 0; n_rows_ <= kMostRows && i < n_rows_; ++i) put_row(t.out, *row(i));
  return TN_OK;
}

const tn_kernel_info* Server::row(uint32_t number) const {
  return number < n_rows_ ? reinterpret_cast<const tn_kernel_info*>(rows_ + size_t{number} * row_stride_) : nullptr;
}

bool Server::read_request(Task& t, const tn_kernel_info** out_row, OpenDevice** device, OpCopy* op) const {
  *out_row = row(t.in.get<uint32_t>());
  *device = pointer<OpenDevice>(t.in);
  const auto index = t.in.get<uint32_t>();
  if (!op->read(&t.in) || *out_row == nullptr) return false;
  __atomic_store_n(&(*device)->ref.index, index, __ATOMIC_RELAXED);  // the same each time
  return true;
}

tn_status Server::supports(Task& t) {
  const tn_kernel_info* row = nullptr;
  OpenDevice* device = nullptr;
  OpCopy op;
  if (!read_request(t, &row, &device, &op)) return malformed(t);
  tn_support support{};
  support.size = sizeof support;
  const tn_status s = row->supports(self_, &device->ref, op.get(), &support, &t.diag);
  t.out.put(support);
  return s;
}

tn_status Server::prepare(Task& t) {
  auto made = std::make_unique<Prepared>();
  OpCopy op;
  if (!read_request(t, &made->row, &made->device, &op)) return malformed(t);
  if (tn_status s = made->row->prepare(self_, &made->device->ref, op.get(), &made->plan, &t.diag)) return s;
  const tn_kernel_plan head = *made->plan;
  put_pointer(t.out, made.release());
  t.out.put(head);
  return TN_OK;
}

tn_status Server::launch(Task& t) {
  const auto* prepared = pointer<const Prepared>(t.in);
  tn_launch call{};
  auto* q = pointer<OpenQueue>(t.in);
  call.queue = q->queue;
  call.n_views = t.in.get<uint32_t>(), call.push_bytes = t.in.get<uint32_t>();
  const auto n_dyn = t.in.get<uint32_t>();
  if (call.n_views > kMostViews) return malformed(t);
  // In words of their own: what arrived is not aligned.
  std::vector<tn_view> views(call.n_views);
  std::vector<uint64_t> push(call.push_bytes / 8 + 1);
  std::vector<int64_t> dyn(n_dyn);
  for (tn_view& v : views) v = t.in.get<tn_view>();
  if (const char* p = t.in.take(call.push_bytes); p != nullptr && call.push_bytes != 0) std::memcpy(push.data(), p, call.push_bytes);
  for (int64_t& v : dyn) v = t.in.get<int64_t>();
  if (!t.in.good()) return malformed(t);
  call.views = views.data(), call.push = push.data(), call.diag = &t.diag;
  call.dyn = n_dyn != 0 ? dyn.data() : nullptr;
  const tn_status s = prepared->plan->launch(prepared->plan, &call);
  if (s != TN_OK && t.posted && !q->failed) q->failed = true, q->failure = t.diag;  // the first one is the cause
  return s;
}

tn_status Server::packed_bytes(Task& t) {
  const tn_kernel_info* row = nullptr;
  OpenDevice* device = nullptr;
  OpCopy op;
  if (!read_request(t, &row, &device, &op)) return malformed(t);
  uint64_t bytes = 0;
  if (tn_status s = packed_of(*row)->bytes(self_, &device->ref, op.get(), &bytes, &t.diag)) return s;
  t.out.put(bytes);
  return TN_OK;
}

tn_status Server::pack(Task& t) {
  const tn_kernel_info* row = nullptr;
  OpenDevice* device = nullptr;
  OpCopy op;
  if (!read_request(t, &row, &device, &op)) return malformed(t);
  auto* q = pointer<OpenQueue>(t.in);
  const auto from = t.in.get<tn_view>(), to = t.in.get<tn_view>();
  if (!t.in.good()) return malformed(t);
  return packed_of(*row)->pack(self_, &device->ref, op.get(), &from, &to, q->queue, &t.diag);
}

}  // namespace tenon::loader::isolate
