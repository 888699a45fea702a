#include "backends/cpu/pointwise/program.h"

#include <algorithm>

namespace tenon::cpu {
namespace {

bool is_compare(uint32_t op) { return op >= TN_OP_LT && op <= TN_OP_NE; }
bool is_arith(uint32_t op) { return op == TN_OP_ADD || op == TN_OP_SUB || op == TN_OP_MUL; }
uint32_t operand_count(uint32_t op) {
#define TN_COUNT_(name, code, operands, e32, e64, meaning) case code: return operands;
  switch (op) { TN_OPCODES(TN_COUNT_) default: return 0; }
#undef TN_COUNT_
}

// Code of one instruction whose first operand has type `from`; INPUT, CONST and INDEX have none.
BlockFn find_code(Isa isa, const tn_inst& i, uint32_t from) {
  switch (i.op) {
    case TN_OP_CAST: return find_cast(isa, from, i.type);
    case TN_OP_SELECT: return find_plain_op(isa, i.op, i.type);
    case TN_OP_PHILOX: return find_philox(isa, i.c);
    default: break;
  }
  if (is_compare(i.op) || i.op == TN_OP_ISNAN) return find_plain_op(isa, i.op, from);
  if (i.type == TN_F32 || i.type == TN_F64) return find_float_op(isa, i.op, i.type);
  return find_plain_op(isa, i.op, i.type);
}

template <int kSize>
void copy_bits(void* dst, const void* a, const void*, const void*, const void*, int64_t n) { std::memmove(dst, a, size_t(n * kSize)); }
BlockFn bitcast(uint32_t from, uint32_t to) {
  if (element_size(from) != element_size(to)) return nullptr;
  switch (element_size(to)) {
    case 1: return copy_bits<1>;
    case 2: return copy_bits<2>;
    case 4: return copy_bits<4>;
    case 8: return copy_bits<8>;
    default: return nullptr;
  }
}
BlockFn code_of(Isa isa, const tn_inst& i, uint32_t from) { return i.op == TN_OP_BITCAST ? bitcast(from, i.type) : find_code(isa, i, from); }

// A guess in ns for one element with AVX-512; what matters is the order of magnitude.
double cost_of(const tn_inst& i, uint32_t from) {
  const double width = double(element_size(i.type)) / 4;
  const bool f32 = i.type == TN_F32;
  switch (i.op) {
    case TN_OP_INPUT: case TN_OP_CONST: return 0;
    case TN_OP_POW: case TN_OP_ATAN2: case TN_OP_REM: return 8;
    case TN_OP_PHILOX: return 3;
    case TN_OP_EXP: case TN_OP_EXPM1: case TN_OP_LOG: case TN_OP_LOG1P: case TN_OP_SIN: case TN_OP_COS: case TN_OP_TANH:
    case TN_OP_ATAN: case TN_OP_ERF: return f32 ? 0.35 : 12;
    case TN_OP_DIV: case TN_OP_SQRT: case TN_OP_RSQRT: return f32 ? 0.1 : 0.5 * width;
    case TN_OP_CAST: return 0.08 * std::max(width, double(element_size(from)) / 4);
    default: return 0.04 * width;
  }
}

}  // namespace

void fill_elements(char* dst, const void* value, int64_t size, int64_t n) {
  const auto fill = [&](auto v) {
    std::memcpy(&v, value, sizeof v);
    auto* o = reinterpret_cast<decltype(v)*>(dst);
    for (int64_t i = 0; i < n; ++i) o[i] = v;
  };
  switch (size) {
    case 1: fill(uint8_t{}); break;
    case 2: fill(uint16_t{}); break;
    case 4: fill(uint32_t{}); break;
    default: fill(uint64_t{}); break;
  }
}

int Program::find_unsupported(Isa isa, const tn_program& p, const uint8_t* in_dtypes) {
  for (int v = 0; v < p.n_inst; ++v) {
    const tn_inst& i = p.inst[v];
    if (element_size(i.type) == 0 || element_size(i.type) > 8 || i.type == TN_C64 || i.type == TN_F8E4M3 || i.type == TN_F8E5M2) return v;
    if (i.op == TN_OP_INPUT) {
      if (i.a >= p.n_in || in_dtypes[i.a] != i.type) return v;
      continue;
    }
    if (i.op == TN_OP_CONST) continue;
    if (i.op == TN_OP_INDEX) {
      if (i.type != TN_I64 && i.type != TN_I32 && i.type != TN_U64 && i.type != TN_U32) return v;
      continue;
    }
    if (!code_of(isa, i, p.inst[i.a].type)) return v;
  }
  return -1;
}

// Work data of compile(): values are instruction numbers until the end, pointers after.
struct Program::Lowering {
  const tn_program& src;
  Isa isa;
  uint16_t uses[TN_PROGRAM_MAX_INST]{};
  bool uniform[TN_PROGRAM_MAX_INST]{}, absorbed[TN_PROGRAM_MAX_INST]{};
  int absorbs[TN_PROGRAM_MAX_INST];
  int last_use[TN_PROGRAM_MAX_INST]{};
  int pointer[TN_PROGRAM_MAX_INST];
  bool leaves[TN_PROGRAM_MAX_INST]{};

