// Which kernel wins depends on the op, the types and the device: never on the order in which plugins were loaded.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "tests/conformance/full_machine.h"
#include "tools/conformance/trial.h"

namespace tenon::conformance {
namespace {

#if defined(TENON_CONFORMANCE_ONEDNN)
const std::vector<std::vector<std::string>> kOrders = {{"cpu", "onednn", "sim"}, {"sim", "onednn", "cpu"}, {"onednn", "cpu", "sim"}};
#else
const std::vector<std::vector<std::string>> kOrders = {{"cpu", "sim"}, {"sim", "cpu"}};
#endif
constexpr int kSpecs = 200;

std::vector<Call> random_calls() {
  std::vector<Call> list;
  const auto decls = all_decls();
  uint32_t state = 20260131;
  const auto next = [&](size_t n) { return static_cast<size_t>((state = state * 1664525u + 1013904223u) >> 8) % n; };
  while (list.size() < kSpecs) {
    const ops::OpDecl& decl = *decls[next(decls.size())];
    const auto cases = decl.cases();
    const auto dtypes = dtypes_of(decl);
    const auto number = static_cast<uint32_t>(next(cases.size()));
    const Call call = make_call(decl, cases[number], dtypes[next(dtypes.size())], number);
    if (decl.def.view == nullptr && !full_machine().candidates(call, "cpu:0").empty()) list.push_back(call);
  }
  return list;
}

// Larger operands than the cases have, where several plugins compete.
std::vector<Call> large_calls() {
  std::vector<Call> list;
  const auto zeros = [](uint32_t dtype, std::vector<int64_t> dims) { return array(dtype, dims, std::vector<Number>(count(dims), 0)); };
  for (uint32_t dtype : {TN_F32, TN_BF16, TN_F64}) {
    list.push_back({"matmul", {}, {zeros(dtype, {96, 80}), zeros(dtype, {80, 64})}});
    list.push_back({"softmax", {}, {zeros(dtype, {64, 256})}});
    list.push_back({"layer_norm", {}, {zeros(dtype, {64, 256}), {}, {}}});
    list.push_back({"conv2d", {}, {zeros(dtype, {2, 16, 14, 14}), zeros(dtype, {16, 16, 3, 3}), {}}});
    list.push_back({"linear", {}, {zeros(dtype, {32, 128}), zeros(dtype, {64, 128}), zeros(dtype, {64})}});
    list.push_back({"add", {}, {zeros(dtype, {128, 128}), zeros(dtype, {128})}});
    list.push_back({"sum", {}, {zeros(dtype, {128, 128})}});
  }
  return list;
}

TEST(Selection, does_not_depend_on_the_order_of_loading) {
  std::vector<Call> calls = random_calls();
  for (const Call& c : large_calls()) calls.push_back(c);
  std::vector<std::string> first;
  for (const auto& order : kOrders) {
    Machine m(plugin_files(order));
    size_t k = 0;
    for (const Call& call : calls)
      for (const char* device : {"cpu:0", "sim:0"}) {
        const auto rows = m.why(call, device);
        std::string record;
        for (const tn_candidate& row : rows)
          if (row.why == TN_WHY_WON || row.why == TN_WHY_SLOWER || row.why == TN_WHY_TIER || row.why == TN_WHY_NAME)
            record += std::string(row.kernel) + " " + std::to_string(row.est_ns) + "; ";
        if (first.size() <= k) first.push_back(record);
        EXPECT_EQ(record, first[k]) << call_text(call) << " on " << device << " with " << order[0] << " first";
        ++k;
      }
  }
}

TEST(Selection, gives_every_candidate_one_row_and_one_winner) {
  for (const Call& call : large_calls()) {
    const auto rows = full_machine().why(call, "cpu:0");
    std::set<std::string> names;
    int winners = 0;
    for (const tn_candidate& row : rows) {
      EXPECT_TRUE(names.insert(row.kernel).second) << call_text(call) << ": " << row.kernel << " twice";
      winners += row.why == TN_WHY_WON;
      if (row.why != TN_WHY_WON) {
        EXPECT_NE(row.reason[0], 0) << call_text(call) << ": " << row.kernel << " lost without a reason";
      }
    }
    EXPECT_EQ(winners, 1) << call_text(call);
    EXPECT_EQ(rows.empty() ? 0 : rows[0].why, static_cast<uint32_t>(TN_WHY_WON));
  }
}

TEST(Selection, of_a_pinned_kernel_leaves_no_other) {
  const Call call = large_calls()[0];
  for (const Candidate& k : full_machine().candidates(call, "cpu:0")) {
    Machine& m = full_machine();
    tn_pin(m.runtime(), m.op(call.op), m.device("cpu:0"), k.kernel.c_str(), nullptr);
    const auto rows = m.why(call, "cpu:0");
    tn_pin(m.runtime(), m.op(call.op), m.device("cpu:0"), nullptr, nullptr);
    ASSERT_FALSE(rows.empty());
    EXPECT_EQ(rows[0].kernel, k.kernel);
    for (size_t i = 1; i < rows.size(); ++i) EXPECT_NE(rows[i].why, static_cast<uint32_t>(TN_WHY_SLOWER)) << rows[i].kernel;
  }
}

}  // namespace
}  // namespace tenon::conformance
