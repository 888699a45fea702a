// kernel/copy.cpp - copies between tensors of any devices, and to and from host memory.
#include <algorithm>
#include <cstring>

#include "kernel/call.h"
#include "kernel/fp_env.h"
#include "kernel/runtime.h"
#include "kernel/status.h"
#include "kernel/type_table.h"

namespace tenon::kernel {
namespace {

// The bytes a view covers: from its lowest to its highest element, relative to the first one.
bool byte_range(const tn_type& t, int64_t* lo, uint64_t* bytes) {
  int64_t hi;
  if (element_count(t) == 0) {
    *lo = 0;
    *bytes = 0;
    return true;
  }
  if (!element_range(t, lo, &hi)) return false;
  const int64_t bits = dtype_bits(t.dtype);
  if (bits < 8) {
    *lo = 0;
    *bytes = dense_bytes(t);
    return true;
  }
  *bytes = static_cast<uint64_t>((hi - *lo + 1) * (bits / 8));
  *lo *= bits / 8;
  return true;
}

tn_view sub_view(const tn_view& v, int64_t offset, uint64_t bytes) {
  return tn_view{v.handle, v.offset + static_cast<uint64_t>(offset), bytes, v.host ? static_cast<char*>(v.host) + offset : nullptr};
}

tn_status strided_destination(const tn_tensor* dst, const tn_queue* q, tn_diag* diag) {
  char text[96];
  return fail(diag, TN_E_UNSUPPORTED, id(kMem, 3), "cannot write into a strided view on %s\nwhy: %s has gaps between its elements, and only the host can step over them\ntry: write into a dense tensor", q->device->name,
              type_text(dst->type, text, sizeof text));
}

// Same bytes in the same arrangement, on one device or with one side in host memory.
tn_status copy_bytes(tn_queue* q, const tn_view& dst, const tn_view& src, tn_diag* diag) {
  if (dst.bytes == 0) return TN_OK;
  if (q->inline_work && dst.host && src.host) {
    std::memmove(dst.host, src.host, dst.bytes);
    return TN_OK;
  }
  return told(q, call_plugin(q->device->plugin->table->copy, q->dev_queue, &dst, &src, diag), diag);
}

// An event about bytes that move by q.
class CopySpan {
 public:
  CopySpan(tn_queue* q, const char* name, uint64_t bytes) : q_(q), span_(q->runtime->hooks(), TN_EVENT_COPY) {
    if (!span_.on()) return;
    span_.event().device = q->device->index;
    span_.event().queue = q->id;
    span_.event().bytes = bytes;
    span_.event().name = name;
    span_.event().where = q->note;
  }
  tn_status end(tn_status status) {
    if (status != TN_OK) span_.drop();
    if (span_.on()) span_.event().value = q_->submitted.load(std::memory_order_relaxed);
    return status;
  }

