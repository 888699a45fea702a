// tools/conformance/level3.cpp - numerics: every kernel row on the case list of its op, in every layout and length, against
// the reference kernels at f64. Odd values are in special.cpp.
//
// A call that constraints or supports() refuse is not a fault here, nor is a failing prepare: level 4 asks whether the
// answers are honest.
#include <tenon/ops.h>

#include <algorithm>

#include "ops/cases.h"
#include "tools/conformance/expect.h"
#include "tools/conformance/problem.h"
#include "tools/conformance/special.h"
#include "tools/conformance/subject.h"

namespace tenon::conformance {
namespace {

class Row {
 public:
  Row(Trial& t, Subject& s, const tn_kernel_info& row) : t_(t), s_(s), row_(row), decl_(*ops::find_op(row.op_id)) {}
  const ops::OpDecl& decl() const { return decl_; }

  // True when the kernel took the call.
  bool one(const ops::Case& c, uint32_t dtype, Call call) {
    call = consistent(call);
    Problem p;
    std::string why;
    if (make_problem(call, &p, &why) != TN_OK) return false;
    if (s_.asks(row_, p, &why) != Subject::Answer::Yes) return last_no_ = why, false;
    const Expectation expected = expected_of(decl_, c, call, dtype);
    if (!expected.outcome.ok()) return false;
    Subject::Stage stage;
    const Outcome got = s_.run(row_, p, &stage);
    if (stage == Subject::Stage::Prepare && !got.ok()) return last_no_ = got.message, false;
    t_.count();
    const std::string wrong = got.ok() ? difference(expected, got) : got.message;
    if (!wrong.empty()) t_.fail(p.text() + ": " + wrong);
    return true;
  }

  std::vector<uint32_t> dtypes() const { return dtypes_of(decl_); }
  const std::string& last_no() const { return last_no_; }

