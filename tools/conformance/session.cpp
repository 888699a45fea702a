#include "tools/conformance/session.h"

#include <algorithm>
#include <chrono>

namespace tenon::conformance {

void Trial::fail(const std::string& what) {
  if (failures_++ == 0) first_ = what;
}

void Trial::note(const std::string& text) {
  if (notes_.size() < 8) notes_.push_back(text);
}

void Session::check(const std::string& id, std::vector<std::string> tags, const std::function<void(Trial&)>& body) {
  const auto chosen = [&](const std::string& prefix) { return id.compare(0, prefix.size(), prefix) == 0; };
  if (!options.only.empty() && std::none_of(options.only.begin(), options.only.end(), chosen)) return;
  Check c;
  c.level = id[0] - '0', c.id = id, c.tags = std::move(tags);
  if (const Exception* never = find(options.lists.never, id, c.tags)) {
    c.state = State::Never, c.detail = never->why;
    done.push_back(c);
    if (finished) finished(c);
    return;
  }
  if (options.progress) options.progress(id);
  const auto begin = std::chrono::steady_clock::now();
  Trial t;
  try {
    body(t);
  } catch (const std::exception& e) {
    t.fail(e.what());
  }
  c.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  c.tried = t.tried_, c.notes = t.notes_;
  if (t.failures_ != 0) c.state = State::Failed, c.detail = t.first_ + (t.failures_ > 1 ? "\n(and " + std::to_string(t.failures_ - 1) + " more)" : "");
  else if (!t.skipped_.empty()) c.state = State::Skipped, c.detail = t.skipped_;
  if (const Exception* later = find(options.lists.not_yet, id, c.tags); later != nullptr && c.state != State::Skipped) {
    const bool passes = c.state == State::Passed;
    c.state = passes ? State::Failed : State::NotYet;
    c.detail = passes ? "is in the list not_yet (" + later->why + "), and passes: take it out" : later->why + "; " + c.detail;
  }
  done.push_back(c);
  if (finished) finished(c);
}

}  // namespace tenon::conformance