 private:
  tn_queue* q_;
  TraceSpan span_;
};

uint64_t next_value(tn_queue* q) {
  const uint64_t v = q->submitted.load(std::memory_order_relaxed) + 1;
  q->submitted.store(v, std::memory_order_relaxed);
  return v;
}

void wrote(tn_queue* q, Storage* s, uint64_t value) {
  s->ready_queue.store(q->id, std::memory_order_relaxed);
  s->ready_value.store(value, std::memory_order_relaxed);
  s->writes.fetch_add(1, std::memory_order_relaxed);
}

bool same_arrangement(const tn_type& a, const tn_type& b) {
  if (a.dtype != b.dtype || a.rank != b.rank) return false;
  for (int i = 0; i < a.rank; ++i)
    if (a.dim[i] != b.dim[i] || (a.dim[i] != 1 && a.stride[i] != b.stride[i])) return false;
  return true;
}

// Distinct elements at distinct addresses without gaps, in some axis order: raw bytes may be copied over it.
bool packed(const tn_type& t) {
  int64_t lo;
  uint64_t bytes = 0;
  return byte_range(t, &lo, &bytes) && bytes == dense_bytes(t);
}

// A dense tensor with the same content, on q's device.
tn_status dense_copy(tn_queue* q, tn_tensor* src, tn_tensor** out, tn_diag* diag) {
  const OpEntry* op = q->runtime->ops().find(q->runtime->ops().copy_op(), 0);
  if (!op) return fail(diag, TN_E_BUG, id(kState, 9), "an internal check failed\nwhy: the core ops, and with them the dense copy, are not defined\ntry: create the runtime with tn_runtime_create");
  *out = nullptr;
  const tn_call_args args{op->id, 0, 0, 0, 1, 1, &src, out, nullptr};
  return tn_call(q, &args, diag);
}

// dst may be any strided view on q's device: elementwise host loop where both are host memory.
void host_strided(const tn_type& dt, char* dst, const tn_type& st, const char* src) {
  const int64_t size = dtype_bits(dt.dtype) / 8;
  int64_t index[TN_MAX_RANK] = {};
  const int64_t n = element_count(dt);
  for (int64_t i = 0; i < n; ++i) {
    int64_t d = 0, s = 0;
    for (int k = 0; k < dt.rank; ++k) d += index[k] * dt.stride[k], s += index[k] * st.stride[k];
    std::memcpy(dst + d * size, src + s * size, static_cast<size_t>(size));
    for (int k = dt.rank - 1; k >= 0 && ++index[k] == dt.dim[k]; --k) index[k] = 0;
  }
}

tn_status copy_here(tn_queue* q, tn_tensor* dst, tn_tensor* src, tn_diag* diag) {
  int64_t lo;
  uint64_t bytes = 0;
  if (same_arrangement(dst->type, src->type) && packed(dst->type)) {
    byte_range(dst->type, &lo, &bytes);
    return copy_bytes(q, sub_view(dst->view, lo, bytes), sub_view(src->view, lo, bytes), diag);
  }
  if (q->inline_work && dst->view.host && src->view.host) {
    host_strided(dst->type, static_cast<char*>(dst->view.host), src->type, static_cast<const char*>(src->view.host));
    return TN_OK;
  }
  if (!is_dense(dst->type)) return strided_destination(dst, q, diag);
  tn_tensor* dense = nullptr;
  if (tn_status s = dense_copy(q, src, &dense, diag)) return s;
  byte_range(dst->type, &lo, &bytes);
  const tn_status s = copy_bytes(q, sub_view(dst->view, 0, bytes), sub_view(dense->view, 0, bytes), diag);
  unref_tensor(dense);
  return s;
}

// Across devices through host memory: one side must be host-visible, else a bounce buffer.
tn_status copy_across(tn_queue* q, tn_tensor* dst, tn_tensor* src, tn_diag* diag) {
  Runtime& rt = *q->runtime;
  tn_queue* from = nullptr;
  if (tn_status s = rt.thread_queue(rt.device(src->storage->device), &from, diag)) return s;
  tn_queue* to = q;
  if (dst->storage->device != q->device->index)
    if (tn_status s = rt.thread_queue(rt.device(dst->storage->device), &to, diag)) return s;
  if (tn_status s = order_after(from, src->storage, diag)) return s;
  tn_tensor* held = nullptr;
  tn_tensor* data = src;
  if (!same_arrangement(dst->type, src->type) || !packed(src->type)) {
    if (!is_dense(dst->type) && !to->inline_work)
      return strided_destination(dst, to, diag);
    if (tn_status s = dense_copy(from, src, &held, diag)) return s;
    data = held;
  }
  int64_t lo;
  uint64_t bytes = 0;
  byte_range(data->type, &lo, &bytes);
  std::vector<char> bounce;
  const void* host = data->view.host ? static_cast<char*>(data->view.host) + lo : nullptr;
  tn_status s = TN_OK;
  if (!host) {
    bounce.resize(bytes);
    const tn_view target{0, 0, bytes, bounce.data()};
    const tn_view source = sub_view(data->view, lo, bytes);
    CopySpan span(from, "read", bytes);
    std::unique_lock<std::recursive_mutex> lock(from->lock);
    s = bytes ? told(from, call_plugin(from->device->plugin->table->copy, from->dev_queue, &target, &source, diag), diag) : TN_OK;
    const uint64_t value = next_value(from);
    if (s == TN_OK) log_work(from, value, &data, 1);
    lock.unlock();
    if (s == TN_OK) s = wait_queue(from, value, TN_FOREVER, diag);
    bool depends = false;
    if (s == TN_OK && find_failure(from, value - 1, value, &depends, diag)) s = depends ? TN_E_DEPENDS : TN_E_FAILED;
    span.end(s);
    host = bounce.data();
  }
  if (s == TN_OK) {
    if (to->inline_work && !(same_arrangement(dst->type, data->type) && packed(dst->type))) {
      host_strided(dst->type, static_cast<char*>(dst->view.host), data->type, static_cast<const char*>(host) - lo);
    } else {
      s = tn_tensor_write(to, dst, host, bytes, diag);
    }
  }
  if (held) unref_tensor(held);
  return s;
}

}  // namespace

tn_status fail_packed(const tn_type& type, tn_diag* diag) {
  char text[96];
  return fail(diag, TN_E_UNSUPPORTED, id(kOp, 130), "a packed tensor cannot be read, written, copied or viewed\nwhy: it is %s in a layout that only its own kernels know\ntry: keep the tensor it was packed from",
              type_text(type, text, sizeof text));
}

tn_status copy_tensor(tn_queue* q, tn_tensor* dst, tn_tensor* src, tn_diag* diag) {
  if (tn_status s = connected(q, diag)) return s;
  for (const tn_tensor* t : {dst, src})
    if (is_opaque(t->type)) return fail_packed(t->type, diag);
  const bool fits = dst->type.dtype == src->type.dtype && dst->type.rank == src->type.rank && std::memcmp(dst->type.dim, src->type.dim, sizeof dst->type.dim) == 0;
  if (!fits) {
    char a[96], b[96];
    return fail(diag, TN_E_SHAPE, id(kArg, 218), "copy needs equal types\nwhy: destination is %s, source is %s\ntry: cast or reshape first", type_text(dst->type, a, sizeof a), type_text(src->type, b, sizeof b));
  }
  if (dst->storage->device != q->device->index || src->storage->device != q->device->index) {
    if (dst->storage->device == src->storage->device) {
      tn_queue* there = nullptr;
      if (tn_status s = q->runtime->thread_queue(q->runtime->device(dst->storage->device), &there, diag)) return s;
      return copy_tensor(there, dst, src, diag);
    }
    return copy_across(q, dst, src, diag);
  }
  std::unique_lock<std::recursive_mutex> lock(q->lock, std::defer_lock);
  if (!q->inline_work) {
    if (tn_status s = order_after(q, src->storage, diag)) return s;
    if (tn_status s = order_after(q, dst->storage, diag)) return s;
    lock.lock();
  } else if (tn_status s = order_after(q, src->storage, diag)) {
    return s;
  }
  CopySpan span(q, "copy", dense_bytes(dst->type));
  if (tn_status s = copy_here(q, dst, src, diag)) return span.end(s);
  const uint64_t value = next_value(q);
  wrote(q, dst->storage, value);
  if (!q->inline_work) {
    log_work(q, value, &src, 1);
    hold_foreign(q, value, &dst, 1);
  }
  return span.end(TN_OK);
}

}  // namespace tenon::kernel

