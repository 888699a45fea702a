// kernel/api_tensors.cpp - runtime.h: tensors.
#include <algorithm>
#include <cstring>
#include <new>

#include "kernel/call.h"
#include "kernel/guard.h"
#include "kernel/runtime.h"
#include "kernel/status.h"

using namespace tenon::kernel;

namespace {

// Bytes below and above the first element that a type of any strides reaches.
tn_status reach(const tn_type& t, int64_t* below, uint64_t* above, tn_diag* diag) {
  int64_t lo = 0, hi = 0;
  if (is_opaque(t)) return fail_packed(t, diag);
  char text[96];
  if (has_symbols(t)) return fail(diag, TN_E_SHAPE, id(kArg, 224), "a tensor needs known sizes\nwhy: its type is %s\ntry: put numbers in place of the symbols", type_text(t, text, sizeof text));
  if (!element_range(t, &lo, &hi)) return fail(diag, TN_E_SHAPE, id(kArg, 205), "tensor is too large\nwhy: its size in bytes passes 2^63\ntry: use smaller dimensions");
  const int64_t bits = dtype_bits(t.dtype);
  if (bits < 8) {
    *below = 0;
    *above = dense_bytes(t);
    return TN_OK;
  }
  *below = -lo * (bits / 8);
  *above = element_count(t) == 0 ? 0 : static_cast<uint64_t>(hi * (bits / 8) + bits / 8);
  return TN_OK;
}

uint8_t address_alignment(const void* p) {
  const auto a = reinterpret_cast<uintptr_t>(p);
  return a == 0 ? 8 : static_cast<uint8_t>(std::min(8, __builtin_ctzll(a)));
}

tn_status create(tn_queue* q, uint32_t type_id, tn_tensor** out, tn_diag* diag) {
  Runtime& rt = *q->runtime;
  if (tn_status s = connected(q, diag)) return s;
  tn_type type;
  if (!rt.types().get(type_id, &type)) return fail(diag, TN_E_STALE, id(kState, 12), "type id %u is stale\nwhy: the type table was swept since, or it is no id\ntry: intern the type again", type_id);
  int64_t below;
  uint64_t above;
  if (tn_status s = reach(type, &below, &above, diag)) return s;
  if (type.align_log2 != 6 && below == 0) {
    type.align_log2 = 6;
    if (tn_status s = rt.types().intern(type, &type_id, diag)) return s;
  }
  const uint64_t bytes = static_cast<uint64_t>(below) + above;
  if (bytes > (uint64_t{1} << 46)) return fail(diag, TN_E_OOM, id(kMem, 4), "tensor is larger than any memory\nwhy: %llu bytes asked, at most 2^46 are taken\ntry: use smaller dimensions", static_cast<unsigned long long>(bytes));
  std::unique_lock<std::recursive_mutex> lock(q->lock, std::defer_lock);
  if (!q->inline_work) lock.lock();
  Storage* s = q->pool->take(size_class_of(bytes), diag);
  if (!s) return diag && diag->status ? diag->status : tn_status{TN_E_OOM};
  s->refs.store(1, std::memory_order_relaxed);
  s->base.refs.store(1, std::memory_order_relaxed);
  s->ready_queue.store(q->id, std::memory_order_relaxed);
  s->ready_value.store(q->submitted.load(std::memory_order_relaxed), std::memory_order_relaxed);
  s->base.view = tn_view{s->buffer.handle, 0, s->buffer.bytes, s->buffer.host};
  if (below == 0) {
    s->base.type_id = type_id;
    s->base.type = type;
    *out = &s->base;
    return TN_OK;
  }
  *out = make_view(s, type, type_id, static_cast<uint64_t>(below));
  unref_storage(s);
  return *out ? TN_OK : fail(diag, TN_E_OOM, id(kMem, 2), "host memory is exhausted\nwhy: no room for a tensor handle\ntry: free tensors");
}

}  // namespace

