#include "tests/reports/fake_driver.h"

#include <tenon/ops.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

namespace {

std::array<FakeDriver*, FakeDriver::kMost>& drivers() {
  static std::array<FakeDriver*, FakeDriver::kMost> all{};
  return all;
}

void fill(tn_device_info* out, const FakeDevice& d, uint32_t index) {
  tn_device_info info{};
  info.size = static_cast<uint32_t>(sizeof info);
  info.index = index;
  info.kind = d.kind;
  info.flags = d.flags | TN_DEVICE_INLINE | (d.uuid ? uint32_t{TN_DEVICE_UUID_TRUSTED} : 0u);
  if (d.uuid) std::memset(info.uuid + 1, d.uuid, sizeof info.uuid - 1);
  info.pci_bdf = d.pci_bdf;
  info.mem_total_bytes = d.total, info.mem_free_bytes = d.free;
  info.dtype_storage = info.dtype_compute = UINT64_C(1) << TN_F32;
  info.n_spaces = 1;
  std::snprintf(info.name, sizeof info.name, "%s", d.name.c_str());
  *out = info;
}

// ---- devices --------------------------------------------------------------------------------------------------------
tn_status devices(tn_instance* self, tn_device_info* out, uint32_t stride, uint32_t cap, uint32_t* out_n, tn_diag* diag) {
  const FakeDriver& d = *self->driver;
  if (tn_status s = d.at(cap == 0 ? "count devices" : "list devices", diag)) return s;
  *out_n = static_cast<uint32_t>(d.devices.size());
  for (uint32_t i = 0; i < std::min(cap, *out_n); ++i) fill(reinterpret_cast<tn_device_info*>(reinterpret_cast<char*>(out) + size_t{i} * stride), d.devices[i], i);
  return TN_OK;
}
tn_status device_open(tn_instance* self, uint32_t index, const tn_ext*, tn_device** out, tn_diag* diag) {
  if (tn_status s = self->driver->at("device open", diag)) return s;
  return *out = &self->driver->opened[index], TN_OK;
}
void device_close(tn_device*) {}
tn_status spaces(tn_device*, tn_space_info* out, uint32_t, uint32_t cap, uint32_t* out_n, tn_diag*) {
  *out_n = 1;
  if (cap == 0) return TN_OK;
  out->kind = TN_SPACE_PAGEABLE;
  out->flags = TN_SPACE_HOST_VISIBLE | TN_SPACE_COHERENT;
  out->align_bytes = 64;
  out->max_alloc_bytes = out->budget_bytes = UINT64_C(1) << 30;
  return TN_OK;
}
tn_status allocate(tn_device*, uint32_t space, uint64_t bytes, uint64_t, tn_buffer* out, tn_diag*) {
  void* p = nullptr;
  if (posix_memalign(&p, 64, std::max<uint64_t>(bytes, 64)) != 0) return TN_E_OOM;
  *out = {reinterpret_cast<uint64_t>(p), reinterpret_cast<uint64_t>(p), bytes, p, space, 0};
  return TN_OK;
}
void release(tn_device*, const tn_buffer* buffer) { std::free(buffer->host); }
tn_status copy(tn_dev_queue*, const tn_view* to, const tn_view* from, tn_diag*) { return std::memmove(to->host, from->host, to->bytes), TN_OK; }
tn_status queue_open(tn_device* device, uint32_t, int32_t, tn_dev_queue** out, tn_diag*) { return *out = &device->driver->queues[device->index], TN_OK; }
void queue_close(tn_dev_queue*) {}

// ---- kernel: programs of one instruction ----------------------------------------------------------------------------
struct Plan {
  tn_kernel_plan head;
  int64_t n;
  uint32_t op, inputs;
};

uint32_t instruction(const tn_op* op) {
  for (uint32_t i = 0; i < op->n_attr; ++i) {
    if (op->attr[i].key != TN_KEY_PROGRAM) continue;
    const auto* p = static_cast<const tn_program*>(op->attr[i].v.p);
    if (p->n_inst != op->n_in + 1u) return 0;
    const tn_inst& last = p->inst[op->n_in];
    const bool in_order = last.a == 0 && (op->n_in == 1 || last.b == 1);
    for (uint32_t known : {TN_OP_ADD, TN_OP_SUB, TN_OP_MUL, TN_OP_NEG, TN_OP_MAX})
      if (last.op == known && in_order) return known;
  }
  return 0;
}

float value(uint32_t op, float a, float b) {
  switch (op) {
    case TN_OP_ADD: return a + b;
    case TN_OP_SUB: return a - b;
    case TN_OP_MUL: return a * b;
    case TN_OP_MAX: return std::max(a, b);
    default: return -a;
  }
}

tn_status launch(const tn_kernel_plan* plan, const tn_launch* call) {
  const auto& p = *reinterpret_cast<const Plan*>(plan);
  FakeDriver& driver = *call->queue->driver;
  if (tn_status s = driver.at("launch", call->diag)) return s;
  ++driver.launches[call->queue->index];
  const auto* a = static_cast<const float*>(call->views[0].host);
  const auto* b = static_cast<const float*>(call->views[p.inputs - 1].host);
  auto* y = static_cast<float*>(call->views[p.inputs].host);
  for (int64_t i = 0; i < p.n; ++i) y[i] = value(p.op, a[i], b[i]);
  return TN_OK;
}
tn_status supports(tn_instance*, const tn_device_ref* ref, const tn_op* op, tn_support* out, tn_diag* diag) {
  if (ref->device != nullptr && instruction(op) != 0) return out->est_ns = 100, TN_OK;
  if (diag != nullptr) diag->status = TN_E_UNSUPPORTED, std::strcpy(diag->msg, "the fake has no such unit"), diag->len = static_cast<uint32_t>(std::strlen(diag->msg));
  return TN_E_UNSUPPORTED;
}
tn_status prepare(tn_instance*, const tn_device_ref*, const tn_op* op, const tn_kernel_plan** out, tn_diag*) {
  auto* plan = new Plan{};
  plan->head.launch = launch;
  plan->head.n_views = op->n_in + 1u;
  plan->n = 1, plan->op = instruction(op), plan->inputs = op->n_in;
  for (uint8_t d = 0; d < op->type[0].rank; ++d) plan->n *= op->type[0].dim[d];
  return *out = &plan->head, TN_OK;
}
void retire(tn_instance*, const tn_device_ref*, const tn_kernel_plan* plan) { delete reinterpret_cast<const Plan*>(plan); }

tn_status kernels(tn_instance* self, const tn_kernel_info** out, uint32_t* out_stride, uint32_t* out_n, tn_diag* diag) {
  if (tn_status s = self->driver->at("kernels", diag)) return s;
  *out = &self->driver->row, *out_stride = sizeof(tn_kernel_info), *out_n = 1;
  return TN_OK;
}

// ---- lifecycle: which driver is meant, only the function itself can say ------------------------------------------------
template <size_t N>
tn_status open(const tn_host*, tn_instance** out, tn_diag* diag) {
  FakeDriver* d = drivers()[N];
  if (tn_status s = d->at("open", diag)) return s;
  return *out = &d->instance, TN_OK;
}
tn_status quiesce(tn_instance*, uint64_t, uint32_t* out_live, tn_diag*) { return *out_live = 0, TN_OK; }
void close(tn_instance*) {}

template <size_t N>
const tn_plugin* query(uint32_t abi, const tn_host*) {
  static tn_plugin t{};
  t.size = sizeof t, t.abi = abi;
  t.open = open<N>, t.quiesce = quiesce, t.close = close, t.kernels = kernels;
  t.devices = devices, t.device_open = device_open, t.device_close = device_close, t.spaces = spaces;
  t.alloc = allocate, t.free = release, t.copy = copy, t.queue_open = queue_open, t.queue_close = queue_close;
  return &t;
}
constexpr tn_plugin_query_fn kQueries[FakeDriver::kMost] = {query<0>, query<1>, query<2>, query<3>, query<4>, query<5>, query<6>, query<7>};

}  // namespace

