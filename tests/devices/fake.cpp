// A driver that is not there: one plugin whose devices are told by variables, so that a test has the machine it needs. Its work
// is inline, its memory is the host's, its one kernel adds dense f32 operands on devices of its own kind.
//
//   FAKE_NAME, FAKE_KIND      id "test.<name>", kind of its devices        (compiled in)
//   FAKE_VARIABLE             the filter that its driver obeys, or ""      (compiled in)
//   TENON_FAKE_<name>         its devices, separated by blanks; of each its fields, separated by commas:
//                             u=7 UUID of that byte, p=6500 bus 65 device 0 function 0, m=8 GiB, integrated, emulated, partition, overfull
//                             (more memory free than there is)
//   TENON_FAKE_FAIL           names of those whose open() says that the driver is absent, separated by commas
//   TENON_FAKE_TRACE          file to which every step adds a line "<name> <step>"
// It reads the environment, which a plugin must not do, since it plays the driver below one.
#include <tenon/caps.h>
#include <tenon/ops.h>
#include <tenon/plugin.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>
#include <vector>

#ifndef FAKE_EXTRA_KERNEL
#define FAKE_EXTRA_KERNEL 0
#endif

TN_COLD({sizeof(tn_cold), 1, TN_ABI_CURRENT, TN_ABI_CURRENT, "test." FAKE_NAME, "1.0.0", FAKE_TARGET, {0, 0, 0, 0}, TN_COLD_UNLOADABLE, 0, {""}});

namespace {

std::string variable(const char* name) {
  const char* text = std::getenv(name);
  return text != nullptr ? text : "";
}

void trace(const char* step) {
  const std::string path = variable("TENON_FAKE_TRACE");
  if (path.empty()) return;
  if (std::FILE* file = std::fopen(path.c_str(), "a")) {
    std::fprintf(file, FAKE_NAME " %s\n", step);
    std::fclose(file);
  }
}

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts;
  std::stringstream in(text);
  for (std::string part; std::getline(in, part, at);)
    if (!part.empty()) parts.push_back(part);
  return parts;
}

tn_device_info device_of(const std::string& text) {
  tn_device_info info{};
  info.size = sizeof info;
  info.kind = FAKE_KIND;
  info.flags = TN_DEVICE_INLINE;
  info.mem_total_bytes = info.mem_free_bytes = uint64_t{1} << 30;
  info.dtype_storage = info.dtype_compute = UINT64_C(1) << TN_F32;
  info.n_spaces = 1;
  std::snprintf(info.name, sizeof info.name, "Fake %s", text.c_str());
  std::strcpy(info.driver, "fake 1.0");
  for (const std::string& field : split(text, ',')) {
    const unsigned long value = field.size() > 2 ? std::strtoul(field.c_str() + 2, nullptr, field[0] == 'm' ? 10 : 16) : 0;
    if (field[0] == 'u' && field[1] == '=') std::memset(info.uuid, static_cast<int>(value), 15), info.uuid[15] = 1, info.flags |= TN_DEVICE_UUID_TRUSTED;
    if (field[0] == 'p' && field[1] == '=') info.pci_bdf = static_cast<uint32_t>(value);
    if (field[0] == 'm' && field[1] == '=') info.mem_total_bytes = static_cast<uint64_t>(value) << 30, info.mem_free_bytes = info.mem_total_bytes / 2;
    if (field == "overfull") info.mem_free_bytes = UINT64_MAX;
    if (field == "integrated") info.flags |= TN_DEVICE_INTEGRATED;
    if (field == "emulated") info.flags |= TN_DEVICE_EMULATED;
    if (field == "partition") info.flags |= TN_DEVICE_PARTITION;
  }
  return info;
}

std::string uuid_text(const tn_device_info& info) {
  std::string text;
  for (int k = 0; k < 16; ++k) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", info.uuid[k]);
    text += std::string(k == 4 || k == 6 || k == 8 || k == 10 ? "-" : "") + digits;
  }
  return text;
}

// What the driver lets through: indices, or "GPU-" and the beginning of a UUID; nothing behind the first entry that is neither.
std::vector<tn_device_info> visible() {
  std::vector<tn_device_info> all, out;
  for (const std::string& text : split(variable("TENON_FAKE_" FAKE_NAME), ' ')) all.push_back(device_of(text));
  const char* filter = *FAKE_VARIABLE != '\0' ? std::getenv(FAKE_VARIABLE) : nullptr;
  if (filter == nullptr) return all;
  for (const std::string& entry : split(filter, ',')) {
    const size_t before = out.size();
    for (size_t i = 0; i < all.size(); ++i)
      if (entry == std::to_string(i) || (entry.starts_with("GPU-") && uuid_text(all[i]).starts_with(entry.substr(4)))) out.push_back(all[i]);
    if (out.size() == before) break;
  }
  return out;
}

}  // namespace