 private:
  Trial& t_;
  Subject& s_;
  const tn_kernel_info& row_;
  const ops::OpDecl& decl_;
  std::string last_no_;
};

// The sample: every case in up to three element types, turning from case to case.
void values(Session& session, Subject& s, const tn_kernel_info& info) {
  session.check(std::string("3.values.") + info.name, {"numerics", "values"}, [&](Trial& t) {
    Row row(t, s, info);
    bool any = false;
    uint32_t number = 0;
    for (const ops::Case& c : row.decl().cases()) {
      const auto dtypes = row.dtypes();
      int taken = 0;
      for (size_t d = 0; d < dtypes.size() && (session.options.full || taken < 3); ++d) {
        const uint32_t dtype = dtypes[(d + number) % dtypes.size()];
        const bool took = row.one(c, dtype, make_call(row.decl(), c, dtype, number));
        taken += took ? 1 : 0;
        any |= took;
      }
      ++number;
    }
    if (!any && !t.failed()) t.skip("takes none of the declared cases; the last answer: " + row.last_no());
  });
}

// Negative strides, gaps, and first elements that are less aligned.
void strides(Session& session, Subject& s, const tn_kernel_info& info) {
  session.check(std::string("3.strides.") + info.name, {"numerics", "strides"}, [&](Trial& t) {
    Row row(t, s, info);
    bool any = false;
    uint32_t number = 0;
    for (const ops::Case& c : row.decl().cases()) {
      const auto dtypes = row.dtypes();
      for (int variant = 0; variant < 3; ++variant) {
        for (size_t d = 0; d < dtypes.size(); ++d) {
          const uint32_t dtype = dtypes[(d + number) % dtypes.size()];
          Call call = make_call(row.decl(), c, dtype, number);
          for (Array& a : call.in) {
            a.reversed = variant != 1 && !a.dims.empty();
            a.skip = variant == 0 ? 0 : 2 * variant - 1;
            if (variant == 2 && a.layout == ops::Layout::Dense) a.layout = ops::Layout::Gapped;
          }
          if (!row.one(c, dtype, call)) continue;
          any = true;
          if (!session.options.full) break;
        }
      }
      ++number;
    }
    if (!any && !t.failed()) t.skip("takes no operands of this kind; the last answer: " + row.last_no());
  });
}

ops::CaseOperand operand(std::vector<int64_t> dims, ops::Fill fill = ops::Fill::Normal, uint32_t dtype = 0, int64_t limit = 0) {
  ops::CaseOperand o;
  o.dims = std::move(dims), o.fill = fill, o.dtype = dtype, o.limit = limit;
  return o;
}

// Calls of a primitive whose inner loop has n steps.
std::vector<ops::Case> of_length(uint64_t op_id, int64_t n) {
  using ops::case_i64, ops::case_ints;
  const int64_t some = std::max<int64_t>(n, 1);
  const auto index = [&](std::vector<int64_t> dims, int64_t limit) { return operand(std::move(dims), ops::Fill::Index, TN_I64, limit); };
  switch (op_id) {
    case TN_OPID_COPY: return {{.in = {operand({n})}, .attrs = {}, .push = {}}, {.in = {operand({3, n})}, .attrs = {}, .push = {}}};
    case TN_OPID_REDUCE:
      return {{.in = {operand({n})}, .attrs = {case_ints(TN_KEY_AXES, {0}), case_i64(TN_KEY_MONOID, TN_MONOID_SUM)}, .push = {}},
              {.in = {operand({3, n})}, .attrs = {case_ints(TN_KEY_AXES, {1}), case_i64(TN_KEY_MONOID, TN_MONOID_MAX)}, .push = {}},
              {.in = {operand({n, 3})}, .attrs = {case_ints(TN_KEY_AXES, {0}), case_i64(TN_KEY_MONOID, TN_MONOID_MIN)}, .push = {}}};
    case TN_OPID_MATMUL:
      return {{.in = {operand({3, n}), operand({n, 5})}, .attrs = {}, .push = {}}, {.in = {operand({n, 3}), operand({3, n})}, .attrs = {}, .push = {}},
              {.in = {operand({3, n}, ops::Fill::Normal, TN_U8), operand({n, 5}, ops::Fill::Normal, TN_I8)}, .attrs = {}, .push = {}}};
    case TN_OPID_GATHER:
      return {{.in = {operand({5}), index({n}, 5)}, .attrs = {case_i64(TN_KEY_AXIS, 0)}, .push = {}},
              {.in = {operand({4, some}), index({4, n}, some)}, .attrs = {case_i64(TN_KEY_AXIS, 1)}, .push = {}}};
    case TN_OPID_SCATTER:
      return {{.in = {operand({some}), index({n}, some), operand({n})}, .attrs = {case_i64(TN_KEY_AXIS, 0)}, .push = {}},
              {.in = {operand({7}), index({n}, 7), operand({n})}, .attrs = {case_i64(TN_KEY_AXIS, 0), case_i64(TN_KEY_MODE, TN_SCATTER_ADD)}, .push = {}}};
    default: return {};
  }
}

void lengths(Session& session, Subject& s, const tn_kernel_info& info) {
  if (of_length(info.op_id, 1).empty()) return;
  session.check(std::string("3.lengths.") + info.name, {"numerics", "lengths"}, [&](Trial& t) {
    Row row(t, s, info);
    bool any = false;
    for (int64_t n = 0; n <= 70; ++n) {
      const auto cases = of_length(info.op_id, n);
      for (size_t k = 0; k < cases.size(); ++k) {
        int taken = 0;
        for (const uint32_t dtype : {TN_F32, TN_I64, TN_F64, TN_BF16, TN_I32, TN_U8, TN_BOOL}) {
          if ((row.decl().dtypes >> dtype & 1) == 0) continue;
          taken += row.one(cases[k], dtype, make_call(row.decl(), cases[k], dtype, static_cast<uint32_t>(n))) ? 1 : 0;
          if (!session.options.full && taken == 2) break;
        }
        any |= taken != 0;
      }
    }
    if (!any && !t.failed()) t.skip("takes no call of this kind; the last answer: " + row.last_no());
  });
}

// One plan for every shape of a class: the core itself asks with symbols, so this goes through the runtime, the row pinned.
void dynamic(Session& session, Subject& s, const tn_kernel_info& info) {
  if ((info.flags & TN_KERNEL_DYNAMIC) == 0 || packed_of(info) != nullptr) return;
  session.check(std::string("3.dynamic.") + info.name, {"numerics", "dynamic"}, [&](Trial& t) {
    if (session.options.plugin.empty()) return t.skip("linked: the runtime has it already");
    Machine machine({session.options.plugin});
    Report names;
    describe(session.options, &names);
    const std::string device = s.pack() ? "cpu:0" : names.device;
    if (machine.device(device) == 0) return t.skip("the runtime does not offer " + device);
    const ops::OpDecl& decl = *ops::find_op(info.op_id);
    uint32_t number = 0;
    for (const ops::Case& c : decl.cases()) {
      const auto dtypes = dtypes_of(decl);
      const uint32_t dtype = (decl.dtypes >> TN_F32 & 1) != 0 && number % 2 == 0 ? uint32_t{TN_F32} : dtypes[number % dtypes.size()];
      const Call call = consistent(make_call(decl, c, dtype, number++));
      const Outcome got = machine.run(call, device, {info.name, {}, {}});
      if (got.status == TN_E_UNSUPPORTED || got.status == TN_E_POLICY) continue;
      const Expectation expected = expected_of(decl, c, call, dtype);
      if (!expected.outcome.ok()) continue;
      t.count();
      const std::string wrong = got.ok() ? difference(expected, got) : got.message;
      if (!wrong.empty()) t.fail(spec_text(call) + ": " + wrong);
    }
  });
}

}  // namespace

void level3(Session& session) {
  const Library library(session.options.plugin);
  Subject s(library, session.options);
  for (const tn_kernel_info* row : s.rows()) {
    if (ops::find_op(row->op_id) == nullptr) continue;
    values(session, s, *row);
    strides(session, s, *row);
    lengths(session, s, *row);
    dynamic(session, s, *row);
    special_values_of(session, s, *row);
  }
}

}  // namespace tenon::conformance