  void count_uses(uint32_t uniform_inputs) {
    for (int v = 0; v < src.n_inst; ++v) {
      const tn_inst& i = src.inst[v];
      absorbs[v] = pointer[v] = -1;
      const uint16_t operand[3] = {i.a, i.b, i.c};
      const uint32_t n = operand_count(i.op);
      bool all = n > 0;
      for (uint32_t k = 0; k < n; ++k) ++uses[operand[k]], all = all && uniform[operand[k]];
      uniform[v] = i.op == TN_OP_CONST || (i.op == TN_OP_INPUT && (uniform_inputs >> i.a & 1)) || (n > 0 && all);
    }
    for (int o = 0; o < src.n_out; ++o) ++uses[src.out[o]], leaves[src.out[o]] = true;
  }
  bool can_absorb(int v, int user) const {
    return uses[v] == 1 && !leaves[v] && !absorbed[v] && uniform[v] == uniform[user];
  }
  // Operations in a row that end with the f32 add, sub or mul v.
  int length(int v) const { return absorbs[v] < 0 ? 1 : 1 + length(absorbs[v]); }
  // Joins each f32 add, sub or mul to one that feeds it alone, which makes chains, and each selection to its own comparison.
  void fuse() {
    for (int v = 0; v < src.n_inst; ++v) {
      const tn_inst& i = src.inst[v];
      if (i.type != TN_F32) continue;
      if (i.op == TN_OP_SELECT && is_compare(src.inst[i.a].op) && src.inst[src.inst[i.a].a].type == TN_F32 && can_absorb(i.a, v))
        absorbs[v] = i.a, absorbed[i.a] = true;
      if (!is_arith(i.op) || i.a == i.b) continue;
      int best = -1;
      for (const uint16_t w : {i.a, i.b})
        if (is_arith(src.inst[w].op) && src.inst[w].type == TN_F32 && can_absorb(w, v) && length(w) < kMostLinks && (best < 0 || length(w) > length(best))) best = w;
      if (best >= 0) absorbs[v] = best, absorbed[best] = true;
    }
  }
  // Values that the step of v reads, in order; for a chain, what it starts from and then each link's operand.
  std::vector<uint16_t> operands(int v) const {
    const tn_inst& i = src.inst[v];
    if (absorbs[v] < 0) {
      const uint16_t all[3] = {i.a, i.b, i.c};
      return {all, all + operand_count(i.op)};
    }
    if (i.op == TN_OP_SELECT) return {src.inst[absorbs[v]].a, src.inst[absorbs[v]].b, i.b, i.c};
    std::vector<uint16_t> all = operands(absorbs[v]);
    all.push_back(i.a == absorbs[v] ? i.b : i.a);
    return all;
  }
  ChainOp link_op(int v) const {
    const tn_inst& i = src.inst[v];
    if (i.op == TN_OP_SUB) return absorbs[v] >= 0 && i.a != absorbs[v] ? kChainRsub : kChainSub;
    return i.op == TN_OP_ADD ? kChainAdd : kChainMul;
  }
  bool is_chain(int v) const { return is_arith(src.inst[v].op) && length(v) > 2; }
  void link_ops(int v, Chain* c) const {
    if (absorbs[v] >= 0) link_ops(absorbs[v], c);
    c->op[c->n++] = link_op(v);
  }
  // Of steps that are no chain.
  BlockFn code(int v) const {
    const tn_inst& i = src.inst[v];
    if (absorbs[v] < 0) return code_of(isa, i, src.inst[i.a].type);
    const uint32_t first = src.inst[absorbs[v]].op;
    return i.op == TN_OP_SELECT ? find_compare_select(isa, first) : find_pair(isa, first, i.op, i.a != absorbs[v]);
  }
  bool has_step(int v) const { return !absorbed[v] && operand_count(src.inst[v].op) > 0; }
  void find_last_uses() {
    for (int v = 0; v < src.n_inst; ++v) {
      if (!has_step(v)) continue;
      for (const uint16_t w : operands(v)) last_use[w] = v;
    }
  }
};

bool Program::compile(Isa isa, const tn_program& src, const uint8_t* in_dtypes, uint32_t uniform_inputs) {
  if (find_unsupported(isa, src, in_dtypes) >= 0) return false;
  Lowering low{.src = src, .isa = isa};
  n_in = src.n_in;
  n_out = src.n_out;
  chain_fn = find_chain(isa);
  uniform = uniform_inputs;
  std::copy_n(in_dtypes, n_in, in_dtype);
  for (uint32_t o = 0; o < n_out; ++o) out_dtype[o] = src.inst[src.out[o]].type;
  low.count_uses(uniform_inputs);
  low.fuse();
  low.find_last_uses();

  int n_slots = int(n_in + n_out);
  int64_t widest = 4;
  std::vector<uint8_t> free_slots;
  const auto new_slot = [&] {
    if (free_slots.empty()) return n_slots++;
    const int s = free_slots.back();
    free_slots.pop_back();
    return s;
  };
  for (int v = 0; v < src.n_inst; ++v) {
    const tn_inst& i = src.inst[v];
    widest = std::max(widest, element_size(i.type));
    ns_per_element += cost_of(i, src.inst[i.a < src.n_inst ? i.a : 0].type) * (low.uniform[v] ? 0 : 1);
    if (i.op == TN_OP_INPUT) low.pointer[v] = i.a;
    else if (i.op == TN_OP_CONST) {
      low.pointer[v] = n_slots++;
      constants.push_back({uint8_t(low.pointer[v]), uint8_t(i.a), uint8_t(element_size(i.type))});
    } else if (i.op == TN_OP_INDEX) {
      low.pointer[v] = n_slots++;
      indices.push_back({uint8_t(low.pointer[v]), i.type, i.a});
    } else if (low.has_step(v)) {
      const std::vector<uint16_t> operand = low.operands(v);
      int target = -1;
      for (uint32_t o = 0; o < n_out && target < 0 && !low.uniform[v]; ++o)
        if (src.out[o] == v) target = int(n_in + o);
      low.pointer[v] = target >= 0 ? target : low.uniform[v] ? n_slots++ : new_slot();
      const auto unused = uint8_t(low.pointer[v]);
      Step s{nullptr, unused, unused, unused, unused, unused};
      if (low.is_chain(v)) {
        Chain c{};
        low.link_ops(v, &c);
        s.a = uint8_t(low.pointer[operand[0]]), s.chain = int16_t(chains.size());
        for (int k = 0; k < c.n && k < kMostLinks; ++k) c.pointer[k] = uint8_t(low.pointer[operand[size_t(k) + 1]]);
        chains.push_back(c);
      } else {
        uint8_t* field[4] = {&s.a, &s.b, &s.c, &s.d};
        s.fn = low.code(v);
        for (size_t k = 0; k < operand.size(); ++k) *field[k] = uint8_t(low.pointer[operand[k]]);
      }
      (low.uniform[v] ? once : steps).push_back(s);
      for (size_t k = 0; k < operand.size(); ++k) {
        const uint16_t w = operand[k];
        const bool own = low.pointer[w] >= int(n_in + n_out) && !low.uniform[w] && src.inst[w].op != TN_OP_INDEX;
        const bool again = std::find(operand.begin(), operand.begin() + int64_t(k), w) != operand.begin() + int64_t(k);
        if (own && !again && low.last_use[w] == v && !low.leaves[w]) free_slots.push_back(uint8_t(low.pointer[w]));
      }
    }
  }
  for (uint32_t o = 0; o < n_out; ++o) {
    const int from = low.pointer[src.out[o]];
    if (from != int(n_in + o)) copies.push_back({uint8_t(n_in + o), uint8_t(from), uint8_t(element_size(out_dtype[o]))});
    bool written = false;
    for (const Step& s : steps) {
      for (const uint8_t k : {s.a, s.b, s.c, s.d})
        if (written && k < n_in) late_inputs[o] |= uint16_t(1u << k);
      for (int k = 0; s.chain >= 0 && k < chains[size_t(s.chain)].n; ++k)
        if (const uint8_t from = chains[size_t(s.chain)].pointer[k]; written && from < n_in) late_inputs[o] |= uint16_t(1u << from);
      written = written || s.dst == n_in + o;
    }
    for (const Copy& c : copies)
      if (c.out != n_in + o && c.from < n_in) late_inputs[o] |= uint16_t(1u << c.from);
  }
  for (uint32_t k = 0; k < n_in; ++k) widest = std::max(widest, element_size(in_dtype[k]));
  n_pointers = uint32_t(n_slots);
  for (block = 512; block > 64 && n_slots * block * widest > kScratchBytes; block /= 2) {}
  slot_bytes = block * widest;
  return n_slots * slot_bytes <= kScratchBytes && n_slots <= kMaxPointers;
}

void Runner::start(int64_t n) {
  n = std::min((n + kGranule - 1) / kGranule * kGranule, p_.block);
  for (uint32_t s = p_.n_in + p_.n_out; s < p_.n_pointers; ++s) pointer_[s] = scratch_ + s * p_.slot_bytes;
  for (const Program::Constant& c : p_.constants) fill_elements(pointer_[c.pointer], push_ + 8 * c.push_slot, c.size, n);
  for (uint32_t k = 0; k < p_.n_in; ++k) {
    if (!(p_.uniform >> k & 1)) continue;
    fill_elements(stage_in(k), pointer_[k], element_size(p_.in_dtype[k]), n);
    pointer_[k] = stage_in(k);
  }
  for (const Step& s : p_.once) step(s, n);
}

}  // namespace tenon::cpu
