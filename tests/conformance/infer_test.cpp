// Shape rules with symbols in place of sizes: the result, with the sizes put back, is that of the plain call.
#include <gtest/gtest.h>
#include <tenon/ops.h>

#include <algorithm>
#include <map>
#include <memory>

#include "kernel/dims.h"
#include "ops/emit.h"
#include "tools/conformance/trial.h"

namespace tenon::conformance {
namespace {

// A tn_op made by hand, so that the rule runs with arithmetic of the test's choice.
struct Bare {
  std::vector<tn_type> types;
  std::vector<tn_attr> attrs;
  std::vector<std::unique_ptr<ops::ProgramBuilder>> programs;
  std::vector<ops::CaseAttr> kept;
  tn_op op{};

  Bare(const ops::OpDecl& decl, const Call& call, uint16_t n_out) : kept(call.attrs) {
    std::sort(kept.begin(), kept.end(), [](const auto& a, const auto& b) { return a.key < b.key; });
    for (const ops::CaseAttr& a : kept) {
      tn_attr t{};
      t.key = a.key, t.len = 1;
      switch (a.kind) {
        case ops::CaseAttr::Kind::I64: t.type = TN_ATTR_I64, t.v.i = a.i; break;
        case ops::CaseAttr::Kind::F64: t.type = TN_ATTR_F64, t.v.f = a.f; break;
        case ops::CaseAttr::Kind::I64s: t.type = TN_ATTR_I64S, t.v.p = a.list.data(), t.len = a.list.size(); break;
        case ops::CaseAttr::Kind::Program:
          programs.push_back(std::make_unique<ops::ProgramBuilder>(call.program_dtype));
          a.program(*programs.back());
          t.type = TN_ATTR_PROGRAM, t.v.p = programs.back()->finish();
          break;
      }
      attrs.push_back(t);
    }
    types.resize(call.in.size() + n_out);
    op.size = sizeof op;
    op.op_id = decl.def.op_id;
    op.op_version = decl.def.version;
    op.n_in = static_cast<uint16_t>(call.in.size());
    op.n_out = n_out;
    op.n_attr = static_cast<uint16_t>(attrs.size());
    op.push_bytes = static_cast<uint32_t>(8 * call.push.size());
    op.type = types.data();
    op.attr = attrs.data();
  }
};

// Sizes of 2 and more become symbols: the same size the same symbol in one run, each its own in another.
class Symbols {
 public:
  Symbols(kernel::SymbolicDims* dims, bool shared) : dims_(dims), shared_(shared) {}

  int64_t of(int64_t size) {
    if (size < 2) return size;
    if (shared_)
      if (const auto at = known_.find(size); at != known_.end()) return at->second;
    values.push_back(size);
    return known_[size] = dims_->base();
  }
  std::vector<int64_t> values;

