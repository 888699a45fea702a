// ops/gpu/library/matmul_common.cpp - loads, products, and what happens to a finished accumulator.
#include "ops/gpu/library/matmul_common.h"

#include "ops/gpu/program.h"

namespace tenon::gpu {
namespace {

std::string axis_name(const MatmulShape& s, int d) {
  if (d < s.batches) return "b" + std::to_string(d);
  return d == s.m_axis() ? "m" : d == s.n_axis() ? "n" : "k";
}
// Which axes an operand is walked along: a has no n, b no m, the rest no k.
bool walks(const MatmulShape& s, size_t operand, int d) {
  if (d < s.batches) return true;
  if (operand == 0) return d != s.n_axis();
  if (operand == 1) return d != s.m_axis();
  return d != s.k_axis();
}

}  // namespace

std::string held_type(const MatmulShape& s) { return register_type(s.held); }
std::string held_zero(const MatmulShape& s) {
  return s.held == TN_F32 ? "TN_F32(0)" : s.held == TN_F64 ? "TN_F64(0)" : s.held == TN_U32 ? "0u" : "TN_U64(0)";
}
std::string mad_text(const MatmulShape& s, const std::string& a, const std::string& b, const std::string& c) {
  if (s.held == TN_F32) return "TN_MAD_F32(" + a + ", " + b + ", " + c + ")";
  if (s.held == TN_F64) return "TN_MAD_F64(" + a + ", " + b + ", " + c + ")";
  return "(" + a + " * " + b + " + " + c + ")";
}
std::string held_load(const MatmulShape& s, const Access& a, const std::string& index) {
  const std::string x = load_text(a.dtype, a.name, index);
  return is_narrow_float(a.dtype) ? cast_text(TN_F32, s.held, widen_text(a.dtype, x)) : cast_text(a.dtype, s.held, x);
}

void bind_product(StepBuilder* step, const MatmulShape& s, const Piece& p, bool with_ab) {
  for (size_t k = with_ab ? 0 : 2; k < s.space.access.size(); ++k) {
    const Access& a = s.space.access[k];
    bind_operand(step, s.space, a, p);
    for (int d = 0; d < s.space.rank; ++d)
      if (walks(s, k, d)) step->scalar_u32(a.name + "_" + axis_name(s, d), static_cast<uint32_t>(a.stride[d]));
    step->spec.needs |= needs_of(a.dtype);
  }
  int64_t batch = 1;
  for (int d = 0; d < s.batches; ++d) batch *= p.size[d];
  step->scalar_u32("n_batch", static_cast<uint32_t>(batch));
  for (int d = 1; d < s.batches; ++d) step->scalar_u32("b" + std::to_string(d), static_cast<uint32_t>(p.size[d]));
  step->scalar_u32("n_m", static_cast<uint32_t>(p.size[s.m_axis()]));
  step->scalar_u32("n_n", static_cast<uint32_t>(p.size[s.n_axis()]));
  if (with_ab) {
    const uint32_t depth = static_cast<uint32_t>(p.size[s.k_axis()]);
    step->scalar_u32("n_k", depth);
    step->scalar_u32("slice_k", (depth + s.slices - 1) / s.slices);
  }
  step->spec.needs |= needs_of(s.held) | needs_of(s.value);
}

std::string batch_text(const MatmulShape& s, const std::string& batch, bool with_ab) {
  std::string out, moves;
  auto add = [&](int d, const std::string& index) {
    for (size_t k = with_ab ? 0 : 2; k < s.space.access.size(); ++k) {
      const std::string& n = s.space.access[k].name;
      moves += " at_" + n + " += " + index + " * " + n + "_b" + std::to_string(d) + ";";
    }
  };
  for (size_t k = with_ab ? 0 : 2; k < s.space.access.size(); ++k)
    out += "  tn_uint at_" + s.space.access[k].name + " = " + start_text(s.space.access[k].name) + ";\n";
  if (s.batches == 1) {
    add(0, batch);
    return out + " " + moves + "\n";
  }
  moves = "  { tn_uint rest = " + batch + ", index = 0u;";
  for (int d = s.batches - 1; d > 0; --d) {
    const std::string size = "b" + std::to_string(d);
    moves += " index = rest % " + size + "; rest /= " + size + ";";
    add(d, "index");
  }
  add(0, "rest");
  return out + moves + " }\n";
}

std::string finish_text(StepBuilder* step, const MatmulShape& s, const std::string& acc, const std::string& row, const std::string& col,
                        const std::string& slice) {
  auto index = [&](const std::string& n) { return "at_" + n + " + " + row + " * " + n + "_m + " + col + " * " + n + "_n"; };
  const Access& y = s.space.access[2];
  if (s.to_parts) return "    " + store_text(s.held, y.name, index(y.name) + " + " + slice + " * (n_batch * n_m * n_n)", acc) + "\n";
  std::string text = std::string("    const ") + register_type(s.value) + " product_ = " + cast_text(s.held, s.value, acc) + ";\n";
  if (s.post == nullptr) return text + "    " + store_text(y.dtype, y.name, index(y.name), cast_text(s.value, y.dtype, "product_")) + "\n";
  uint32_t want = 0;
  for (uint32_t i = 0; i < s.post->n_inst; ++i)
    if (s.post->inst[i].op == TN_OP_INPUT && s.post->inst[i].a == 0) want = s.post->inst[i].type;
  ProgramNames names{"q_", {"product_"}, {}};
  if (want != 0 && want != s.value) text += std::string("    const ") + register_type(want) + " wanted_ = " + cast_text(s.value, want, "product_") + ";\n", names.inputs[0] = "wanted_";
  for (size_t k = 3; k < s.space.access.size(); ++k) {
    const Access& z = s.space.access[k];
    text += std::string("    const ") + register_type(z.dtype) + " in_" + z.name + " = " + load_text(z.dtype, z.name, index(z.name)) + ";\n";
    names.inputs.push_back("in_" + z.name);
  }
  const ProgramText post = program_text(*s.post, names, step);
  return text + post.code + "    " + store_text(y.dtype, y.name, index(y.name), cast_text(post.out_dtype[0], y.dtype, post.out[0])) + "\n";
}

}  // namespace tenon::gpu
