#include "loader/isolate/wire.h"

#include "kernel/status.h"

namespace tenon::loader::isolate {
namespace {

struct CallRow {
  const char* text;
  Patience patience;
};
constexpr CallRow kCalls[] = {
#define X(name, text, patience) {text, Patience::patience},
    TENON_WORKER_CALLS(X)
#undef X
};

// Bytes behind an attribute's pointer; programs are apart.
uint64_t payload_bytes(const tn_attr& a) {
  switch (a.type) {
    case TN_ATTR_STRING: return a.len;
    case TN_ATTR_I64S: case TN_ATTR_F64S: return a.len * 8;
    case TN_ATTR_TYPE: return sizeof(tn_type);
    default: return 0;
  }
}

}  // namespace

const char* call_name(Call call) { return kCalls[static_cast<uint32_t>(call)].text; }
Patience patience_of(Call call) { return kCalls[static_cast<uint32_t>(call)].patience; }

void Writer::put_text(const char* text) {
  const uint32_t n = text == nullptr ? UINT32_MAX : static_cast<uint32_t>(std::strlen(text));
  put(n);
  if (text != nullptr) put_bytes(text, n);
}

tn_status Writer::put_op(const tn_op& op, tn_diag* diag) {
  for (const tn_ext* e = op.next; e != nullptr; e = e->next) {
    if ((e->id & TN_EXT_CRITICAL) != 0)
      return kernel::fail(diag, TN_E_EXT, kernel::id(kernel::kAbi, 5), "unknown critical extension of an op\nwhy: extension 0x%08x cannot be sent to a worker process\ntry: run the plugin without isolation", e->id);
  }
  put(op);
  put_bytes(op.type, sizeof(tn_type) * (uint32_t{op.n_in} + op.n_out));
  put_bytes(op.attr, sizeof(tn_attr) * op.n_attr);
  for (uint32_t i = 0; i < op.n_attr; ++i) {
    const tn_attr& a = op.attr[i];
    if (a.type == TN_ATTR_PROGRAM) {
      const auto& program = *static_cast<const tn_program*>(a.v.p);
      put(program);
      put_bytes(program.inst, sizeof(tn_inst) * program.n_inst);
    } else if (const uint64_t n = payload_bytes(a)) {
      put_bytes(a.v.p, n);
    }
  }
  return TN_OK;
}

const char* Reader::take(size_t n) {
  if (n > left_) return good_ = false, nullptr;
  const char* from = at_;
  at_ += n, left_ -= n;
  return from;
}

bool Reader::get_text(std::string* out) {
  const auto n = get<uint32_t>();
  out->clear();
  if (n == UINT32_MAX) return false;
  if (const char* from = take(n)) out->assign(from, n);
  return good_;
}

bool OpCopy::read(Reader* in) {
  op_ = in->get<tn_op>();
  types_.resize(uint32_t{op_.n_in} + op_.n_out);
  attrs_.resize(op_.n_attr);
  for (tn_type& t : types_) t = in->get<tn_type>();
  for (tn_attr& a : attrs_) a = in->get<tn_attr>();
  for (tn_attr& a : attrs_)
    if (!read_payload(in, &a)) return false;
  op_.size = sizeof op_;
  op_.next = nullptr;
  op_.type = types_.data();
  op_.attr = attrs_.data();
  return in->good();
}

bool OpCopy::read_payload(Reader* in, tn_attr* attr) {
  if (attr->type == TN_ATTR_I64 || attr->type == TN_ATTR_F64) return true;
  const bool program = attr->type == TN_ATTR_PROGRAM;
  if (program) programs_.push_back(in->get<tn_program>());
  const uint64_t n = program ? sizeof(tn_inst) * programs_.back().n_inst : payload_bytes(*attr);
  const char* from = in->take(n);
  if (from == nullptr) return false;
  payloads_.emplace_back(n / 8 + 1);  // words for alignment, zeros behind a text
  if (n != 0) std::memcpy(payloads_.back().data(), from, n);
  attr->v.p = payloads_.back().data();
  if (!program) return true;
  programs_.back().inst = reinterpret_cast<const tn_inst*>(payloads_.back().data());
  programs_.back().size = sizeof(tn_program);
  attr->v.p = &programs_.back();
  return true;
}

}  // namespace tenon::loader::isolate
