#include "tests/conformance/full_machine.h"
#include "tests/conformance/everywhere.h"

namespace tenon::conformance {
namespace {

constexpr int kShown = 3;

struct Place {
  Machine* machine;
  const char *device, *name;
};

}  // namespace

std::string for_everyone(const Call& call, bool parts, const std::function<std::string(const Outcome&)>& judge, int* calls) {
  std::string all;
  int shown = 0, ran = 0;
  const auto note = [&](const Outcome& o, const std::string& by) {
    const std::string text = judge(o);
    if (!text.empty() && shown++ < kShown) all += call_text(call) + " " + by + ": " + text + "\n";
  };
  note(reference_machine().run(call, "cpu:0"), "on the reference alone");
  for (const char* device : test_devices()) {
    const auto candidates = full_machine().candidates(call, device, parts);
    if (candidates.empty()) note(full_machine().run(call, device), std::string("on ") + device);
    for (const Candidate& k : candidates) {
      const Outcome o = full_machine().run(call, device, k);
      // A kernel pinned for the parts may not take what this expansion asks of it.
      if (!k.part.empty() && o.status == TN_E_UNSUPPORTED) continue;
      ++ran;
      note(o, place_text(device, k));
    }
  }
  if (calls != nullptr) *calls += ran;
  return all;
}

std::string differences(const Call& call, const Expected& expected, bool parts, int* calls) {
  return for_everyone(call, parts, [&](const Outcome& o) -> std::string {
    if (!o.ok()) return o.message;
    if (o.out.size() != expected.out.size()) return std::to_string(o.out.size()) + " outputs";
    for (size_t i = 0; i < o.out.size(); ++i) {
      if (expected.out[i].absent()) continue;
      const Bound& bound = expected.bounds.size() == 1 ? expected.bounds[0] : expected.bounds[i];
      const std::string text = difference(expected.out[i], o.out[i], bound);
      if (!text.empty()) return "output " + std::to_string(i) + " " + text;
    }
    return {};
  }, calls);
}

}  // namespace tenon::conformance
