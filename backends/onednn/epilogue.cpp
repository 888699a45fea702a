#include "backends/onednn/epilogue.h"

#include "backends/onednn/operand.h"

namespace tenon::onednn {
namespace {

// Walks the program from its output towards the accumulator, peeling one part after the other.
struct Matcher {
  const tn_program& p;
  const tn_inst& at(uint32_t value) const { return p.inst[value]; }
  bool is_accumulator(uint32_t value) const {
    return at(value).op == TN_OP_INPUT && at(value).a == 0 && at(value).type == TN_F32;
  }
  bool is_constant(uint32_t value) const { return at(value).op == TN_OP_CONST && at(value).type == TN_F32; }

  // INPUT 1, f32 or a narrow float under a cast to f32. Sets the stored type.
  bool is_bias(uint32_t value, uint32_t* dtype) const {
    if (at(value).op == TN_OP_CAST && at(value).type == TN_F32) value = at(value).a;
    *dtype = at(value).type;
    return at(value).op == TN_OP_INPUT && at(value).a == 1 && (*dtype == TN_F32 || *dtype == TN_BF16);
  }

  uint32_t peel_cast(uint32_t value, uint32_t dtype) const {
    return at(value).op == TN_OP_CAST && at(value).type == dtype ? at(value).a : value;
  }

  uint32_t peel_max(const tn_inst& i, Epilogue* out) const {
    const bool right = is_constant(i.b);
    out->clamp_rule = ClampRule::Max;
    out->clamp_slot = at(right ? i.b : i.a).a;
    return right ? i.a : i.b;
  }

  // SELECT(LE(v, c), c, v); the two constants may be two instructions that read one slot.
  bool is_select_clamp(const tn_inst& i) const {
    const tn_inst& test = at(i.a);
    return test.op == TN_OP_LE && test.a == i.c && is_constant(test.b) && is_constant(i.b) &&
           at(test.b).a == at(i.b).a;
  }

  uint32_t peel_clamp(uint32_t value, Epilogue* out) const {
    const tn_inst& i = at(value);
    if (i.type != TN_F32) return value;
    if (i.op == TN_OP_MAX && (is_constant(i.a) || is_constant(i.b))) {
      out->has_clamp = true;
      return peel_max(i, out);
    }
    if (i.op != TN_OP_SELECT || !is_select_clamp(i)) return value;
    out->has_clamp = true;
    out->clamp_rule = ClampRule::SelectLessEqual;
    out->clamp_slot = at(i.b).a;
    return i.c;
  }

  uint32_t peel_bias(uint32_t value, Epilogue* out) const {
    const tn_inst& i = at(value);
    if (i.op != TN_OP_ADD || i.type != TN_F32) return value;
    const bool right = is_bias(i.b, &out->bias_dtype);
    if (!right && !is_bias(i.a, &out->bias_dtype)) return value;
    out->has_bias = true;
    return right ? i.a : i.b;
  }
};

}  // namespace

tn_status match_epilogue(const tn_program* post, uint32_t out_dtype, Epilogue* out, tn_diag* diag) {
  *out = {};
  if (post == nullptr) return TN_OK;
  if (post->n_out != 1 || post->n_in > 2) {
    return refuse(diag, "the epilogue has %lld inputs; bias is the only one known", post->n_in);
  }
  const Matcher m{*post};
  uint32_t value = m.peel_cast(post->out[0], out_dtype);
  value = m.peel_clamp(value, out);
  value = m.peel_bias(value, out);
  if (!m.is_accumulator(value)) {
    return refuse(diag, "the epilogue is not bias and a lower limit; stopped at scalar opcode %lld", m.at(value).op);
  }
  if (post->n_in == 2 && !out->has_bias) return refuse(diag, "the epilogue's input 1 is not added as a bias");
  return TN_OK;
}

}  // namespace tenon::onednn
