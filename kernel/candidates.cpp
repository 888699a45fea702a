#include "kernel/candidates.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <iterator>

#include "kernel/fp_env.h"
#include "kernel/status.h"

namespace tenon::kernel {
namespace {

const char* kind_text(uint32_t kind) {
  static constexpr const char* kNames[] = {"no device", "a CPU", "a CUDA device", "a HIP device", "an OpenCL device", "a Vulkan device"};
  return kind < std::size(kNames) ? kNames[kind] : "a device of a vendor's own kind";
}

// Texts of one failed constraint. `at` is the operand looked at.
struct Check {
  const tn_op& op;
  const AttrSet& attrs;
  const Device& device;
  char* reason;
  size_t size;

  bool no(const char* format, ...) const __attribute__((format(printf, 2, 3))) {
    va_list args;
    va_start(args, format);
    std::vsnprintf(reason, size, format, args);
    va_end(args);
    return false;
  }

  static void mask_text(uint64_t mask, char* out, size_t room) {
    size_t used = 0;
    out[0] = 0;
    for (uint32_t d = 0; d < 64 && used + 8 < room; ++d)
      if (mask >> d & 1 && dtype_bits(d)) used += static_cast<size_t>(std::snprintf(out + used, room - used, "%s%s", used ? "," : "", dtype_name(d)));
  }

  bool dtype(const tn_constraint& c, int i) const {
    if (op.type[i].dtype == 0 || c.mask >> op.type[i].dtype & 1) return true;
    char names[128];
    mask_text(c.mask, names, sizeof names);
    return no("operand %d is %s, kernel takes %s", i, dtype_name(op.type[i].dtype), names);
  }

  bool contiguous(const tn_constraint& c, int i) const {
    const tn_type& t = op.type[i];
    if (t.dtype == 0) return true;
    int64_t stride = 1;
    const int first = c.arg == 0 || c.arg >= t.rank ? 0 : t.rank - static_cast<int>(c.arg);
    for (int k = t.rank - 1; k >= first; --k) {
      if (t.dim[k] != 1 && t.stride[k] != stride) return no("operand %d is not dense: stride[%d] is %lld, not %lld", i, k, (long long)t.stride[k], (long long)stride);
      stride *= t.dim[k];
    }
    return true;
  }

  bool dim(const tn_constraint& c, int i) const {
    const tn_type& t = op.type[i];
    if (t.dtype == 0) return true;
    const uint32_t axis = c.arg;
    if (axis >= t.rank) return no("operand %d has rank %u, kernel looks at dim %u", i, t.rank, axis);
    const int64_t d = t.dim[axis];
    if (c.kind == TN_NEED_DIM_MULTIPLE) return c.lo > 0 && d % c.lo == 0 ? true : no("operand %d dim[%u] is %lld, no multiple of %lld", i, axis, (long long)d, (long long)c.lo);
    return d >= c.lo && d <= c.hi ? true : no("operand %d dim[%u] is %lld, outside %lld..%lld", i, axis, (long long)d, (long long)c.lo, (long long)c.hi);
  }

  bool attr(const tn_constraint& c) const {
    const tn_attr* a = attrs.find(c.arg);
    const int64_t v = a && a->type == TN_ATTR_I64 ? a->v.i : 0;
    if (c.mask) return v >= 0 && v < 64 && c.mask >> v & 1 ? true : no("attribute %u is %lld, outside the kernel's set", c.arg, (long long)v);
    return v >= c.lo && v <= c.hi ? true : no("attribute %u is %lld, outside %lld..%lld", c.arg, (long long)v, (long long)c.lo, (long long)c.hi);
  }

  bool program(const tn_constraint& c) const {
    const tn_program* p = attrs.program(c.arg);
    if (!p) return true;
    if (c.kind == TN_NEED_PROGRAM_OPCODES) {
      const uint64_t over = p->opcodes & ~c.mask;
      return over == 0 ? true : no("program opcode %d outside the kernel's mask", __builtin_ctzll(over));
    }
    const int64_t n_in = c.hi & 0xFF, n_out = c.hi >> 8 & 0xFF;
    if (p->n_inst > c.lo) return no("program has %u instructions, kernel takes %lld", p->n_inst, (long long)c.lo);
    if (p->n_in > n_in || p->n_out > n_out) return no("program has %u inputs and %u outputs, kernel takes %lld and %lld", p->n_in, p->n_out, (long long)n_in, (long long)n_out);
    return true;
  }

  bool cap(const tn_constraint& c) const {
    const tn_cap* cap = device.find_cap(c.arg);
    if (!cap) return no("device does not report capability %u", c.arg);
    const double v = cap->type == TN_CAP_F64 ? cap->v.f : cap->type == TN_CAP_I64 ? static_cast<double>(cap->v.i) : static_cast<double>(cap->v.u);
    return v >= static_cast<double>(c.lo) && v <= static_cast<double>(c.hi) ? true : no("capability %u is %g, outside %lld..%lld", c.arg, v, (long long)c.lo, (long long)c.hi);
  }

