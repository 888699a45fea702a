// loader/isolate/proxy_kernels.cpp - the kernels of an isolated plugin: rows, plans, launches.
//
// A row's functions are called without its number, so each row gets functions of its own, made by a template.
#include <algorithm>
#include <set>
#include <utility>

#include "kernel/status.h"
#include "loader/isolate/proxy.h"

namespace tenon::loader::isolate {
namespace {

using kernel::fail;

// What of an inline device's operands lies outside shared memory, for the time of one call.
class Staged {
 public:
  explicit Staged(Instance* in) : in_(in) {}
  ~Staged() {
    for (const Piece& p : pieces_) in_->heap.free(p.block.host);
  }
  Staged(const Staged&) = delete;
  Staged& operator=(const Staged&) = delete;

  tn_status add(const tn_view& v, const Extent& e, tn_view* out, tn_diag* diag) {
    *out = v;
    if (v.host == nullptr) return TN_OK;
    if (const uint64_t remote = in_->heap.remote_of(v.host)) return point(out, remote), TN_OK;
    if (e.low >= e.high) return point(out, 64), TN_OK;  // touches nothing
    Piece p{{}, static_cast<char*>(v.host) + e.low, static_cast<uint64_t>(e.high - e.low), e.written};
    if (tn_status s = in_->heap.allocate(p.bytes + 64, 64, &p.block, diag)) return s;
    // The first element keeps its place within 64 bytes, which alignments are promised about.
    p.shift = (reinterpret_cast<uintptr_t>(p.from) & 63);
    std::memcpy(p.block.host + p.shift, p.from, p.bytes);
    point(out, p.block.remote + p.shift - static_cast<uint64_t>(e.low));
    pieces_.push_back(p);
    return TN_OK;
  }
  void bring_back() {
    for (const Piece& p : pieces_)
      if (p.written) std::memcpy(p.from, p.block.host + p.shift, p.bytes);
  }

