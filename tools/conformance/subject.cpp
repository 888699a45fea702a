#include "tools/conformance/subject.h"

#include <dlfcn.h>
#include <tenon/caps.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>

#include "loader/cold/elf.h"
#include "ops/reference/plugin.h"
#include "tools/conformance/constraints.h"

namespace tenon::conformance {
namespace {

constexpr uint64_t kPatience = 60000000000;  // ns; a device that needs longer for one op of these sizes hangs

loader::ColdResult cold_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(in), {}};
  return loader::read_cold_elf(std::as_bytes(std::span(bytes)));
}

std::string name_of(const std::string& id) { return id.substr(id.rfind('.') + 1); }

template <class T, class Fill>
std::vector<T> listed(Fill fill, const char* what) {
  uint32_t n = 0;
  tn_diag d = empty_diag();
  need(fill(static_cast<T*>(nullptr), 0u, &n, &d), d, what);
  std::vector<T> list(n);
  if (n != 0) need(fill(list.data(), n, &n, &d), d, what);
  list.resize(std::min<size_t>(n, list.size()));
  return list;
}

}  // namespace

void describe(const Options& options, Report* report) {
  report->plugin_id = TN_REFERENCE_ID;
  if (!options.plugin.empty()) {
    const loader::ColdResult cold = cold_of(options.plugin);
    const bool good = cold.status == loader::ColdStatus::Ok;
    report->plugin_id = good ? cold.cold.id : "";
    report->plugin_version = good ? cold.cold.version : "";
  }
  report->device = name_of(report->plugin_id) + ":" + std::to_string(options.device);
  report->abi = std::to_string(TN_ABI_CURRENT >> 16) + "." + std::to_string(TN_ABI_CURRENT & 0xFFFF);
}

tn_diag empty_diag() {
  tn_diag d{};
  d.size = sizeof d;
  return d;
}

std::string text_of(tn_status status, const tn_diag& diag) {
  return std::string(tn_status_text(status)) + (diag.msg[0] != 0 ? ": " + std::string(diag.msg, strnlen(diag.msg, sizeof diag.msg)) : "");
}

void need(tn_status status, const tn_diag& diag, const std::string& what) {
  if (status != TN_OK) throw std::runtime_error(what + ": " + text_of(status, diag));
}

std::string fault_of(tn_status status, const tn_diag& diag) {
  const size_t length = strnlen(diag.msg, sizeof diag.msg);
  if (length == sizeof diag.msg) return "the text of the diagnosis has no end";
  if (length == 0) return "fails with \"" + std::string(tn_status_text(status)) + "\" and says nothing: fill diag->msg with what, why and try";
  if (diag.len != length) return "diag->len is " + std::to_string(diag.len) + ", the text has " + std::to_string(length) + " bytes: " + diag.msg;
  if (diag.status != status) return "diag->status is " + std::to_string(diag.status) + ", the call returned " + std::to_string(status);
  return {};
}

Library::Library(const std::string& path) : id_(TN_REFERENCE_ID) {
  query_ = tn_reference_query;
  if (path.empty()) return;
  const loader::ColdResult cold = cold_of(path);
  id_ = cold.status == loader::ColdStatus::Ok ? cold.cold.id : "";
  keep_ = cold.status == loader::ColdStatus::Ok && (cold.cold.flags & TN_COLD_UNLOADABLE) == 0;
  handle_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle_ == nullptr) throw std::runtime_error(dlerror());
  query_ = reinterpret_cast<tn_plugin_query_fn>(dlsym(handle_, "tn_plugin_query"));
  if (query_ == nullptr) throw std::runtime_error("tn_plugin_query is not exported");
}

Library::~Library() {
  if (handle_ != nullptr && !keep_) dlclose(handle_);
}

tn_plugin table_of(const tn_plugin* given) {
  tn_plugin table{};
  if (given != nullptr) std::memcpy(&table, given, std::min<size_t>(given->size, sizeof table));
  return table;
}

Instance::Instance(const Library& library, Host& host) {
  const tn_plugin* given = library.query(TN_ABI_CURRENT, host.table());
  if (given == nullptr) throw std::runtime_error("tn_plugin_query gives no table for this host's version");
  table = table_of(given);
  tn_diag d = empty_diag();
  need(table.open(host.table(), &self, &d), d, "open");
}

uint32_t Instance::close(uint64_t timeout_ns) {
  uint32_t live = 0;
  if (self == nullptr) return 0;
  tn_diag d = empty_diag();
  const tn_status s = table.quiesce(self, timeout_ns, &live, &d);
  if (s != TN_OK || live != 0) return std::max(live, 1u);
  table.close(self);
  self = nullptr;
  return 0;
}

