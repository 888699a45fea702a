// The way of one op call: handles and ids down to tn_call, results up, and a note for the tape.
#include "framework/core/state.h"

namespace tenon::detail {
namespace {

constexpr uint32_t kInlineOperands = 24;

uint64_t hash_words(const uint64_t* w, uint32_t n, uint32_t op) {
  uint64_t h = op * 0x9E3779B97F4A7C15ull;
  for (uint32_t i = 0; i < n; ++i) h = (h ^ w[i]) * 0xFF51AFD7ED558CCDull, h ^= h >> 32;
  return h;
}

uint32_t intern_attrs(RuntimeState* rt, uint32_t op, const Attrs& attrs, Where where) {
  tn_attr list[16];
  uint32_t n = 0;
  const uint64_t* w = attrs.words();
  for (uint32_t i = 0; i < attrs.size();) {
    const uint64_t head = w[i++];
    tn_attr& a = list[n++];
    a.key = static_cast<uint32_t>(head);
    a.type = static_cast<uint32_t>(head >> 32 & 0xFF);
    a.len = head >> 40;
    if (a.type == TN_ATTR_I64S) {
      a.v.p = w + i;
      i += static_cast<uint32_t>(a.len);
    } else {
      a.len = 0;
      std::memcpy(&a.v, w + i++, 8);
    }
  }
  uint32_t id = 0;
  tn_diag diag{sizeof diag};
  const tn_status s = tn_attr_intern(rt->handle, op, list, n, &id, &diag);
  if (s != TN_OK) raise(diag, s, where, "attributes", nullptr);
  return id;
}

// The handles of all operands, on the stack but for ops of very many.
struct Handles {
  explicit Handles(const Call& c) {
    if (c.n_in > kInlineOperands) many.resize(c.n_in);
    data = many.empty() ? few : many.data();
    for (uint32_t i = 0; i < c.n_in; ++i) data[i] = c.in[i].handle;
  }
  tn_tensor* few[kInlineOperands];
  std::vector<tn_tensor*> many;
  tn_tensor** data;
};

void forget_ids(ThreadState& ts) {
  for (auto& e : ts.attrs) e.runtime = 0;
  for (auto& e : ts.dtypes) e.runtime = 0;
  for (auto& e : ts.vjps) e.runtime = 0;
  for (auto& e : ts.derives) e.runtime = 0;
}

[[noreturn]] void raise_call(const Call& call, const tn_diag& diag, tn_status s) {
  raise(diag, s, call.where, call.name ? call.name : op_name(call.number), call.device);
}

[[noreturn]] __attribute__((noinline)) void raise_absent_op(const Call& call) {
  raise(TN_E_NOT_FOUND, error::id(error::kOp, 101), call.where, op_name(call.number), "this runtime does not know the op",
        format("core op number %u is not defined", call.number), "use a libtenon of the version that the framework was built for");
}

bool any_node(const Call& call) {
  for (uint32_t i = 0; i < call.n_in; ++i) if (call.in[i].node != nullptr) return true;
  return false;
}

// A call that fails after its kernel ran gives its results back; tensors that the caller gave stay the caller's.
__attribute__((noinline, cold)) void give_back(const Call& call, tn_tensor** made, TensorImpl** out, uint64_t given) {
  for (uint32_t j = 0; j < call.n_out; ++j) {
    if (j < 64 && (given >> j & 1)) continue;
    if (out[j] != nullptr) const Tensor drop = adopt(std::exchange(out[j], nullptr));
    else if (made[j] != nullptr) tn_tensor_release(made[j]);
  }
}

}  // namespace

uint32_t attr_id(ThreadState& ts, RuntimeState* rt, uint32_t op, const Attrs& attrs, Where where) {
  constexpr uint32_t kHeld = sizeof(AttrEntry::words) / 8;
  if (attrs.size() > kHeld) return intern_attrs(rt, op, attrs, where);
  AttrEntry& e = ts.attrs[hash_words(attrs.words(), attrs.size(), op) % ThreadState::kAttrs];
  if (e.runtime == rt->serial && e.op == op && e.n == attrs.size() && std::memcmp(e.words, attrs.words(), 8 * e.n) == 0) return e.id;
  const uint32_t id = intern_attrs(rt, op, attrs, where);
  e.runtime = rt->serial;
  e.op = op;
  e.id = id;
  e.n = attrs.size();
  std::memcpy(e.words, attrs.words(), 8 * e.n);
  return id;
}

void run(ThreadState& ts, Call& call, TensorImpl** out) {
  RuntimeState* rt = call.device->runtime;
  const uint32_t op = call.op ? call.op : rt->op[call.number];
  if (__builtin_expect(op == 0, 0)) raise_absent_op(call);
  uint32_t attr = call.attrs ? attr_id(ts, rt, op, *call.attrs, call.where) : call.attr;
  tn_queue* q = queue(ts, call.device, call.where);
  note(ts, q, call.where);

  const Handles handles(call);
  const bool recording = ts.grad_enabled && any_node(call);
  constexpr uint32_t kOuts = 8;
  tn_tensor* few[kOuts];
  uint64_t writes_before[kOuts], given = 0;  // in place: at most kOuts outputs; given: bit per output that is the caller's
  std::vector<tn_tensor*> many(call.n_out > kOuts ? call.n_out : 0);
  tn_tensor** made = many.empty() ? few : many.data();
  for (uint32_t j = 0; j < call.n_out; ++j) made[j] = nullptr;
  for (uint32_t j = 0; call.in_place && j < call.n_out; ++j) {
    if (out[j] == nullptr) continue;
    made[j] = out[j]->handle;
    given |= uint64_t{1} << j;
    if (!recording) continue;
    tn_tensor_info info{sizeof info};
    tn_tensor_inspect(made[j], &info);
    writes_before[j] = info.writes;
  }
  tn_call_args args{op, attr, 0, call.push_bytes, call.n_in, call.n_out, handles.data, made, call.push};
  tn_diag diag;
  diag.size = sizeof diag;
  diag.status = TN_OK;
  tn_status s = tn_call(q, &args, &diag);
  if (__builtin_expect(s != TN_OK, 0)) {
    if (s == TN_E_STALE && call.attrs) {  // the attribute table was swept: intern again, once
      forget_ids(ts);
      args.attr = attr = attr_id(ts, rt, op, *call.attrs, call.where);
      s = tn_call(q, &args, &diag);
    }
    if (s != TN_OK) raise_call(call, diag, s);
  }
  for (uint32_t j = 0; j < call.n_out; ++j)
    if (!call.in_place) out[j] = nullptr;
  try {
    for (uint32_t j = 0; j < call.n_out; ++j)
      if (out[j] == nullptr && made[j] != nullptr) out[j] = new_impl(ts, made[j], call.device);
    if (call.view) out[0]->is_view = true;
    if (__builtin_expect(recording, 0)) record(ts, call, op, attr, out, writes_before);
  } catch (...) {
    give_back(call, made, out, given);
    throw;
  }
}

uint32_t intern(RuntimeState* rt, const tn_type& type, Where where) {
  uint32_t id = 0;
  tn_diag diag{sizeof diag};
  const tn_status s = tn_type_intern(rt->handle, &type, &id, &diag);
  if (s != TN_OK) raise(diag, s, where, "type", nullptr);
  return id;
}

uint64_t scalar_bits(DType compute, double v) {
  uint64_t bits = 0;
  auto put = [&bits](auto x) { std::memcpy(&bits, &x, sizeof x); };
  switch (compute) {
    case DType::f32: put(static_cast<float>(v)); break;
    case DType::f64: put(v); break;
    case DType::boolean: put(static_cast<uint8_t>(v != 0)); break;
    case DType::u64: put(static_cast<uint64_t>(v)); break;
    default: put(static_cast<int64_t>(v)); break;  // the low bytes of a smaller integer
  }
  return bits;
}

uint64_t scalar_bits(DType t, const Operand& v, const char* op) {
  const DType c = compute_type(t);
  if (is_float(c)) return scalar_bits(c, v.is_integer ? (v.is_unsigned ? static_cast<double>(static_cast<uint64_t>(v.integer)) : static_cast<double>(v.integer)) : v.real);
  int64_t i = v.integer;
  bool fits = true;
  if (!v.is_integer) {
    fits = v.real >= -0x1p63 && v.real < 0x1p63 && v.real == static_cast<double>(static_cast<int64_t>(v.real));
    i = fits ? static_cast<int64_t>(v.real) : 0;
  }
  const int bits = static_cast<int>(size_bytes(c)) * 8;
  const bool is_signed = c == DType::i8 || c == DType::i16 || c == DType::i32 || c == DType::i64;
  const bool huge = v.is_integer && v.is_unsigned && i < 0;  // above the largest i64
  if (c == DType::boolean) fits = fits && (i == 0 || i == 1) && !huge;
  else if (c == DType::u64) fits = fits && (i >= 0 || huge);
  else if (is_signed) fits = fits && !huge && (bits == 64 || (i >= -(int64_t{1} << (bits - 1)) && i < int64_t{1} << (bits - 1)));
  else fits = fits && !huge && i >= 0 && i < int64_t{1} << bits;
  if (!fits) {
    raise(TN_E_DTYPE, error::id(error::kDtype, 101), v.where, op, "a number does not fit the tensor's element type",
          v.is_integer ? format("%lld beside a tensor of %s", static_cast<long long>(i), name(t))
                       : format("%g beside a tensor of %s", v.real, name(t)),
          "convert the tensor with .to(tenon::f32), or use a number of its type");
  }
  uint64_t out;
  std::memcpy(&out, &i, 8);
  return out;
}

}  // namespace tenon::detail
