#include "kernel/identity.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <tuple>

#include "kernel/device_name.h"

namespace tenon::kernel {
namespace {

bool equal_uuid(const tn_device_info& a, const tn_device_info& b) { return std::memcmp(a.uuid, b.uuid, sizeof a.uuid) == 0; }

// Some drivers give one constant for all their devices: such a value identifies nothing.
bool has_own_uuid(const std::vector<Route>& routes, size_t i) {
  const tn_device_info& info = *routes[i].info;
  if (!has_uuid(info)) return false;
  for (size_t j = 0; j < routes.size(); ++j)
    if (j != i && routes[j].plugin == routes[i].plugin && equal_uuid(info, *routes[j].info)) return false;
  return true;
}

bool same_address(const tn_device_info& a, const tn_device_info& b) {
  return has_address(a) && has_address(b) && a.pci_domain == b.pci_domain && a.pci_bdf == b.pci_bdf;
}

bool same_piece(const std::vector<Route>& routes, size_t i, size_t j) {
  const tn_device_info &a = *routes[i].info, &b = *routes[j].info;
  if (routes[i].plugin == routes[j].plugin || (a.kind == TN_KIND_CPU) != (b.kind == TN_KIND_CPU)) return false;
  if ((a.flags | b.flags) & TN_DEVICE_EMULATED) return false;
  if (has_own_uuid(routes, i) && has_own_uuid(routes, j)) return equal_uuid(a, b);
  return same_address(a, b);
}

// Routes that meet directly or through others; `root` leads to the least index of each group.
size_t root_of(std::vector<size_t>& root, size_t i) {
  while (root[i] != i) i = root[i] = root[root[i]];
  return i;
}

}  // namespace

bool same_report(const tn_device_info& a, const tn_device_info& b) {
  const auto facts = [](const tn_device_info& i) {
    return std::tie(i.kind, i.flags, i.pci_domain, i.pci_bdf, i.vendor_id, i.device_id, i.mem_total_bytes, i.dtype_storage, i.dtype_compute, i.dtype_matrix, i.n_spaces);
  };
  return facts(a) == facts(b) && equal_uuid(a, b) && std::strncmp(a.name, b.name, sizeof a.name) == 0 && std::strncmp(a.driver, b.driver, sizeof a.driver) == 0;
}

std::vector<uint32_t> physical_ids(const std::vector<Route>& routes) {
  std::vector<size_t> root(routes.size());
  std::iota(root.begin(), root.end(), size_t{0});
  for (size_t i = 0; i < routes.size(); ++i)
    for (size_t j = 0; j < i; ++j) {
      if (!same_piece(routes, i, j)) continue;
      const size_t a = root_of(root, i), b = root_of(root, j);
      root[std::max(a, b)] = std::min(a, b);
    }
  std::vector<uint32_t> least(routes.size(), UINT32_MAX), ids(routes.size());
  for (size_t i = 0; i < routes.size(); ++i) {
    uint32_t& id = least[root_of(root, i)];
    id = std::min(id, routes[i].device);
  }
  const auto cpu = std::find_if(routes.begin(), routes.end(), [](const Route& r) { return r.info->kind == TN_KIND_CPU && !(r.info->flags & TN_DEVICE_EMULATED); });
  for (size_t i = 0; i < routes.size(); ++i) ids[i] = least[root_of(root, i)];
  for (size_t i = 0; i < routes.size(); ++i)
    if (routes[i].info->flags & TN_DEVICE_EMULATED && cpu != routes.end()) ids[i] = ids[static_cast<size_t>(cpu - routes.begin())];
  return ids;
}

}  // namespace tenon::kernel
