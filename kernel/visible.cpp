#include "kernel/visible.h"

#include <algorithm>

#include "kernel/identity.h"
#include "kernel/status.h"

namespace tenon::kernel {
namespace {

bool emulated(const tn_device_entry& e) { return (e.info.flags & TN_DEVICE_EMULATED) != 0; }

// Of each entry the cause that hides its hardware on the route of its own driver; "" where none does. Whether two routes
// meet is decided as everywhere: the hidden ones are put behind the list.
std::vector<std::string> hidden_by_drivers(const std::vector<tn_device_entry>& entries, const std::vector<HiddenDevice>& hidden) {
  std::vector<std::string> causes(entries.size());
  if (hidden.empty()) return causes;
  std::vector<Route> routes;
  for (const tn_device_entry& e : entries) routes.push_back({&e.info, e.plugin, e.device});
  for (size_t k = 0; k < hidden.size(); ++k) routes.push_back({&hidden[k].info, hidden[k].plugin, static_cast<uint32_t>(UINT32_MAX - k)});
  const std::vector<uint32_t> piece = physical_ids(routes);
  for (size_t i = 0; i < entries.size(); ++i)
    for (size_t k = 0; k < hidden.size() && causes[i].empty(); ++k)
      if (!emulated(entries[i]) && piece[i] == piece[entries.size() + k]) causes[i] = hidden[k].cause;
  return causes;
}

}  // namespace

tn_status VisibleFilter::parse(const std::string& source, const std::string& text, tn_diag* diag) {
  VisibleFilter fresh;
  fresh.source_ = source, fresh.text_ = text;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    begin = end + 1;
    const auto name = parse_device_name(word);
    if (!name) {
      return fail(diag, TN_E_ARG, id(kDevice, 8), "%s has an entry that names no device\nwhy: \"%.40s\" is no NAME, NAME:INDEX, uuid:... or pci:...\ntry: write them as `tenon devices` lists them", source.c_str(), word.c_str());
    }
    fresh.names_.push_back(*name);
    fresh.words_.push_back(word);
  }
  *this = std::move(fresh);
  return TN_OK;
}

bool VisibleFilter::means(const char* listed_as, const tn_device_info& info) const {
  return !given() || std::any_of(names_.begin(), names_.end(), [&](const DeviceName& n) { return names_device(n, listed_as, info); });
}

std::vector<std::string> VisibleFilter::judge(const std::vector<tn_device_entry>& entries, const std::vector<HiddenDevice>& by_drivers) const {
  std::vector<std::string> causes = hidden_by_drivers(entries, by_drivers);
  if (!given()) return causes;
  std::vector<bool> meant(entries.size());
  for (const DeviceName& name : names_)
    for (size_t i = 0; i < entries.size(); ++i) {
      if (!names_device(name, entries[i].name, entries[i].info)) continue;
      meant[i] = true;
      if (name.by == DeviceName::By::List) continue;
      for (size_t j = 0; j < entries.size(); ++j)
        if (entries[j].physical == entries[i].physical && !emulated(entries[j])) meant[j] = true;
    }
  for (size_t i = 0; i < entries.size(); ++i)
    if (!meant[i] && causes[i].empty()) causes[i] = "hidden by " + source_ + "=" + text_;
  return causes;
}

tn_status VisibleFilter::check(const std::vector<tn_device_entry>& entries, tn_diag* diag) const {
  for (size_t k = 0; k < names_.size(); ++k) {
    if (std::any_of(entries.begin(), entries.end(), [&](const tn_device_entry& e) { return names_device(names_[k], e.name, e.info); })) continue;
    std::string have;
    for (const tn_device_entry& e : entries) have += (have.empty() ? "" : ", ") + std::string(e.name);
    return fail(diag, TN_E_NOT_FOUND, id(kDevice, 7), "%s names a device that is not here\nwhy: %.50s is none of %.60s\ntry: correct it; `%s tenon plugins` says why one is absent", source_.c_str(), words_[k].c_str(),
                have.empty() ? "no devices at all" : have.c_str(), source_ == "TENON_DEVICES" ? "TENON_DEVICES=" : "TENON_CONFIG=");
  }
  return TN_OK;
}

}  // namespace tenon::kernel
