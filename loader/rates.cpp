#include "loader/rates.h"

#include <tenon/caps.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <optional>

#include "kernel/runtime.h"
#include "kernel/status.h"
#include "loader/check.h"
#include "loader/small_file.h"

namespace tenon::loader {
namespace {

using kernel::Device;
using kernel::KeptRates;

constexpr std::string_view kHead = "tenon-rates 1";
constexpr struct { const char* name; uint32_t key; } kNames[] = {
#define CAP(NAME, name, key, type, unit, since) {#name, key},
    TN_CAPS(CAP)
#undef CAP
};

const char* name_of(uint32_t key) {
  for (const auto& n : kNames)
    if (n.key == key) return n.name;
  return nullptr;
}

std::optional<uint32_t> key_of(std::string_view name) {
  for (const auto& n : kNames)
    if (name == n.name) return n.key;
  return std::nullopt;
}

std::string_view take_line(std::string_view* rest) {
  const size_t end = std::min(rest->find('\n'), rest->size());
  const std::string_view line = rest->substr(0, end);
  rest->remove_prefix(std::min(end + 1, rest->size()));
  return line;
}

std::optional<std::string_view> behind(std::string_view line, std::string_view word) {
  if (!line.starts_with(word)) return std::nullopt;
  return line.substr(word.size());
}

// "rate NAME NUMBER"; nothing when it is anything else.
std::optional<tn_cap> rate_of(std::string_view line) {
  const auto rest = behind(line, "rate ");
  const size_t space = rest ? rest->find(' ') : std::string_view::npos;
  if (space == std::string_view::npos) return std::nullopt;
  const auto key = key_of(rest->substr(0, space));
  const std::string_view number = rest->substr(space + 1);
  tn_cap cap{key.value_or(0), TN_CAP_F64, TN_FROM_MEASURED, {}};
  cap.v.f = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), cap.v.f);
  if (!key || error != std::errc() || end != number.data() + number.size() || !std::isfinite(cap.v.f) || cap.v.f <= 0) return std::nullopt;
  return cap;
}

// The first part in which two lists "a; b; c" differ: "\"a\" there, \"x\" here".
std::string difference(std::string_view there, std::string_view here) {
  for (;;) {
    const size_t a = std::min(there.find("; "), there.size()), b = std::min(here.find("; "), here.size());
    if (there.substr(0, a) != here.substr(0, b) || a == there.size() || b == here.size()) {
      const auto quoted = [](std::string_view text) { return text.empty() ? std::string("nothing") : "\"" + std::string(text.substr(0, 60)) + "\""; };
      if (there.substr(0, a) == here.substr(0, b)) return quoted(there.substr(std::min(a + 2, there.size()))) + " there, " + quoted(here.substr(std::min(b + 2, here.size()))) + " here";
      return quoted(there.substr(0, a)) + " there, " + quoted(here.substr(0, b)) + " here";
    }
    there.remove_prefix(a + 2), here.remove_prefix(b + 2);
  }
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  char text[16];
  std::strftime(text, sizeof text, "%Y-%m-%d", &local);
  return text;
}

class Files : public kernel::RateStore {
 public:
  Files(std::string folder, std::string builds) : folder_(std::move(folder)), builds_(std::move(builds)) {}

  void read(const Device& device, KeptRates* out) override {
    if (folder_.empty()) return;
    const std::string hardware = one_line(std::string(device.name) + "; " + device.info.name);
    const std::string threads = std::to_string(device.runtime->pool().size()) + " threads";
    out->path = folder_ + "/" + short_hash(hardware + "; " + threads) + ".rates";
    out->made_for = hardware + "; " + one_line(device.info.driver) + "; " + threads + builds_;
    std::error_code error;
    if (!std::filesystem::exists(std::filesystem::symlink_status(out->path, error))) return;
    if (!own_folder(folder_, false)) {
      out->state = TN_RATES_IGNORED;
      out->note = folder_ + " could be written by others";
      return;
    }
    parse_rates(read_small(out->path, kRatesBytes), out->made_for, out->path, out);
  }