 private:
  struct Piece {
    SharedBlock block;
    char* from;
    uint64_t bytes;
    bool written;
    uint64_t shift = 0;
  };
  static void point(tn_view* v, uint64_t remote) {
    v->host = reinterpret_cast<void*>(remote);
    v->handle = remote - v->offset;
  }
  Instance* in_;
  std::vector<Piece> pieces_;
};

// Bytes that elements of the type cover around the first one.
Extent extent_of(const tn_type& t, bool written) {
  Extent e;
  e.written = written;
  if (t.dtype == 0) return e;
  const int64_t bits = kernel::dtype_bits(t.dtype);
  int64_t low = 0, high = 0, n = 1;
  for (uint32_t i = 0; i < t.rank; ++i) {
    n *= t.dim[i];
    if (t.dim[i] > 0) (t.stride[i] < 0 ? low : high) += (t.dim[i] - 1) * t.stride[i];
  }
  if (n == 0) return e;
  if (bits >= 8) return e.low = low * (bits / 8), e.high = (high + 1) * (bits / 8), e;
  const int64_t row = t.rank == 0 ? 1 : t.dim[t.rank - 1], rows = n / row;  // packed along the last axis, rows start on a byte
  e.high = rows * ((row * bits + 7) / 8);
  return e;
}

tn_status stranger(const RowProxy& row, tn_diag* diag) {
  return fail(diag, TN_E_UNSUPPORTED, kernel::id(kernel::kLoad, 26), "kernels of an isolated plugin serve its own devices only\nwhy: %.40s would have to reach memory of this process from its worker\ntry: use the plugin's own device, or no isolation", row.info.name);
}

tn_status start_request(Instance* in, uint32_t row, const tn_device_ref* ref, const tn_op* op, Writer* w, tn_diag* diag) {
  if (ref->device == nullptr) return stranger(in->rows[row], diag);
  w->put(row), w->put(of(ref->device)->remote), w->put(ref->index);
  return w->put_op(*op, diag);
}

tn_status supports(Instance* in, uint32_t row, const tn_device_ref* ref, const tn_op* op, tn_support* out, tn_diag* diag) {
  if (ref->device == nullptr) return stranger(in->rows[row], diag);
  if (!in->rows[row].has_supports) return TN_OK;
  Writer w;
  if (tn_status s = start_request(in, row, ref, op, &w, diag)) return s;
  std::string reply;
  const tn_status status = in->call(Call::Supports, w, &reply, diag);
  // A no would be taken for the kernel's, and another kernel or an expansion looked for: prepare tells of the loss.
  if (in->worker->usable(Call::Supports, nullptr) != TN_OK) return TN_OK;
  Reader r(reply);
  auto answer = r.get<tn_support>();
  if (!r.good()) return status;
  answer.size = std::min<uint32_t>(out->size, sizeof answer);
  std::memcpy(out, &answer, answer.size);
  return status;
}

tn_status launch(const tn_kernel_plan* head, const tn_launch* call) {
  const auto* plan = reinterpret_cast<const PlanProxy*>(head);
  Instance* in = plan->owner;
  QueueProxy* q = of(call->queue);
  if (tn_status s = in->worker->usable(Call::Launch, call->diag)) return s;
  if (call->n_views < head->n_views || call->push_bytes < head->push_bytes)
    return fail(call->diag, TN_E_ARG, kernel::id(kernel::kAbi, 7), "launch: operands are missing\nwhy: %u views and %u push bytes given, %u and %u needed\ntry: pass what the plan states", call->n_views, call->push_bytes, head->n_views, head->push_bytes);
  Staged staged(in);
  Writer w;
  w.put(plan->remote), w.put(q->remote), w.put(call->n_views), w.put(call->push_bytes), w.put(call->dyn != nullptr ? plan->n_symbols : 0);
  for (uint32_t i = 0; i < call->n_views; ++i) {
    tn_view v = call->views[i];
    if (plan->inline_work) {
      const Extent e = i < plan->extents.size() ? plan->extents[i] : Extent{0, static_cast<int64_t>(v.bytes), false};
      if (tn_status s = staged.add(call->views[i], e, &v, call->diag)) return s;
    } else {
      v.host = nullptr;
    }
    w.put(v);
  }
  w.put_bytes(call->push, call->push_bytes);
  if (call->dyn != nullptr) w.put_bytes(call->dyn, sizeof(int64_t) * plan->n_symbols);
  // A device that works beside the host gets its work without an answer: what its plugin refuses is told by the timeline.
  if (!plan->inline_work) return in->worker->post(q->lane.get(), Call::Launch, w, call->diag);
  std::string reply;
  const tn_status s = in->call(Call::Launch, w, &reply, call->diag, q->lane.get());
  if (s == TN_OK) staged.bring_back();
  return s;
}

uint32_t count_symbols(const tn_op& op) {
  std::set<int64_t> seen;
  for (uint32_t i = 0; i < uint32_t{op.n_in} + op.n_out; ++i) {
    const tn_type& t = op.type[i];
    for (uint32_t a = 0; a < t.rank; ++a)
      for (const int64_t v : {t.dim[a], t.stride[a]})
        if (TN_IS_SYM(v)) seen.insert(v);
  }
  return static_cast<uint32_t>(seen.size());
}

tn_status prepare(Instance* in, uint32_t row, const tn_device_ref* ref, const tn_op* op, const tn_kernel_plan** out, tn_diag* diag) {
  Writer w;
  if (tn_status s = start_request(in, row, ref, op, &w, diag)) return s;
  std::string reply;
  if (tn_status s = in->call(Call::Prepare, w, &reply, diag)) return s;
  Reader r(reply);
  auto plan = std::make_unique<PlanProxy>();
  plan->remote = r.get<uint64_t>();
  plan->head = r.get<tn_kernel_plan>();
  plan->head.launch = launch, plan->head.self = plan.get();
  plan->owner = in;
  plan->n_symbols = count_symbols(*op);
  plan->inline_work = of(ref->device)->inline_work;
  for (uint32_t i = 0; plan->inline_work && i < uint32_t{op->n_in} + op->n_out; ++i) plan->extents.push_back(extent_of(op->type[i], i >= op->n_in));
  *out = &plan.release()->head;
  return TN_OK;
}

void retire(tn_instance* self, const tn_device_ref*, const tn_kernel_plan* head) {
  Instance* in = of(self);
  if (in->worker->forked()) return;
  const auto* plan = reinterpret_cast<const PlanProxy*>(head);
  Writer w;
  w.put(plan->remote);
  std::string reply;
  in->call(Call::Retire, w, &reply, nullptr);
  delete plan;
}

tn_status packed_bytes(Instance* in, uint32_t row, const tn_device_ref* ref, const tn_op* op, uint64_t* out_bytes, tn_diag* diag) {
  Writer w;
  if (tn_status s = start_request(in, row, ref, op, &w, diag)) return s;
  std::string reply;
  if (tn_status s = in->call(Call::PackedBytes, w, &reply, diag)) return s;
  *out_bytes = Reader(reply).get<uint64_t>();
  return TN_OK;
}

tn_status pack(Instance* in, uint32_t row, const tn_device_ref* ref, const tn_op* op, const tn_view* src, const tn_view* dst, tn_dev_queue* queue, tn_diag* diag) {
  Writer w;
  if (tn_status s = start_request(in, row, ref, op, &w, diag)) return s;
  QueueProxy* q = of(queue);
  tn_view from = *src, to = *dst;
  from.host = to.host = nullptr;
  Staged staged(in);
  if (q->device->inline_work) {
    if (tn_status s = staged.add(*src, extent_of(op->type[in->rows[row].packed.operand], false), &from, diag)) return s;
    if (tn_status s = staged.add(*dst, Extent{0, static_cast<int64_t>(dst->bytes), true}, &to, diag)) return s;
  }
  w.put(q->remote), w.put(from), w.put(to);
  std::string reply;
  const tn_status s = in->call(Call::Pack, w, &reply, diag, q->lane.get());
  if (s == TN_OK) staged.bring_back();
  return s;
}

struct RowFunctions {
  decltype(tn_kernel_info::supports) supports;
  decltype(tn_kernel_info::prepare) prepare;
  decltype(tn_kernel_packed::bytes) bytes;
  decltype(tn_kernel_packed::pack) pack;
};

template <uint32_t N>
constexpr RowFunctions functions_of_row() {
  return {[](tn_instance* self, const tn_device_ref* ref, const tn_op* op, tn_support* out, tn_diag* d) { return supports(of(self), N, ref, op, out, d); },
          [](tn_instance* self, const tn_device_ref* ref, const tn_op* op, const tn_kernel_plan** out, tn_diag* d) { return prepare(of(self), N, ref, op, out, d); },
          [](tn_instance* self, const tn_device_ref* ref, const tn_op* op, uint64_t* out, tn_diag* d) { return packed_bytes(of(self), N, ref, op, out, d); },
          [](tn_instance* self, const tn_device_ref* ref, const tn_op* op, const tn_view* src, const tn_view* dst, tn_dev_queue* q, tn_diag* d) { return pack(of(self), N, ref, op, src, dst, q, d); }};
}
template <uint32_t... N>
constexpr std::array<RowFunctions, sizeof...(N)> functions(std::integer_sequence<uint32_t, N...>) {
  return {functions_of_row<N>()...};
}
constexpr auto kFunctions = functions(std::make_integer_sequence<uint32_t, kMostRows>());

// One row as the worker wrote it; what it points at lives in the row.
bool read_row(Reader* r, uint32_t number, bool one_size, RowProxy* row) {
  row->info = r->get<tn_kernel_info>();
  row->info.size = sizeof row->info;
  if (one_size) row->info.flags &= ~uint32_t{TN_KERNEL_DYNAMIC};
  row->has_name = r->get_text(&row->name);
  row->has_supports = row->info.supports != nullptr;
  const bool complete = row->info.prepare != nullptr && row->info.retire != nullptr;
  for (uint32_t n = row->info.n_cons; n != 0 && r->good(); --n) row->constraints.push_back(r->get<tn_constraint>());
  for (uint32_t n = r->get<uint32_t>(); n != 0 && r->good(); --n) row->others.push_back({sizeof(tn_ext), r->get<uint32_t>(), nullptr});
  row->packed = r->get<tn_kernel_packed>();
  const bool packed = r->get_text(&row->layout);
  row->info.name = row->has_name ? row->name.c_str() : nullptr;
  row->info.cons = row->constraints.data();
  row->info.supports = kFunctions[number].supports;
  row->info.prepare = complete ? kFunctions[number].prepare : nullptr;
  row->info.retire = complete ? retire : nullptr;
  const tn_ext* next = nullptr;
  for (tn_ext& e : row->others) e.next = next, next = &e;
  if (packed) {
    row->packed.ext = {sizeof row->packed, TN_EXT_KERNEL_PACKED, next};
    row->packed.layout = row->layout.c_str(), row->packed.bytes = kFunctions[number].bytes, row->packed.pack = kFunctions[number].pack;
    next = &row->packed.ext;
  }
  row->info.next = next;
  return r->good();
}

}  // namespace

tn_status fetch_rows(Instance* in, tn_diag* diag) {
  std::string reply;
  if (tn_status s = in->call(Call::Kernels, {}, &reply, diag)) return s;
  Reader r(reply);
  const auto n = r.get<uint32_t>();
  const bool one_size = r.get<uint32_t>() != 0;
  if (n > kMostRows)
    return fail(diag, TN_E_LIMIT, kernel::id(kernel::kLoad, 26), "the plugin cannot run in a process of its own\nwhy: it has %u kernels, at most %u can be isolated\ntry: take it out of loader.isolate", n, kMostRows);
  in->rows.resize(n);
  for (uint32_t i = 0; i < n; ++i) {
    if (!read_row(&r, i, one_size, &in->rows[i])) return fail(diag, TN_E_BUG, kernel::id(kernel::kAbi, 1), "kernel table is malformed\nwhy: row %u of %u did not arrive whole\ntry: report it to the plugin's author", i, n);
    in->infos.push_back(in->rows[i].info);
  }
  return TN_OK;
}

tn_status kernels(tn_instance* self, const tn_kernel_info** out, uint32_t* out_stride, uint32_t* out_n, tn_diag*) {
  Instance* in = of(self);
  *out = in->infos.data(), *out_stride = sizeof(tn_kernel_info), *out_n = static_cast<uint32_t>(in->infos.size());
  return TN_OK;
}

}  // namespace tenon::loader::isolate