  bool operand(const tn_constraint& c, int i) const {
    const tn_type& t = op.type[i];
    switch (c.kind) {
      case TN_NEED_DTYPE: return dtype(c, i);
      case TN_NEED_RANK: return t.dtype == 0 || (t.rank >= c.lo && t.rank <= c.hi) ? true : no("operand %d has rank %u, outside %lld..%lld", i, t.rank, (long long)c.lo, (long long)c.hi);
      case TN_NEED_LAYOUT: return t.dtype == 0 || (t.layout < 64 && c.mask >> t.layout & 1) ? true : no("operand %d has layout %u", i, t.layout);
      case TN_NEED_CONTIGUOUS: return contiguous(c, i);
      case TN_NEED_DIM:
      case TN_NEED_DIM_MULTIPLE: return dim(c, i);
      case TN_NEED_ALIGN:
        return t.dtype == 0 || t.align_log2 >= c.lo ? true : no("operand %d is aligned to %d bytes, kernel needs %lld", i, 1 << t.align_log2, c.lo < 62 ? 1LL << c.lo : INT64_MAX);
      case TN_NEED_SPACE: return t.dtype == 0 || (t.space < 64 && c.mask >> t.space & 1) ? true : no("operand %d lies in memory kind %u", i, t.space);
      case TN_NEED_SAME_TYPE:
        if (c.arg >= uint32_t{op.n_in} + op.n_out) return t.dtype == 0 ? true : no("operand %d is to have the type of operand %u, which this call does not have", i, c.arg);
        return t.dtype == op.type[c.arg].dtype || t.dtype == 0 ? true : no("operand %d is %s, operand %u is %s", i, dtype_name(t.dtype), c.arg, dtype_name(op.type[c.arg].dtype));
      case TN_NEED_STATIC: return has_symbols(t) ? no("operand %d has sizes known only when running", i) : true;
      case TN_NEED_BYTES: {
        const uint64_t bytes = t.dtype ? dense_bytes(t) : 0;
        return t.dtype == 0 || (bytes >= static_cast<uint64_t>(c.lo) && bytes <= static_cast<uint64_t>(c.hi)) ? true : no("operand %d has %llu bytes, outside %lld..%lld", i, (unsigned long long)bytes, (long long)c.lo, (long long)c.hi);
      }
      default: return no("constraint kind %u is unknown to this core", c.kind);
    }
  }

