#include "kernel/op_table.h"

#include <tenon/ops.h>

#include <algorithm>
#include <cstring>

#include "kernel/status.h"

namespace tenon::kernel {
namespace {

// Levenshtein distance, for the suggestion in "no such op".
size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substitute = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substitute});
    }
  }
  return row[b.size()];
}

const char* rule_name(uint32_t rule) {
  switch (rule) {
    case TN_RULE_VJP: return "vjp";
    case TN_RULE_JVP: return "jvp";
    case TN_RULE_BATCH: return "batch";
    default: return "expand";
  }
}

}  // namespace

uint32_t output_count(const tn_op_def& def, const AttrSet& attrs) {
  if (def.n_out != TN_VARIADIC) return def.n_out;
  if (const tn_program* post = attrs.program(TN_KEY_POST)) return post->n_out;
  const tn_program* program = attrs.program(TN_KEY_PROGRAM);
  return program ? program->n_out : 1;
}

OpTable::~OpTable() {
  for (auto& chunk : chunks_) delete chunk.load();
}

OpEntry* OpTable::append(tn_diag* diag) {
  const uint32_t index = count_.load(std::memory_order_relaxed);
  if (index == kLimit) {
    fail(diag, TN_E_LIMIT, id(kState, 3), "op table is full\nwhy: %u ops are defined or derived\ntry: make a new runtime", kLimit);
    return nullptr;
  }
  std::atomic<Chunk*>& chunk = chunks_[index / kChunk];
  if (!chunk.load(std::memory_order_relaxed)) chunk.store(new Chunk, std::memory_order_release);
  OpEntry* entry = &(*chunk.load(std::memory_order_relaxed))[index % kChunk];
  entry->id = index;
  return entry;
}

const OpEntry* OpTable::get(uint32_t id) const {
  if (id == 0 || id >= count_.load(std::memory_order_acquire)) return nullptr;
  return &(*chunks_[id / kChunk].load(std::memory_order_acquire))[id % kChunk];
}

tn_status OpTable::define(const tn_op_def* def, uint32_t plugin, uint32_t* out_id, tn_diag* diag) {
  (void)plugin;
  if (!def || !TN_HAS(tn_op_def, def, ctx) || !def->name || !def->infer)
    return fail(diag, TN_E_ARG, id(kOp, 1), "op definition is incomplete\nwhy: size is %u (at least %zu wanted), name is %s, infer is %s\ntry: fill tn_op_def up to ctx", def ? def->size : 0,
                offsetof(tn_op_def, ctx) + sizeof(def->ctx), def && TN_HAS(tn_op_def, def, name) && def->name ? "set" : "NULL", def && TN_HAS(tn_op_def, def, infer) && def->infer ? "set" : "NULL");
  if (!def->expand && def->op_id >> 63 == 0 && def->op_id >= TN_OPID_END_)
    return fail(diag, TN_E_ARG, id(kOp, 2), "op %s has a number outside its range\nwhy: %llu; core numbers are below 2^16, others have bit 63\ntry: use FNV-1a-64 of the name with bit 63 set", def->name, static_cast<unsigned long long>(def->op_id));
  std::lock_guard lock(mutex_);
  const auto key = std::make_pair(def->op_id, uint32_t{def->version});
  if (by_id_.count(key))
    return fail(diag, TN_E_EXISTS, id(kOp, 3), "op %s version %u is defined already\nwhy: an op has one definition\ntry: choose another name or version", def->name, def->version);
  OpEntry* entry = append(diag);
  if (!entry) return TN_E_LIMIT;
  entry->def = def;
  entry->name = def->name;
  by_id_[key] = entry->id;
  by_name_.emplace(std::make_pair(entry->name, uint32_t{def->version}), entry->id);
  *out_id = entry->id;
  count_.store(entry->id + 1, std::memory_order_release);
  return TN_OK;
}

tn_status OpTable::derive(uint32_t op, const tn_derive& how, uint32_t* out_id, tn_diag* diag) {
  const OpEntry* base = get(op);
  if (!base) return fail(diag, TN_E_STALE, id(kOp, 4), "unknown op id\nwhy: %u is no op of this runtime\ntry: look the op up with tn_op_find", op);
  if (how.rule != TN_RULE_VJP)
    return fail(diag, TN_E_UNSUPPORTED, id(kOp, 5), "rule %s cannot be derived yet\nwhy: this version derives vjp only\ntry: use tn_op_derive with TN_RULE_VJP",
                rule_name(how.rule));
  if (how.need == 0) return fail(diag, TN_E_ARG, id(kOp, 6), "nothing to derive\nwhy: need is 0\ntry: set a bit per result that is wanted");
  std::lock_guard lock(mutex_);
  const auto key = std::make_tuple(op, how.rule, how.seeds, how.need);
  if (auto it = by_rule_.find(key); it != by_rule_.end()) {
    *out_id = it->second;
    return TN_OK;
  }
  OpEntry* entry = append(diag);
  if (!entry) return TN_E_LIMIT;
  entry->def = base->def;
  entry->base = op;
  entry->rule = how.rule;
  entry->seeds = how.seeds;
  entry->need = how.need;
  entry->name = std::string(rule_name(how.rule)) + "(" + base->name + ")";
  by_rule_[key] = entry->id;
  *out_id = entry->id;
  count_.store(entry->id + 1, std::memory_order_release);
  return TN_OK;
}

const OpEntry* OpTable::find(uint64_t op_id, uint32_t version) const {
  std::lock_guard lock(mutex_);
  if (version) {
    auto it = by_id_.find({op_id, version});
    return it == by_id_.end() ? nullptr : get(it->second);
  }
  auto it = by_id_.lower_bound({op_id + 1, 0});
  if (it == by_id_.begin() || (--it)->first.first != op_id) return nullptr;
  return get(it->second);
}

const OpEntry* OpTable::find(const char* name, uint32_t version, tn_diag* diag) const {
  {
    std::lock_guard lock(mutex_);
    auto it = by_name_.upper_bound(std::make_pair(std::string(name), version ? version : UINT32_MAX));
    if (it != by_name_.begin() && (--it)->first.first == name && (version == 0 || it->first.second == version)) return get(it->second);
  }
  const OpEntry* nearest = nullptr;
  size_t distance = SIZE_MAX;
  const std::vector<const OpEntry*> all = base_ops();
  for (const OpEntry* e : all) {
    const size_t d = edit_distance(name, e->name);
    if (d < distance) distance = d, nearest = e;
  }
  const bool known = nearest && nearest->name == name;
  if (known) fail(diag, TN_E_NOT_FOUND, id(kOp, 7), "op %s has no version %u\nwhy: its newest is version %u\ntry: ask for version 0, the newest", name, version, find(name, 0, nullptr)->def->version);
  else fail(diag, TN_E_NOT_FOUND, id(kOp, 7), "no op is called %s\nwhy: %zu ops are defined\ntry: use %s, or list them with `tenon ops`", name, all.size(), nearest ? nearest->name.c_str() : "another name");
  return nullptr;
}

std::vector<const OpEntry*> OpTable::base_ops() const {
  std::vector<const OpEntry*> out;
  const uint32_t n = count_.load(std::memory_order_acquire);
  for (uint32_t i = 1; i < n; ++i)
    if (const OpEntry* e = get(i); !e->derived()) out.push_back(e);
  return out;
}

}  // namespace tenon::kernel