Instance::~Instance() {
  if (close() != 0) self = nullptr;  // objects live: the contract forbids to close
}

tn_view Memory::view(uint64_t offset, uint64_t size) const {
  return {buffer.handle, offset, size, buffer.host != nullptr ? static_cast<char*>(buffer.host) + offset : nullptr};
}

Subject::Subject(const Library& library, const Options& options) : host_(options.config), base_host_({}) {
  own_ = std::make_unique<Instance>(library, host_);
  device_owner_ = own_.get();
  if (own_->table.devices == nullptr) {
    base_library_ = std::make_unique<Library>("");
    base_ = std::make_unique<Instance>(*base_library_, base_host_);
    device_owner_ = base_.get();
  }
  const tn_plugin& d = devices();
  const auto infos = listed<tn_device_info>([&](tn_device_info* out, uint32_t cap, uint32_t* n, tn_diag* diag) {
    return d.devices(device_instance(), out, sizeof(tn_device_info), cap, n, diag); }, "devices");
  const uint32_t index = pack() ? 0 : options.device;
  if (index >= infos.size())
    throw std::runtime_error("there is no device " + std::to_string(index) + ": the plugin offers " + std::to_string(infos.size()));
  info_ = infos[index];
  caps_ = listed<tn_cap>([&](tn_cap* out, uint32_t cap, uint32_t* n, tn_diag* diag) { return d.caps != nullptr ? d.caps(device_instance(), index, out, cap, n, diag) : (*n = 0, TN_OK); }, "caps");
  tn_diag diag = empty_diag();
  need(d.device_open(device_instance(), index, nullptr, &device_, &diag), diag, "device_open");
  const auto spaces = listed<tn_space_info>([&](tn_space_info* out, uint32_t cap, uint32_t* n, tn_diag* e) { return d.spaces(device_, out, sizeof(tn_space_info), cap, n, e); }, "spaces");
  if (spaces.empty()) throw std::runtime_error("the device has no memory space");
  space_ = spaces[0].id;
  ref_ = {sizeof ref_, 1, info_.kind, 0, 0, pack() ? nullptr : device_, &info_, nullptr, device_instance(), caps_.data(), static_cast<uint32_t>(caps_.size()), 0};
  need(d.queue_open(device_, 0, 0, &queue_, &diag), diag, "queue_open");
  need(d.timeline_open(device_, 0, &timeline_, &diag), diag, "timeline_open");
  if (own_->table.kernels == nullptr) return;
  const tn_kernel_info* first = nullptr;
  uint32_t stride = 0, n = 0;
  need(own_->table.kernels(self(), &first, &stride, &n, &diag), diag, "kernels");
  for (uint32_t i = 0; i < n; ++i) rows_.push_back(reinterpret_cast<const tn_kernel_info*>(reinterpret_cast<const char*>(first) + size_t{i} * stride));
}

Subject::~Subject() {
  for (Memory& m : slots_) free(&m);
  const tn_plugin& d = devices();
  if (timeline_ != nullptr) d.timeline_close(timeline_);
  if (queue_ != nullptr) d.queue_close(queue_);
  if (device_ != nullptr) d.device_close(device_);
}

const tn_kernel_info* Subject::row_of(uint64_t op_id) const {
  for (const tn_kernel_info* row : rows_)
    if (row->op_id == op_id) return row;
  return nullptr;
}

std::string Subject::device_name() const { return pack() ? "cpu:0" : "device " + std::to_string(info_.index); }

Memory Subject::alloc(uint64_t bytes) {
  Memory m;
  tn_diag d = empty_diag();
  need(devices().alloc(device_, space_, bytes, 256, &m.buffer, &d), d, "alloc of " + std::to_string(bytes) + " bytes");
  m.bytes = bytes;
  return m;
}

void Subject::free(Memory* memory) {
  if (memory->bytes != 0) devices().free(device_, &memory->buffer);
  *memory = Memory();
}

tn_status Subject::finish(tn_diag* diag) {
  const tn_plugin& d = devices();
  const uint64_t before = value_++;
  if (tn_status s = d.signal(queue_, timeline_, value_, diag); s != TN_OK) return s;
  if (tn_status s = d.wait(nullptr, timeline_, value_, kPatience, diag); s != TN_OK) return s;
  uint64_t reached = 0, failed = 0;
  if (tn_status s = d.query(timeline_, before, &reached, &failed, diag); s != TN_OK) return s;
  return failed == 0 ? TN_OK : TN_E_FAILED;
}