using namespace tenon::kernel;

namespace {

tn_status check_size(const tn_tensor* t, uint64_t bytes, tn_diag* diag) {
  if (is_opaque(t->type)) return fail_packed(t->type, diag);
  const uint64_t want = dense_bytes(t->type);
  char text[96];
  if (bytes != want)
    return fail(diag, TN_E_SHAPE, id(kArg, 219), "host memory has the wrong size\nwhy: %llu bytes given, %s has %llu\ntry: pass exactly its dense size", static_cast<unsigned long long>(bytes), type_text(t->type, text, sizeof text), static_cast<unsigned long long>(want));
  return TN_OK;
}

tn_status write_here(tn_queue* q, tn_tensor* t, const void* data, uint64_t bytes, tn_diag* diag) {
  if (q->inline_work) {
    if (is_dense(t->type)) {
      std::memcpy(t->view.host, data, bytes);
    } else {
      tn_type dense = t->type;
      set_dense_strides(&dense);
      host_strided(t->type, static_cast<char*>(t->view.host), dense, static_cast<const char*>(data));
    }
    wrote(q, t->storage, next_value(q));
    return TN_OK;
  }
  if (!is_dense(t->type) && !packed(t->type))
    return strided_destination(t, q, diag);
  std::vector<char> arranged;
  if (!is_dense(t->type)) {  // the app's bytes are row-major; the tensor keeps its axis order
    arranged.resize(bytes);
    tn_type dense = t->type;
    set_dense_strides(&dense);
    host_strided(t->type, arranged.data(), dense, static_cast<const char*>(data));
    data = arranged.data();
  }
  if (tn_status s = order_after(q, t->storage, diag)) return s;
  std::unique_lock<std::recursive_mutex> lock(q->lock);
  const tn_view src{0, 0, bytes, const_cast<void*>(data)};
  const tn_view dst = sub_view(t->view, 0, bytes);
  if (tn_status s = call_plugin(q->device->plugin->table->copy, q->dev_queue, &dst, &src, diag)) return told(q, s, diag);
  const uint64_t value = next_value(q);
  wrote(q, t->storage, value);
  log_work(q, value, nullptr, 0);
  lock.unlock();
  return wait_queue(q, value, TN_FOREVER, diag);  // the caller's memory must not be read after return
}

tn_status read_here(tn_queue* q, tn_tensor* t, void* out, uint64_t bytes, tn_diag* diag) {
  if (q->inline_work) {
    if (is_dense(t->type)) {
      std::memcpy(out, t->view.host, bytes);
    } else {
      tn_type dense = t->type;
      set_dense_strides(&dense);
      host_strided(dense, static_cast<char*>(out), t->type, static_cast<const char*>(t->view.host));
    }
    return TN_OK;
  }
  tn_tensor* data = t;
  if (!is_dense(t->type)) {
    if (tn_status s = dense_copy(q, t, &data, diag)) return s;
  }
  tn_status s = order_after(q, data->storage, diag);
  std::unique_lock<std::recursive_mutex> lock(q->lock);
  const tn_view dst{0, 0, bytes, out};
  const tn_view src = sub_view(data->view, 0, bytes);
  if (s == TN_OK) s = told(q, call_plugin(q->device->plugin->table->copy, q->dev_queue, &dst, &src, diag), diag);
  const uint64_t value = next_value(q);
  if (s == TN_OK) log_work(q, value, &data, 1);
  lock.unlock();
  if (s == TN_OK) s = wait_queue(q, value, TN_FOREVER, diag);
  bool depends = false;
  if (s == TN_OK && find_failure(q, value - 1, value, &depends, diag)) s = depends ? TN_E_DEPENDS : TN_E_FAILED;
  if (data != t) unref_tensor(data);
  return s;
}

}  // namespace