  bool holds(const tn_constraint& c) const {
    switch (c.kind) {
      case TN_NEED_DEVICE_KIND: return device.info.kind == c.arg ? true : no("%s is %s, the kernel needs %s", device.name, kind_text(device.info.kind), kind_text(c.arg));
      case TN_NEED_CAP: return cap(c);
      case TN_NEED_ATTR: return attr(c);
      case TN_NEED_PROGRAM_OPCODES:
      case TN_NEED_PROGRAM_LIMITS: return program(c);
      default: break;
    }
    const int n = op.n_in + op.n_out;
    if (c.operand != TN_ANY_OPERAND && c.operand >= n) return true;  // about an operand this call does not have
    const int first = c.operand == TN_ANY_OPERAND ? 0 : c.operand, last = c.operand == TN_ANY_OPERAND ? n : c.operand + 1;
    for (int i = first; i < last; ++i)
      if (!operand(c, i)) return false;
    return true;
  }
};

}  // namespace

uint32_t check_constraints(const tn_kernel_info& kernel, const tn_op& op, const AttrSet& attrs, const Device& device, char* reason, size_t size) {
  const Check check{op, attrs, device, reason, size};
  for (uint32_t i = 0; i < kernel.n_cons; ++i)
    if (!check.holds(kernel.cons[i])) return i;
  return kernel.n_cons;
}

bool check_layouts(const KernelRow& row, const tn_op& op, const LayoutTable& layouts, char* reason, size_t size) {
  for (uint32_t i = 0; i < uint32_t{op.n_in} + op.n_out; ++i) {
    const tn_type& t = op.type[i];
    const uint32_t want = row.packed && row.packed->operand == i ? row.layout : uint32_t{TN_LAYOUT_STRIDED};
    if (t.layout == want) continue;
    if (want) std::snprintf(reason, size, "operand %u is not stored as %s (see tn_tensor_pack)", i, row.packed->layout);
    else std::snprintf(reason, size, "operand %u is stored as %s, which this kernel does not read", i, layouts.name(t.layout));
    return false;
  }
  return true;
}

namespace {

bool comes_before(const KernelRow& a, const KernelRow& b) {
  const int c = std::strcmp(a.plugin->entry.id, b.plugin->entry.id);
  return c != 0 ? c < 0 : std::strcmp(a.info->name, b.info->name) < 0;
}

// The row's extensions: the packed operand is known; another critical one is refused.
tn_status read_extensions(KernelRow* row, LayoutTable& layouts, tn_diag* diag) {
  const char* name = row->info->name;
  uint32_t links = 0;
  for (const tn_ext* e = row->info->next; e; e = e->next) {
    if (++links > 16) return fail(diag, TN_E_ARG, id(kAbi, 6), "%s: malformed extension chain\nwhy: more than 16 links\ntry: set next of the last link to NULL", name);
    if (e->id != TN_EXT_KERNEL_PACKED) {
      if (e->id & TN_EXT_CRITICAL)
        return fail(diag, TN_E_EXT, id(kAbi, 5), "%s: unknown critical extension\nwhy: extension 0x%08x changes the row, this build does not know it\ntry: update libtenon, or leave the extension out", name, e->id);
      continue;
    }
    if (row->packed) return fail(diag, TN_E_ARG, id(kAbi, 6), "%s: malformed extension chain\nwhy: extension 0x%08x twice\ntry: give it once", name, e->id);
    const auto* p = reinterpret_cast<const tn_kernel_packed*>(e);
    if (e->size < sizeof *p || !p->layout || !p->bytes || !p->pack)
      return fail(diag, TN_E_BUG, id(kAbi, 2), "%s: kernel row is incomplete\nwhy: a packed operand needs layout, bytes and pack\ntry: report it to the plugin's author", name);
    if (tn_status s = layouts.intern(p->layout, &row->layout, diag)) return s;
    row->packed = p;
  }
  return TN_OK;
}

}  // namespace

tn_status CandidateTable::add(PluginSlot* slot, LayoutTable& layouts, tn_diag* diag) {
  if (!TN_HAS(tn_plugin, slot->table, kernels) || !slot->table->kernels) return TN_OK;
  const tn_kernel_info* kernels = nullptr;
  uint32_t stride = 0, n = 0;
  if (tn_status s = call_plugin(slot->table->kernels, slot->instance, &kernels, &stride, &n, diag)) return s;
  if (n && (!kernels || stride < offsetof(tn_kernel_info, retire)))
    return fail(diag, TN_E_BUG, id(kAbi, 1), "%s: kernel table is malformed\nwhy: %u rows of stride %u\ntry: report it to the plugin's author", slot->entry.id, n, stride);
  std::unique_lock lock(mutex_);
  for (uint32_t i = 0; i < n; ++i) {
    const auto* info = reinterpret_cast<const tn_kernel_info*>(reinterpret_cast<const char*>(kernels) + size_t{i} * stride);
    if (!TN_HAS(tn_kernel_info, info, retire) || !info->name || !info->prepare || !info->retire || (info->n_cons && !info->cons))
      return fail(diag, TN_E_BUG, id(kAbi, 2), "%s: kernel row %u is incomplete\nwhy: name, prepare and retire are required\ntry: report it to the plugin's author", slot->entry.id, i);
    auto row = std::make_unique<KernelRow>(KernelRow{slot, slot->entry.index, info, i});
    if (tn_status s = read_extensions(row.get(), layouts, diag)) return s;
    auto& list = by_op_[info->op_id];
    auto before = [](const std::unique_ptr<KernelRow>& a, const std::unique_ptr<KernelRow>& b) { return comes_before(*a, *b); };
    list.insert(std::upper_bound(list.begin(), list.end(), row, before), std::move(row));
  }
  return TN_OK;
}

void CandidateTable::remove(const PluginSlot* slot) {
  std::unique_lock lock(mutex_);
  for (auto& [op, list] : by_op_) std::erase_if(list, [slot](const std::unique_ptr<KernelRow>& row) { return row->plugin == slot; });
}

std::vector<const KernelRow*> CandidateTable::rows(uint64_t op_id, uint32_t version) const {
  std::shared_lock lock(mutex_);
  std::vector<const KernelRow*> out;
  auto it = by_op_.find(op_id);
  if (it == by_op_.end()) return out;
  for (const auto& row : it->second)
    if (row->info->op_min <= version && version <= row->info->op_max) out.push_back(row.get());
  return out;
}

std::vector<const KernelRow*> CandidateTable::all() const {
  std::shared_lock lock(mutex_);
  std::vector<const KernelRow*> out;
  for (const auto& [op, list] : by_op_)
    for (const auto& row : list) out.push_back(row.get());
  std::sort(out.begin(), out.end(), [](const KernelRow* a, const KernelRow* b) {
    return comes_before(*a, *b) || (!comes_before(*b, *a) && a->number < b->number);
  });
  return out;
}

size_t CandidateTable::size() const {
  std::shared_lock lock(mutex_);
  size_t n = 0;
  for (const auto& [op, list] : by_op_) n += list.size();
  return n;
}

}  // namespace tenon::kernel