void Subject::write(const Memory& to, uint64_t offset, const void* data, uint64_t bytes) {
  if (bytes == 0) return;
  const tn_view dst = to.view(offset, bytes), src{0, 0, bytes, const_cast<void*>(data)};
  tn_diag d = empty_diag();
  need(devices().copy(queue_, &dst, &src, &d), d, "copy to the device");
  need(finish(&d), d, "copy to the device");
}

void Subject::read(const Memory& from, uint64_t offset, void* data, uint64_t bytes) {
  if (bytes == 0) return;
  const tn_view src = from.view(offset, bytes), dst{0, 0, bytes, data};
  tn_diag d = empty_diag();
  need(devices().copy(queue_, &dst, &src, &d), d, "copy from the device");
  need(finish(&d), d, "copy from the device");
}

Memory& Subject::slot(size_t number, uint64_t bytes) {
  if (slots_.size() <= number) slots_.resize(number + 1);
  if (slots_[number].bytes < bytes) {
    free(&slots_[number]);
    slots_[number] = alloc(std::max<uint64_t>(bytes, 4096));
  }
  return slots_[number];
}

const tn_kernel_packed* packed_of(const tn_kernel_info& row) {
  for (const tn_ext* e = row.next; e != nullptr; e = e->next)
    if (e->id == TN_EXT_KERNEL_PACKED) return reinterpret_cast<const tn_kernel_packed*>(e);
  return nullptr;
}

Problem Subject::as_asked(const tn_kernel_info& row, const Problem& p) const {
  const tn_kernel_packed* stored = packed_of(row);
  const bool there = stored != nullptr && stored->operand < p.in.size() && p.in[stored->operand].type.dtype != 0;
  return there ? p.with_opaque(stored->operand) : p;
}

tn_status Subject::storable(const tn_kernel_info& row, const Problem& p, uint64_t* out_bytes, tn_diag* diag) {
  const tn_kernel_packed* stored = packed_of(row);
  if (stored == nullptr) return TN_OK;
  std::vector<tn_type> types = p.seen;
  types[stored->operand] = p.in[stored->operand].type;
  tn_op op = p.op();
  op.type = types.data();
  return stored->bytes(self(), &ref_, &op, out_bytes, diag);
}

Subject::Answer Subject::asks(const tn_kernel_info& row, const Problem& strided, std::string* why, tn_support* out) {
  const Problem p = as_asked(row, strided);
  const tn_op& op = p.op();
  if (const tn_kernel_packed* stored = packed_of(row); stored != nullptr && p.seen[stored->operand].layout != TN_LAYOUT_OPAQUE)
    return *why = "the input that it wants stored is absent", Answer::Constraint;
  if (op.op_version < row.op_min || op.op_version > row.op_max) return *why = "another version of the op", Answer::Constraint;
  if (first_failing(row, op, ref_, why) >= 0) return Answer::Constraint;
  uint64_t bytes = 0;
  tn_diag about_bytes = empty_diag();
  if (const tn_status status = storable(row, p, &bytes, &about_bytes); status != TN_OK) return *why = text_of(status, about_bytes), Answer::Refused;
  if (row.supports == nullptr) return Answer::Yes;
  tn_support support{};
  support.size = sizeof support;
  tn_diag d = empty_diag();
  const tn_status s = row.supports(self(), &ref_, &op, &support, &d);
  if (out != nullptr) *out = support;
  if (s == TN_OK) return Answer::Yes;
  *why = text_of(s, d);
  return Answer::Refused;
}

tn_status Subject::launch(const tn_kernel_plan& plan, const Problem& p, std::vector<tn_view> views, tn_diag* diag) {
  // What a launch is given besides memory is gone when it returns.
  std::vector<uint64_t> push = p.call->push;
  const tn_launch call{views.data(), static_cast<uint32_t>(views.size()), static_cast<uint32_t>(8 * push.size()), push.data(), queue_, diag, nullptr};
  const tn_status s = plan.launch(&plan, &call);
  std::fill(push.begin(), push.end(), 0xDEADBEEFDEADBEEFu);
  std::fill(views.begin(), views.end(), tn_view{~uint64_t{0}, ~uint64_t{0}, 0, nullptr});
  return s;
}