extern "C" {

tn_status tn_tensor_copy(tn_queue* q, tn_tensor* dst, tn_tensor* src, tn_diag* diag) { return copy_tensor(q, dst, src, diag); }

tn_status tn_tensor_write(tn_queue* q, tn_tensor* t, const void* data, uint64_t bytes, tn_diag* diag) {
  if (tn_status s = check_size(t, bytes, diag)) return s;
  if (t->storage->device != q->device->index) {
    tn_queue* there = nullptr;
    if (tn_status s = q->runtime->thread_queue(q->runtime->device(t->storage->device), &there, diag)) return s;
    return tn_tensor_write(there, t, data, bytes, diag);
  }
  if (bytes == 0) return TN_OK;
  if (tn_status s = connected(q, diag)) return s;
  CopySpan span(q, "write", bytes);
  return span.end(write_here(q, t, data, bytes, diag));
}

tn_status tn_tensor_read(tn_queue* q, tn_tensor* t, void* out, uint64_t bytes, tn_diag* diag) {
  if (tn_status s = check_size(t, bytes, diag)) return s;
  if (t->storage->device != q->device->index) {
    tn_queue* there = nullptr;
    if (tn_status s = q->runtime->thread_queue(q->runtime->device(t->storage->device), &there, diag)) return s;
    return tn_tensor_read(there, t, out, bytes, diag);
  }
  if (bytes == 0) return TN_OK;
  if (tn_status s = connected(q, diag)) return s;
  CopySpan span(q, "read", bytes);
  return span.end(read_here(q, t, out, bytes, diag));
}

}  // extern "C"