FakeDriver::FakeDriver(std::string the_id, std::vector<FakeDevice> list) : id(std::move(the_id)), devices(std::move(list)) {
  auto& all = drivers();
  place = static_cast<size_t>(std::find(all.begin(), all.end(), nullptr) - all.begin());
  if (place == kMost) throw std::runtime_error("too many fake drivers");
  all[place] = this;
  instance.driver = this;
  launches.resize(devices.size());
  for (uint32_t i = 0; i < devices.size(); ++i) opened.push_back({this, i}), queues.push_back({this, i});
  kernel_name = id.substr(id.rfind('.') + 1) + ".pointwise";
  needs = {{TN_ANY_OPERAND, TN_NEED_DEVICE_KIND, devices.empty() ? kFakeKind : devices[0].kind, 0, 0, 0}, {TN_ANY_OPERAND, TN_NEED_DTYPE, 0, UINT64_C(1) << TN_F32, 0, 0},
           {TN_ANY_OPERAND, TN_NEED_CONTIGUOUS, 0, 0, 0, 0}, {TN_ANY_OPERAND, TN_NEED_STATIC, 0, 0, 0, 0}};
  row.size = sizeof row, row.flags = TN_KERNEL_DETERMINISTIC, row.name = kernel_name.c_str();
  row.op_id = TN_OPID_POINTWISE, row.op_min = 1, row.op_max = UINT16_MAX, row.tier = TN_TIER_NATIVE;
  row.cons = needs.data(), row.n_cons = static_cast<uint32_t>(needs.size());
  row.supports = supports, row.prepare = prepare, row.retire = retire;
}

FakeDriver::~FakeDriver() { drivers()[place] = nullptr; }

void FakeDriver::fail(const std::string& stage, tn_status status, std::string words) { failures[stage] = {status, std::move(words)}; }

tn_status FakeDriver::at(const char* stage, tn_diag* diag) const {
  const auto found = failures.find(stage);
  if (found == failures.end() || found->second.first == TN_OK) return TN_OK;
  if (diag != nullptr) {
    diag->status = found->second.first;
    std::snprintf(diag->msg, sizeof diag->msg, "%s", found->second.second.c_str());
    diag->len = static_cast<uint32_t>(std::strlen(diag->msg));
  }
  return found->second.first;
}

tn_status FakeDriver::link(tn_runtime* runtime, tn_diag* diag) { return tn_plugin_link(runtime, id.c_str(), kQueries[place], nullptr, diag); }
