#include "kernel/attr_table.h"

#include <algorithm>
#include <cstring>

#include "kernel/program.h"
#include "kernel/status.h"
#include "kernel/type_table.h"

namespace tenon::kernel {
namespace {

size_t payload_bytes(const tn_attr& a) {
  switch (a.type) {
    case TN_ATTR_STRING: return a.len + 1;
    case TN_ATTR_I64S:
    case TN_ATTR_F64S: return a.len * 8;
    case TN_ATTR_TYPE: return sizeof(tn_type);
    default: return 0;
  }
}

bool same_program(const tn_program& a, const tn_program& b) {
  return a.n_inst == b.n_inst && a.n_in == b.n_in && a.n_out == b.n_out && a.n_slots == b.n_slots &&
         std::memcmp(a.out, b.out, sizeof a.out) == 0 && std::memcmp(a.inst, b.inst, a.n_inst * sizeof(tn_inst)) == 0;
}

bool same_attr(const tn_attr& a, const tn_attr& b) {
  if (a.key != b.key || a.type != b.type || a.len != b.len) return false;
  if (a.type == TN_ATTR_I64 || a.type == TN_ATTR_F64) return a.v.i == b.v.i;
  if (a.type == TN_ATTR_PROGRAM)
    return same_program(*static_cast<const tn_program*>(a.v.p), *static_cast<const tn_program*>(b.v.p));
  const size_t bytes = payload_bytes(a);
  return bytes == 0 || std::memcmp(a.v.p, b.v.p, bytes) == 0;
}

uint64_t hash_attr(const tn_attr& a, uint64_t h) {
  const uint64_t head[3] = {a.key, a.type, a.len};
  h = hash_bytes(head, sizeof head, h);
  if (a.type == TN_ATTR_I64 || a.type == TN_ATTR_F64) return hash_bytes(&a.v.i, 8, h);
  if (a.type == TN_ATTR_PROGRAM) {
    const tn_program& p = *static_cast<const tn_program*>(a.v.p);
    return hash_bytes(p.inst, p.n_inst * sizeof(tn_inst), hash_bytes(p.out, sizeof p.out, h));
  }
  return hash_bytes(a.v.p, payload_bytes(a), h);
}

}  // namespace

const tn_attr* AttrSet::find(uint32_t key) const {
  for (const tn_attr& a : attrs_)
    if (a.key == key) return &a;
  return nullptr;
}

const tn_program* AttrSet::program(uint32_t key) const {
  const tn_attr* a = find(key);
  return a && a->type == TN_ATTR_PROGRAM ? static_cast<const tn_program*>(a->v.p) : nullptr;
}

bool AttrSet::equals(const AttrSet& other) const {
  return hash_ == other.hash_ && attrs_.size() == other.attrs_.size() &&
         std::equal(attrs_.begin(), attrs_.end(), other.attrs_.begin(), same_attr);
}

tn_status AttrSet::copy_payload(tn_attr* attr, tn_diag* diag) {
  if (attr->type < TN_ATTR_I64 || attr->type > TN_ATTR_PROGRAM)
    return fail(diag, TN_E_ARG, id(kArg, 206), "attribute has an unknown type\nwhy: key %u, type %u\ntry: use one of TN_ATTR_*", attr->key, attr->type);
  if (attr->type == TN_ATTR_I64 || attr->type == TN_ATTR_F64) {
    attr->len = 0;
    return TN_OK;
  }
  if (!attr->v.p && (attr->type == TN_ATTR_PROGRAM || attr->type == TN_ATTR_TYPE || attr->len != 0))
    return fail(diag, TN_E_ARG, id(kArg, 207), "attribute has no data\nwhy: key %u holds a null pointer\ntry: point it at its value", attr->key);
  if (attr->type == TN_ATTR_PROGRAM) {
    const tn_program& p = *static_cast<const tn_program*>(attr->v.p);
    if (tn_status status = validate_program(p, diag)) return status;
    auto copy = std::make_unique<ProgramCopy>();
    copy->inst.assign(p.inst, p.inst + p.n_inst);
    copy->program = p;
    copy->program.size = sizeof(tn_program);
    copy->program.inst = copy->inst.data();
    copy->program.opcodes = opcode_mask(p);
    for (uint32_t i = p.n_out; i < TN_PROGRAM_MAX_OUT; ++i) copy->program.out[i] = 0;
    uses_index_ |= (copy->program.opcodes >> TN_OP_INDEX & 1) != 0;
    attr->v.p = &copy->program;
    attr->len = 1;
    programs_.push_back(std::move(copy));
    return TN_OK;
  }
  if (attr->len > (1u << 20))
    return fail(diag, TN_E_LIMIT, id(kArg, 208), "attribute is too long\nwhy: key %u has %llu elements, at most 2^20\ntry: pass it as a tensor", attr->key,
                static_cast<unsigned long long>(attr->len));
  auto bytes = std::make_unique<std::vector<char>>(payload_bytes(*attr) + 1);
  if (attr->len || attr->type == TN_ATTR_TYPE)
    std::memcpy(bytes->data(), attr->v.p, attr->type == TN_ATTR_STRING ? attr->len : payload_bytes(*attr));
  attr->v.p = bytes->data();
  payloads_.push_back(std::move(bytes));
  return TN_OK;
}

tn_status AttrSet::make(std::span<const tn_attr> attrs, std::shared_ptr<const AttrSet>* out, tn_diag* diag) {
  auto set = std::make_shared<AttrSet>();
  set->attrs_.assign(attrs.begin(), attrs.end());
  std::sort(set->attrs_.begin(), set->attrs_.end(), [](const tn_attr& a, const tn_attr& b) { return a.key < b.key; });
  uint64_t h = attrs.size();
  for (size_t i = 0; i < set->attrs_.size(); ++i) {
    tn_attr* a = &set->attrs_[i];
    if (i && set->attrs_[i - 1].key == a->key)
      return fail(diag, TN_E_ARG, id(kArg, 209), "attribute given twice\nwhy: key %u appears more than once\ntry: remove one", a->key);
    if (tn_status status = set->copy_payload(a, diag)) return status;
    h = hash_attr(*a, h);
  }
  set->hash_ = h;
  *out = std::move(set);
  return TN_OK;
}

tn_status AttrTable::intern(std::span<const tn_attr> attrs, uint32_t* out_id, AttrRef* out_set, tn_diag* diag) {
  if (attrs.empty()) {
    *out_id = 0;
    if (out_set) *out_set = get(0);
    return TN_OK;
  }
  AttrRef set;
  if (tn_status status = AttrSet::make(attrs, &set, diag)) return status;
  std::lock_guard lock(mutex_);
  auto [begin, end] = by_hash_.equal_range(set->hash());
  for (auto it = begin; it != end; ++it) {
    Slot& s = slots_[it->second];
    if (!s.set->equals(*set)) continue;
    s.recent = true;
    *out_id = it->second | s.generation << 20;
    if (out_set) *out_set = s.set;
    return TN_OK;
  }
  if (slots_.size() >= kLimit && free_.empty()) sweep();
  uint32_t index;
  if (!free_.empty()) {
    index = free_.back();
    free_.pop_back();
  } else if (slots_.size() < kLimit) {
    index = static_cast<uint32_t>(slots_.size());
    slots_.emplace_back();
  } else {
    return fail(diag, TN_E_LIMIT, id(kState, 2), "attribute table is full\nwhy: %u sets are in use\ntry: make a new runtime", kLimit);
  }
  Slot& s = slots_[index];
  s.set = set;
  s.recent = true;
  by_hash_.emplace(set->hash(), index);
  *out_id = index | s.generation << 20;
  if (out_set) *out_set = set;
  return TN_OK;
}

// Second chance: what was not asked for since the last sweep goes; if all were, half the table goes.
void AttrTable::sweep() {
  for (int pass = 0; pass < 2 && free_.empty(); ++pass) {
    for (uint32_t i = 1; i < slots_.size(); ++i) {
      Slot& s = slots_[i];
      if (!s.set || s.generation == 0xFFF) continue;
      if (s.recent && pass == 0) {
        s.recent = false;
        continue;
      }
      if (pass == 1 && i % 2) continue;
      auto [begin, end] = by_hash_.equal_range(s.set->hash());
      for (auto it = begin; it != end; ++it)
        if (it->second == i) {
          by_hash_.erase(it);
          break;
        }
      s.set.reset();
      ++s.generation;
      free_.push_back(i);
    }
  }
}

AttrRef AttrTable::get(uint32_t id) const {
  static const AttrRef kEmpty = std::make_shared<const AttrSet>();
  if (id == 0) return kEmpty;
  const uint32_t index = id & 0xFFFFF;
  std::lock_guard lock(mutex_);
  if (index >= slots_.size() || slots_[index].generation != id >> 20) return nullptr;
  slots_[index].recent = true;
  return slots_[index].set;
}

}  // namespace tenon::kernel
