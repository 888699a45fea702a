// The vendor's lists of exceptions.
#include "tools/conformance/lists.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "tools/conformance/session.h"

namespace tenon::conformance {
namespace {

TEST(Lists, name_checks_by_id_prefix_or_tag) {
  const Lists l = parse_lists(R"({"never": [{"check": "3.values.acme.*", "why": "a"}, {"tag": "async", "why": "b"}, {"check": "2.offsets", "why": "c"}]})", "x");
  EXPECT_EQ(find(l.never, "3.values.acme.matmul", {})->why, "a");
  EXPECT_EQ(find(l.never, "5.anything", {"async"})->why, "b");
  EXPECT_EQ(find(l.never, "2.offsets", {})->why, "c");
  EXPECT_EQ(find(l.never, "2.offsets.more", {}), nullptr);
  EXPECT_EQ(find(l.never, "3.values.acme", {}), nullptr);
}

TEST(Lists, refuse_what_cannot_be_meant) {
  for (const char* text : {"", "[]", R"({"nevr": []})", R"({"never": {}})", R"({"never": [{"check": "1.a"}]})", R"({"never": [{"why": "w"}]})",
                           R"({"never": [{"check": "1.a", "tag": "t", "why": "w"}]})", R"({"never": [3]})"})
    EXPECT_THROW(parse_lists(text, "x"), std::runtime_error) << text;
}

Check only_check(const Options& o, const std::function<void(Trial&)>& body) {
  Session s(o);
  s.check("3.a", {"t"}, body);
  return s.done.at(0);
}

TEST(Session, turns_an_expected_failure_into_not_yet_and_an_unexpected_pass_into_a_failure) {
  Options o;
  o.lists.not_yet = {{"3.a", "", "firmware 2"}};
  EXPECT_EQ(only_check(o, [](Trial& t) { t.fail("bad"); }).state, State::NotYet);
  EXPECT_EQ(only_check(o, [](Trial&) {}).state, State::Failed);
  EXPECT_EQ(only_check(o, [](Trial& t) { t.skip("no"); }).state, State::Skipped);
}

TEST(Session, keeps_the_first_failure_counts_the_others_and_catches_exceptions) {
  const Check c = only_check({}, [](Trial& t) { t.fail("one"), t.fail("two"), t.fail("three"); });
  EXPECT_EQ(c.detail, "one\n(and 2 more)");
  EXPECT_EQ(only_check({}, [](Trial&) { throw std::runtime_error("boom"); }).detail, "boom");
}

TEST(Report, has_reached_the_level_below_the_first_failure) {
  Report r;
  r.level = 3;
  for (int level = 1; level <= 3; ++level) r.checks.push_back({level, std::to_string(level) + ".x", {}, State::Passed, "", {}, 1, 0});
  EXPECT_EQ(r.reached(), 3);
  r.checks[1].state = State::Failed;
  EXPECT_EQ(r.reached(), 1);
  EXPECT_FALSE(r.passed());
  EXPECT_TRUE(r.passed_level(3));
  EXPECT_NE(json_text(r).find("\"reached\":1"), std::string::npos);
}

}  // namespace
}  // namespace tenon::conformance