 private:
  kernel::SymbolicDims* dims_;
  bool shared_;
  std::map<int64_t, int64_t> known_;
};

void set_strides(tn_type* t, const tn_dims& d) {
  int64_t step = 1;
  for (int i = t->rank - 1; i >= 0; --i) {
    t->stride[i] = step;
    step = d.calc(d.ctx, TN_DIM_MUL, step, d.calc(d.ctx, TN_DIM_MAX, t->dim[i], 1));
  }
}

std::string type_list(const std::vector<tn_type>& types) {
  std::string text;
  for (const tn_type& t : types) text += (text.empty() ? "" : " ") + (t.dtype != 0 ? ops::type_text(t) : "-");
  return text;
}

// The same types through tn_infer. It knows symbols by their numbers alone, so strides that are expressions become symbols
// of their own; a second set of dims with as many symbols repeats what it does, and puts the sizes back.
void check_tn_infer(const ops::OpDecl& decl, const Call& call, const kernel::SymbolicDims& dims, const std::vector<int64_t>& sizes, Bare* bare,
                    const Outcome& plain) {
  const std::vector<tn_type> in(bare->types.begin(), bare->types.begin() + bare->op.n_in);
  int64_t symbols = 0;
  for (const tn_type& t : in)
    for (int k = 0; k < t.rank; ++k)
      for (const int64_t d : {t.dim[k], t.stride[k]})
        if (TN_IS_SYM(d)) symbols = std::max(symbols, d - INT64_MIN + 1);
  kernel::SymbolicDims mirror;
  std::vector<int64_t> values(static_cast<size_t>(symbols));
  for (int64_t k = 0; k < symbols; ++k) {
    mirror.base();
    ASSERT_TRUE(dims.evaluate(TN_SYM(k), sizes, &values[static_cast<size_t>(k)]));
  }
  const tn_dims table = mirror.table();
  std::vector<tn_type> want(plain.out.size()), got;
  tn_status status = decl.def.infer(decl.def.ctx, &bare->op, &table, want.data(), nullptr);
  if (status == TN_OK) status = mirror.status();
  std::string message;
  ASSERT_EQ(reference_machine().infer_types(call, in, &got, &message), status) << message;
  if (status != TN_OK) return;
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    tn_type t{};
    ASSERT_TRUE(mirror.substitute(got[i], values, &t)) << type_list(got);
    EXPECT_EQ(t.dtype, plain.out[i].dtype);
    EXPECT_EQ(std::vector<int64_t>(t.dim, t.dim + t.rank), plain.out[i].dims) << "tn_infer: " << type_list(got);
  }
}

class Infer : public testing::TestWithParam<const ops::OpDecl*> {};

// A rule may refuse symbols where a relation cannot be left open; then it must say so as a shape error, never be wrong.
TEST_P(Infer, with_symbols_equals_the_plain_result) {
  const ops::OpDecl& decl = *GetParam();
  uint32_t number = 0, done = 0, tried = 0;
  for (const ops::Case& c : decl.cases()) {
    const uint32_t dtype = dtypes_of(decl).back();
    Call call = make_call(decl, c, dtype, number++);
    if (std::any_of(call.in.begin(), call.in.end(), [](const Array& a) { return a.layout != ops::Layout::Dense; })) continue;
    const Outcome plain = reference_machine().infer(call);
    if (!plain.ok()) continue;
    for (const bool shared : {true, false}) {
      SCOPED_TRACE(call_text(call) + (shared ? ", equal sizes one symbol" : ", every size its own symbol"));
      kernel::SymbolicDims dims;
      Symbols symbols(&dims, shared);
      const tn_dims table = dims.table();
      Bare bare(decl, call, static_cast<uint16_t>(plain.out.size()));
      for (size_t i = 0; i < call.in.size(); ++i) {
        tn_type& t = bare.types[i];
        if (call.in[i].absent()) continue;
        t.dtype = static_cast<uint8_t>(call.in[i].dtype);
        t.rank = static_cast<uint8_t>(call.in[i].dims.size());
        for (size_t k = 0; k < call.in[i].dims.size(); ++k) t.dim[k] = symbols.of(call.in[i].dims[k]);
        set_strides(&t, table);
      }
      std::vector<tn_type> out(plain.out.size());
      tn_diag d{};
      d.size = sizeof d;
      ++tried;
      check_tn_infer(decl, call, dims, symbols.values, &bare, plain);
      tn_status status = decl.def.infer(decl.def.ctx, &bare.op, &table, out.data(), &d);
      if (status == TN_OK) status = dims.status(&d);
      if (!shared && status != TN_OK) {
        // Sizes that must be equal were given different symbols: a guard, or a refusal.
        EXPECT_EQ(status, TN_E_SHAPE) << d.msg;
        continue;
      }
      ASSERT_EQ(status, TN_OK) << d.msg;
      EXPECT_TRUE(dims.guards_hold(symbols.values)) << "a guard refuses the sizes of the plain call";
      for (size_t i = 0; i < out.size(); ++i) {
        tn_type t{};
        ASSERT_TRUE(dims.substitute(out[i], symbols.values, &t)) << type_list(out);
        EXPECT_EQ(t.dtype, plain.out[i].dtype);
        EXPECT_EQ(std::vector<int64_t>(t.dim, t.dim + t.rank), plain.out[i].dims) << type_list(out);
      }
      ++done;
    }
  }
  if (tried != 0) {
    EXPECT_GT(done, 0u) << "no case could be inferred with symbols";
  }
}

INSTANTIATE_TEST_SUITE_P(Op, Infer, testing::ValuesIn(all_decls()), DeclName());

}  // namespace
}  // namespace tenon::conformance