  tn_status keep(const Device& device, std::span<const tn_cap> caps, tn_diag* diag) override {
    for (size_t i = 0; i < caps.size(); ++i) {
      const bool again = std::any_of(caps.begin(), caps.begin() + static_cast<std::ptrdiff_t>(i), [&](const tn_cap& c) { return c.key == caps[i].key; });
      if (again || !name_of(caps[i].key))
        return kernel::fail(diag, TN_E_ARG, kernel::id(kernel::kArg, 240), "rate %zu is no rate\nwhy: capability %u is %s\ntry: give each key of tenon/caps.def once", i, caps[i].key, again ? "given twice" : "no key of tenon/caps.def");
    }
    const std::string text = rates_text(device.kept.made_for, today(), caps);
    if (text.size() <= kRatesBytes && own_folder(folder_, true) && replace_small(device.kept.path, text)) return TN_OK;
    return kernel::fail(diag, TN_E_IO, kernel::id(kernel::kState, 31), "measured rates could not be written\nwhy: folder %.140s cannot be written, or not by this user alone\ntry: repair the folder, or set loader.cache", folder_.c_str());
  }

 private:
  std::string folder_, builds_;
};

// Plugins from files, with their builds. What a program links in by itself changes nothing about rates that were reached without.
std::string builds_of(const kernel::Runtime& runtime) {
  std::vector<std::string> builds;
  for (const auto& slot : runtime.slots()) {
    const tn_plugin_entry& e = slot->entry;
    if (e.code == 0 && e.path[0] != '\0') builds.push_back(one_line(std::string(e.id) + " " + e.version + " " + std::string(e.build_id).substr(0, 8)));
  }
  std::sort(builds.begin(), builds.end());
  std::string text = "; ABI " + abi_text(TN_ABI_CURRENT);
  for (const std::string& build : builds) text += "; " + build;
  return text;
}

}  // namespace

void parse_rates(std::string_view text, const std::string& made_for, const std::string& path, KeptRates* out) {
  out->state = TN_RATES_IGNORED;
  out->caps.clear();
  int line = 0;
  const auto damaged = [&] {
    out->caps.clear();
    out->note = path + " is damaged in line " + std::to_string(line);
  };
  const auto next = [&] { return ++line, take_line(&text); };
  if (next() != kHead) return damaged();
  const auto written_for = behind(next(), "for ");
  if (!written_for) return damaged();
  const auto when = behind(next(), "when ");
  if (!when || when->size() != 10) return damaged();
  out->when = *when;
  if (*written_for != made_for) {
    out->note = "measured on " + out->when + " with something else: " + difference(*written_for, made_for);
    return;
  }
  for (std::string_view row = next(); row != "end"; row = next()) {
    const auto cap = rate_of(row);
    const bool again = cap && std::any_of(out->caps.begin(), out->caps.end(), [&](const tn_cap& c) { return c.key == cap->key; });
    if (!cap || again) return damaged();
    out->caps.push_back(*cap);
  }
  if (!text.empty()) return damaged();
  out->state = TN_RATES_USED;
}

std::string rates_text(const std::string& made_for, const std::string& when, std::span<const tn_cap> caps) {
  std::string text = std::string(kHead) + "\nfor " + made_for + "\nwhen " + when + "\n";
  for (const tn_cap& cap : caps) {
    char line[96];
    if (name_of(cap.key)) text += (std::snprintf(line, sizeof line, "rate %s %.9g\n", name_of(cap.key), cap.v.f), line);
  }
  return text + "end\n";
}

std::unique_ptr<kernel::RateStore> make_rate_store(kernel::Runtime& runtime, std::string folder) {
  return std::make_unique<Files>(std::move(folder), builds_of(runtime));
}

}  // namespace tenon::loader