namespace {

// Elements of an output, and whether the bytes between them are untouched.
Array taken(const tn_type& t, const std::vector<unsigned char>& bytes, size_t first, bool* clean) {
  Array a{t.dtype, {t.dim, t.dim + t.rank}, {}};
  const size_t width = byte_size(t.dtype);
  std::vector<bool> covered(bytes.size());
  for (size_t i = 0; i < count(a.dims); ++i) {
    const size_t at = first + static_cast<size_t>(offset_of(t, i));
    a.v.push_back(decode(t.dtype, &bytes[at]));
    for (size_t k = 0; k < width; ++k) covered[at + k] = true;
  }
  for (size_t i = 0; i < bytes.size(); ++i) *clean = *clean && (covered[i] || bytes[i] == kPoison);
  return a;
}

}  // namespace

// Puts the stored form of an input into memory of its own and its view in the place of the strided one.
tn_status Subject::store(const tn_kernel_info& row, const Problem& p, std::vector<tn_view>* views, tn_diag* diag) {
  const tn_kernel_packed* stored = packed_of(row);
  if (stored == nullptr) return TN_OK;
  uint64_t bytes = 0;
  if (tn_status s = storable(row, p, &bytes, diag); s != TN_OK) return s;
  std::vector<tn_type> types = p.seen;
  types[stored->operand] = p.in[stored->operand].type;
  tn_op op = p.op();
  op.type = types.data();
  const tn_view dst = slot(p.in.size() + p.out.size() + 1, bytes).view(0, bytes);
  if (tn_status s = stored->pack(self(), &ref_, &op, &(*views)[stored->operand], &dst, queue_, diag); s != TN_OK) return s;
  (*views)[stored->operand] = dst;
  return finish(diag);
}

Outcome Subject::run(const tn_kernel_info& row, const Problem& strided, Stage* stage) {
  const Problem p = as_asked(row, strided);
  Outcome o;
  Stage at = Stage::Prepare;
  if (stage == nullptr) stage = &at;
  *stage = Stage::Prepare;
  tn_diag d = empty_diag();
  const tn_kernel_plan* plan = nullptr;
  o.status = row.prepare(self(), &ref_, &p.op(), &plan, &d);
  if (o.status != TN_OK) return o.message = text_of(o.status, d), o;
  std::vector<tn_view> views;
  for (size_t i = 0; i < p.in.size(); ++i) {
    const Array& a = p.call->in[i];
    if (a.absent()) {
      views.push_back({});
      continue;
    }
    const std::vector<unsigned char> bytes = laid_out(a, p.in[i]);
    Memory& m = slot(i, bytes.size());
    write(m, 0, bytes.data(), bytes.size());
    const uint64_t first = static_cast<uint64_t>(p.in[i].first) * byte_size(a.dtype);
    views.push_back(m.view(first, bytes.size() - first));
  }
  constexpr size_t kFence = 64;
  std::vector<size_t> sizes;
  for (size_t k = 0; k < p.out.size(); ++k) {
    size_t n = 1;
    for (int i = 0; i < p.out[k].rank; ++i) n *= static_cast<size_t>(p.out[k].dim[i]);
    sizes.push_back(n * byte_size(p.out[k].dtype));
    const std::vector<unsigned char> poison(sizes[k] + 2 * kFence, kPoison);
    Memory& m = slot(p.in.size() + k, poison.size());
    write(m, 0, poison.data(), poison.size());
    views.push_back(m.view(kFence, sizes[k]));
  }
  *stage = Stage::Launch;
  o.status = store(row, p, &views, &d);
  if (o.status != TN_OK) return row.retire(self(), &ref_, plan), o.message = "pack: " + text_of(o.status, d), o;
  if (plan->workspace_bytes != 0) views.push_back(slot(p.in.size() + p.out.size(), plan->workspace_bytes).view(0, plan->workspace_bytes));
  *stage = Stage::Launch;
  o.status = launch(*plan, p, views, &d);
  if (o.status == TN_OK) {
    *stage = Stage::Work;
    o.status = finish(&d);
  }
  if (o.status != TN_OK) o.message = text_of(o.status, d);
  for (size_t k = 0; k < p.out.size() && o.status == TN_OK; ++k) {
    std::vector<unsigned char> bytes(sizes[k] + 2 * kFence);
    read(slots_[p.in.size() + k], 0, bytes.data(), bytes.size());
    bool clean = true;
    o.out.push_back(taken(p.out[k], bytes, kFence, &clean));
    if (!clean) o.status = TN_E_BUG, o.message = "bytes outside output " + std::to_string(k) + " were written";
  }
  row.retire(self(), &ref_, plan);
  if (o.status == TN_OK) *stage = Stage::Done;
  return o;
}

}  // namespace tenon::conformance