__attribute__((constructor)) static void construct() { trace("constructor"); }

struct tn_device {};
struct tn_dev_queue {};
struct tn_instance {
  std::vector<tn_device_info> infos;
  tn_device device;
  tn_dev_queue queue;
};

namespace {

tn_instance* owner(tn_device* device) { return reinterpret_cast<tn_instance*>(reinterpret_cast<char*>(device) - offsetof(tn_instance, device)); }

// ---- device ---------------------------------------------------------------------------------------------------------
tn_status devices(tn_instance* self, tn_device_info* out, uint32_t stride, uint32_t cap, uint32_t* out_n, tn_diag*) {
  *out_n = static_cast<uint32_t>(self->infos.size());
  for (uint32_t i = 0; i < cap && i < *out_n; ++i) {
    tn_device_info info = self->infos[i];
    info.index = i;
    std::memcpy(reinterpret_cast<char*>(out) + size_t{i} * stride, &info, stride < sizeof info ? stride : sizeof info);
  }
  return TN_OK;
}
// Sound ones, and between them some that cannot be.
tn_status caps(tn_instance*, uint32_t, tn_cap* out, uint32_t cap, uint32_t* out_n, tn_diag*) {
  const auto number = [](uint32_t key, uint16_t type, uint16_t source, double value) {
    tn_cap c{key, type, source, {}};
    if (type == TN_CAP_F64) c.v.f = value;
    else c.v.u = static_cast<uint64_t>(value);
    return c;
  };
  const tn_cap all[] = {number(TN_CAPKEY_BANDWIDTH, TN_CAP_F64, TN_FROM_DRIVER, 3e12), number(TN_CAPKEY_BANDWIDTH, TN_CAP_F64, TN_FROM_GUESS, 1), number(TN_CAPKEY_LAUNCH_NS, TN_CAP_F64, TN_FROM_TABLE, -5),
                        number(TN_CAPKEY_FLOPS_F32, TN_CAP_F64, TN_FROM_TABLE, __builtin_inf()), number(TN_CAPKEY_CORES, TN_CAP_F64, TN_FROM_DRIVER, 132), number(TN_CAPKEY_CACHE_L2_BYTES, TN_CAP_U64, 0, 1),
                        {TN_CAPKEY_ARCHITECTURE, TN_CAP_TEXT, TN_FROM_DRIVER, {}}, number(0x80000001, TN_CAP_F64, TN_FROM_DRIVER, -7), number(0x80000002, 9, TN_FROM_DRIVER, 1),
                        number(TN_CAPKEY_PAGE_BYTES, TN_CAP_U64, TN_FROM_DRIVER, 65536)};
  *out_n = sizeof all / sizeof all[0];
  for (uint32_t i = 0; i < cap && i < *out_n; ++i) out[i] = all[i];
  return TN_OK;
}
tn_status device_open(tn_instance* self, uint32_t, const tn_ext*, tn_device** out, tn_diag*) {
  trace("device_open");
  return *out = &self->device, TN_OK;
}
void device_close(tn_device*) {}
tn_status spaces(tn_device*, tn_space_info* out, uint32_t stride, uint32_t cap, uint32_t* out_n, tn_diag*) {
  *out_n = 1;
  if (cap == 0) return TN_OK;
  tn_space_info info{};
  info.size = stride < sizeof info ? stride : static_cast<uint32_t>(sizeof info);
  info.kind = TN_SPACE_PAGEABLE;
  info.flags = TN_SPACE_HOST_VISIBLE | TN_SPACE_COHERENT;
  info.align_bytes = 64;
  info.max_alloc_bytes = info.budget_bytes = UINT64_C(1) << 30;
  std::memcpy(out, &info, info.size);
  return TN_OK;
}
tn_status allocate(tn_device*, uint32_t space, uint64_t bytes, uint64_t, tn_buffer* out, tn_diag*) {
  void* p = nullptr;
  if (posix_memalign(&p, 64, bytes < 64 ? 64 : bytes) != 0) return TN_E_OOM;
  const auto address = reinterpret_cast<uint64_t>(p);
  *out = {address, address, bytes, p, space, 0};
  return TN_OK;
}
void release(tn_device*, const tn_buffer* buffer) { std::free(buffer->host); }
tn_status copy(tn_dev_queue*, const tn_view* to, const tn_view* from, tn_diag*) { return std::memmove(to->host, from->host, to->bytes), TN_OK; }
tn_status queue_open(tn_device* device, uint32_t, int32_t, tn_dev_queue** out, tn_diag*) { return *out = &owner(device)->queue, TN_OK; }
void queue_close(tn_dev_queue*) {}

// ---- kernel: y = a + b ----------------------------------------------------------------------------------------------
struct Plan {
  tn_kernel_plan head;
  int64_t n;
};
bool is_add(const tn_op* op) {
  for (uint32_t i = 0; i < op->n_attr; ++i) {
    if (op->attr[i].key != TN_KEY_PROGRAM) continue;
    const auto* p = static_cast<const tn_program*>(op->attr[i].v.p);
    return p->n_inst == 3 && p->inst[0].op == TN_OP_INPUT && p->inst[1].op == TN_OP_INPUT && p->inst[2].op == TN_OP_ADD && p->inst[2].a + p->inst[2].b == 1;
  }
  return false;
}
tn_status launch(const tn_kernel_plan* plan, const tn_launch* call) {
  const auto *a = static_cast<const float*>(call->views[0].host), *b = static_cast<const float*>(call->views[1].host);
  auto* y = static_cast<float*>(call->views[2].host);
  for (int64_t i = 0; i < reinterpret_cast<const Plan*>(plan)->n; ++i) y[i] = a[i] + b[i];
  return TN_OK;
}
tn_status supports(tn_instance*, const tn_device_ref*, const tn_op* op, tn_support*, tn_diag*) { return is_add(op) ? TN_OK : TN_E_UNSUPPORTED; }
tn_status prepare(tn_instance*, const tn_device_ref*, const tn_op* op, const tn_kernel_plan** out, tn_diag*) {
  auto* plan = new Plan{};
  plan->head.launch = launch;
  plan->head.n_views = 3;
  plan->n = 1;
  for (uint8_t d = 0; d < op->type[0].rank; ++d) plan->n *= op->type[0].dim[d];
  *out = &plan->head;
  return TN_OK;
}
void retire(tn_instance*, const tn_device_ref*, const tn_kernel_plan* plan) { delete reinterpret_cast<const Plan*>(plan); }

constexpr tn_constraint kOwn[] = {{TN_ANY_OPERAND, TN_NEED_DEVICE_KIND, FAKE_KIND, 0, 0, 0}, {TN_ANY_OPERAND, TN_NEED_DTYPE, 0, UINT64_C(1) << TN_F32, 0, 0},
                                  {TN_ANY_OPERAND, TN_NEED_CONTIGUOUS, 0, 0, 0, 0}, {TN_ANY_OPERAND, TN_NEED_STATIC, 0, 0, 0, 0}};
constexpr tn_constraint kCpu[] = {{TN_ANY_OPERAND, TN_NEED_DEVICE_KIND, TN_KIND_CPU, 0, 0, 0}, kOwn[1], kOwn[2], kOwn[3]};
tn_kernel_info row(const char* name, const tn_constraint* needs) {
  tn_kernel_info k{};
  k.size = sizeof k;
  k.flags = TN_KERNEL_DETERMINISTIC;
  k.name = name;
  k.op_id = TN_OPID_POINTWISE;
  k.op_min = 1, k.op_max = UINT16_MAX;
  k.tier = TN_TIER_NATIVE;
  k.cons = needs, k.n_cons = 4;
  k.supports = supports, k.prepare = prepare, k.retire = retire;
  return k;
}
tn_status kernels(tn_instance*, const tn_kernel_info** out, uint32_t* out_stride, uint32_t* out_n, tn_diag*) {
  static const tn_kernel_info rows[] = {row(FAKE_NAME ".add", kOwn), row(FAKE_NAME ".add_on_cpu", kCpu)};
  *out = rows;
  *out_stride = sizeof rows[0];
  *out_n = 1 + FAKE_EXTRA_KERNEL;
  return TN_OK;
}

// ---- lifecycle ------------------------------------------------------------------------------------------------------
tn_status open(const tn_host*, tn_instance** out, tn_diag* diag) {
  trace("open");
  for (const std::string& name : split(variable("TENON_FAKE_FAIL"), ',')) {
    if (name != FAKE_NAME) continue;
    if (diag != nullptr) std::strcpy(diag->msg, "libdriver.so.7 is absent");
    return TN_E_UNAVAILABLE;
  }
  *out = new tn_instance{visible(), {}, {}};
  return TN_OK;
}
tn_status quiesce(tn_instance*, uint64_t, uint32_t* out_live, tn_diag*) { return *out_live = 0, TN_OK; }
void close(tn_instance* self) { delete self; }

}  // namespace

TN_EXPORT const tn_plugin* tn_plugin_query(uint32_t abi, const tn_host*) {
  static tn_plugin t{};
  t.size = sizeof t;
  t.abi = abi;
  t.open = open, t.quiesce = quiesce, t.close = close;
  t.devices = devices, t.caps = caps, t.device_open = device_open, t.device_close = device_close, t.spaces = spaces;
  t.alloc = allocate, t.free = release, t.copy = copy, t.queue_open = queue_open, t.queue_close = queue_close;
  t.kernels = kernels;
  return &t;
}