extern "C" {

tn_status tn_tensor_create(tn_queue* q, uint32_t type, tn_tensor** out, tn_diag* diag) {
  return guarded(diag, [&] { return create(q, type, out, diag); });
}

tn_status tn_tensor_from_host(tn_runtime* rt, uint32_t device, uint32_t type_id, void* data, uint64_t bytes, void (*drop)(void*, void*), void* ctx, tn_tensor** out, tn_diag* diag) {
  return guarded(diag, [&]() -> tn_status {
    Device* d = rt->core.device(device);
    if (!d) return fail(diag, TN_E_NOT_FOUND, id(kDevice, 2), "no such device\nwhy: id %u is not in the device list\ntry: use ids from tn_devices", device);
    if (tn_status s = d->open(diag)) return s;
    if (!d->inline_work) return fail(diag, TN_E_UNSUPPORTED, id(kMem, 5), "%s cannot use host memory in place\nwhy: it has its own memory\ntry: make a tensor there and write into it", d->name);
    tn_type type;
    if (!rt->core.types().get(type_id, &type)) return fail(diag, TN_E_STALE, id(kState, 12), "type id %u is stale\nwhy: the type table was swept since, or it is no id\ntry: intern the type again", type_id);
    int64_t below;
    uint64_t above;
    if (tn_status s = reach(type, &below, &above, diag)) return s;
    if (below) return fail(diag, TN_E_ARG, id(kArg, 225), "negative strides need a view\nwhy: the type reaches %lld bytes below the pointer\ntry: wrap the whole block, then take a view", static_cast<long long>(below));
    if (above > bytes || (!data && above))
      return fail(diag, TN_E_SHAPE, id(kArg, 226), "host memory is too small\nwhy: the type reaches %llu bytes, %llu are given\ntry: check dims and strides", static_cast<unsigned long long>(above), static_cast<unsigned long long>(data ? bytes : 0));
    const uint8_t have = address_alignment(data);
    const uint32_t element = std::max<uint32_t>(1, dtype_bits(type.dtype) / 8);
    if (reinterpret_cast<uintptr_t>(data) % std::min<uint32_t>(element, 8) || have < type.align_log2)
      return fail(diag, TN_E_ARG, id(kArg, 227), "host memory is not aligned\nwhy: the address is a multiple of %d; the type promises %d, its elements need %u\ntry: align the memory, or promise less", 1 << have, 1 << type.align_log2, std::min<uint32_t>(element, 8));
    const uint8_t promise = std::min<uint8_t>(have, 6);
    if (promise != type.align_log2) {
      type.align_log2 = promise;
      if (tn_status s = rt->core.types().intern(type, &type_id, diag)) return s;
    }
    auto* s = new Storage;
    s->device = device;
    s->buffer.host = data;
    s->buffer.handle = s->buffer.dev_addr = reinterpret_cast<uintptr_t>(data);
    s->buffer.bytes = bytes;
    s->drop = drop;
    s->drop_ctx = ctx;
    s->base.storage = s;
    s->base.type = type;
    s->base.type_id = type_id;
    s->base.view = tn_view{s->buffer.handle, 0, bytes, data};
    *out = &s->base;
    return TN_OK;
  });
}

tn_status tn_tensor_view(tn_tensor* t, uint32_t type_id, uint64_t offset_bytes, tn_tensor** out, tn_diag* diag) {
  return guarded(diag, [&]() -> tn_status {
    Storage* s = t->storage;
    Runtime* rt = nullptr;
    tn_type type;
    if (is_opaque(t->type)) return fail_packed(t->type, diag);
    if (s->home) rt = s->home->runtime();
    if (!rt) return fail(diag, TN_E_UNSUPPORTED, id(kMem, 6), "this tensor wraps host memory\nwhy: views of it are made by view ops\ntry: use the slice, permute or reshape op");
    if (!rt->types().get(type_id, &type)) return fail(diag, TN_E_STALE, id(kState, 12), "type id %u is stale\nwhy: the type table was swept since, or it is no id\ntry: intern the type again", type_id);
    int64_t below;
    uint64_t above;
    if (tn_status st = reach(type, &below, &above, diag)) return st;
    const uint64_t first = t->view.offset + offset_bytes;
    if (static_cast<uint64_t>(below) > first || first + above > s->buffer.bytes)
      return fail(diag, TN_E_SHAPE, id(kArg, 228), "view leaves its storage\nwhy: it reaches bytes %lld..%llu of %llu\ntry: check offset, dims and strides", static_cast<long long>(first) - below, static_cast<unsigned long long>(first + above), static_cast<unsigned long long>(s->buffer.bytes));
    const uint8_t align = first == 0 ? 6 : static_cast<uint8_t>(std::min(6, __builtin_ctzll(first)));
    if (align != type.align_log2) {
      type.align_log2 = align;
      if (tn_status st = rt->types().intern(type, &type_id, diag)) return st;
    }
    *out = make_view(s, type, type_id, first);
    return *out ? tn_status{TN_OK} : fail(diag, TN_E_OOM, id(kMem, 2), "host memory is exhausted\nwhy: no room for a tensor handle\ntry: free tensors");
  });
}

void tn_tensor_retain(tn_tensor* t) { t->refs.fetch_add(1, std::memory_order_relaxed); }

void tn_tensor_release(tn_tensor* t) {
  if (t && !is_type_only(t)) unref_tensor(t);
}

uint32_t tn_tensor_type(const tn_tensor* t) { return t->type_id; }
void tn_tensor_describe(const tn_tensor* t, tn_type* out) { *out = t->type; }

void tn_tensor_inspect(const tn_tensor* t, tn_tensor_info* out) {
  const Storage* s = t->storage;
  tn_tensor_info info{};
  info.size = sizeof info;
  info.type = t->type_id;
  info.device = s->device;
  info.storage = reinterpret_cast<uintptr_t>(s);
  info.offset_bytes = t->view.offset;
  info.storage_bytes = s->buffer.bytes;
  info.writes = s->writes.load(std::memory_order_relaxed);
  info.ready = tn_point{s->ready_queue.load(std::memory_order_relaxed), 0, s->ready_value.load(std::memory_order_relaxed)};
  info.host = is_opaque(t->type) ? nullptr : t->view.host;
  const uint32_t size = out->size ? out->size : sizeof info;
  std::memcpy(out, &info, std::min<size_t>(size, sizeof info));
  out->size = size;
}

tn_status tn_tensor_import_dlpack(tn_queue*, void*, tn_tensor**, tn_diag* diag) {
  return fail(diag, TN_E_UNSUPPORTED, id(kMem, 7), "DLPack is handled above this library\nwhy: the C entry is provisional\ntry: use tenon::from_dlpack, or tn_tensor_from_host");
}

tn_status tn_tensor_export_dlpack(tn_queue*, tn_tensor*, uint64_t, void**, tn_diag* diag) {
  return fail(diag, TN_E_UNSUPPORTED, id(kMem, 7), "DLPack is handled above this library\nwhy: the C entry is provisional\ntry: use tenon::to_dlpack, or tn_tensor_inspect");
}

}  // extern "C"
