// Routes to the same hardware are one piece; what cannot be told apart for sure stays apart.
#include "kernel/identity.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace tenon::kernel {
namespace {

constexpr uint32_t kGpu = TN_KIND_CUDA, kTrusted = TN_DEVICE_UUID_TRUSTED;

tn_device_info gpu(uint8_t uuid, uint32_t flags, uint32_t domain, uint32_t bdf) {
  tn_device_info info{};
  info.size = sizeof info;
  info.kind = kGpu, info.flags = flags, info.pci_domain = domain, info.pci_bdf = bdf;
  if (uuid) std::fill(std::begin(info.uuid), std::end(info.uuid), uuid), info.uuid[0] = 1;
  return info;
}
tn_device_info cpu(uint32_t flags = 0) {
  tn_device_info info{};
  info.size = sizeof info;
  info.kind = TN_KIND_CPU, info.flags = flags;
  return info;
}

// The plugin number of each device is given beside it; device ids are 1, 2, 3, ...
std::vector<uint32_t> ids(const std::vector<std::pair<uint32_t, tn_device_info>>& devices) {
  std::vector<Route> routes;
  for (const auto& [plugin, info] : devices) routes.push_back({&info, plugin, uint32_t(routes.size() + 1)});
  return physical_ids(routes);
}
using Ids = std::vector<uint32_t>;

TEST(Identity, routes_with_the_same_trusted_uuid_are_one_piece) {
  EXPECT_EQ(ids({{0, cpu()}, {1, gpu(7, kTrusted, 0, 0x100)}, {2, gpu(7, kTrusted, 0, 0)}}), (Ids{1, 2, 2}));
}
TEST(Identity, a_uuid_that_is_not_trusted_says_nothing) {
  EXPECT_EQ(ids({{1, gpu(7, 0, 0, 0)}, {2, gpu(7, kTrusted, 0, 0)}}), (Ids{1, 2}));
}
TEST(Identity, zeros_and_ones_are_no_uuid) {
  tn_device_info zero = gpu(0, kTrusted, 0, 0), ones = gpu(0, kTrusted, 0, 0);
  std::fill(std::begin(ones.uuid), std::end(ones.uuid), uint8_t{0xFF});
  EXPECT_EQ(ids({{1, zero}, {2, zero}, {1, ones}, {2, ones}}), (Ids{1, 2, 3, 4}));
}
TEST(Identity, a_uuid_that_one_plugin_gives_twice_says_nothing) {
  EXPECT_EQ(ids({{1, gpu(7, kTrusted, 0, 0x100)}, {1, gpu(7, kTrusted, 0, 0x200)}, {2, gpu(7, kTrusted, 0, 0x200)}}), (Ids{1, 2, 2}));
}
TEST(Identity, different_uuids_are_different_pieces_even_at_one_address) {
  EXPECT_EQ(ids({{1, gpu(7, kTrusted, 0, 0x100)}, {2, gpu(8, kTrusted, 0, 0x100)}}), (Ids{1, 2}));
}
TEST(Identity, without_uuid_the_pci_address_decides) {
  EXPECT_EQ(ids({{1, gpu(0, 0, 0, 0x100)}, {2, gpu(0, 0, 0, 0x100)}, {3, gpu(0, 0, 1, 0x100)}}), (Ids{1, 1, 3}));
}
TEST(Identity, an_unknown_address_is_no_address) { EXPECT_EQ(ids({{1, gpu(0, 0, 0, 0)}, {2, gpu(0, 0, 0, 0)}}), (Ids{1, 2})); }
TEST(Identity, partitions_share_an_address_and_are_not_merged_by_it) {
  EXPECT_EQ(ids({{1, gpu(0, TN_DEVICE_PARTITION, 0, 0x100)}, {2, gpu(0, 0, 0, 0x100)}, {3, gpu(0, TN_DEVICE_PARTITION, 0, 0x100)}}), (Ids{1, 2, 3}));
}
TEST(Identity, partitions_are_merged_by_their_uuid) {
  EXPECT_EQ(ids({{1, gpu(7, kTrusted | TN_DEVICE_PARTITION, 0, 0x100)}, {2, gpu(7, kTrusted | TN_DEVICE_PARTITION, 0, 0x100)}}), (Ids{1, 1}));
}
TEST(Identity, one_plugins_devices_are_never_the_same_piece) { EXPECT_EQ(ids({{1, gpu(0, 0, 0, 0x100)}, {1, gpu(0, 0, 0, 0x100)}}), (Ids{1, 2})); }
TEST(Identity, three_routes_meet_through_the_second) {
  // the first knows only the address, the third only the UUID
  EXPECT_EQ(ids({{1, gpu(0, 0, 0, 0x100)}, {2, gpu(7, kTrusted, 0, 0x100)}, {3, gpu(7, kTrusted, 0, 0)}}), (Ids{1, 1, 1}));
}
TEST(Identity, emulated_devices_belong_to_the_cpu) {
  EXPECT_EQ(ids({{0, cpu(TN_DEVICE_EMULATED)}, {1, cpu()}, {2, gpu(0, TN_DEVICE_EMULATED, 0, 0x100)}, {3, gpu(0, 0, 0, 0x100)}}), (Ids{2, 2, 2, 4}));
}
TEST(Identity, without_a_cpu_an_emulated_device_stands_alone) { EXPECT_EQ(ids({{1, gpu(0, TN_DEVICE_EMULATED, 0, 0)}}), (Ids{1})); }
TEST(Identity, a_cpu_and_a_gpu_at_one_address_are_two_pieces) {
  tn_device_info processor = cpu();
  processor.pci_bdf = 0x100;
  EXPECT_EQ(ids({{1, processor}, {2, gpu(0, 0, 0, 0x100)}}), (Ids{1, 2}));
}
TEST(Identity, the_grouping_does_not_depend_on_the_order_of_routes) {
  const std::vector<std::pair<uint32_t, tn_device_info>> devices = {{0, cpu()}, {1, gpu(7, kTrusted, 0, 0x100)}, {1, gpu(8, kTrusted, 0, 0x200)},
      {2, gpu(0, 0, 0, 0x200)}, {3, gpu(7, kTrusted, 0, 0)}, {4, gpu(0, TN_DEVICE_EMULATED, 0, 0)}};
  std::vector<size_t> order{0, 1, 2, 3, 4, 5};
  std::mt19937 draw(1);
  for (int round = 0; round < 100; ++round) {
    std::shuffle(order.begin(), order.end(), draw);
    std::vector<Route> routes;
    for (size_t i : order) routes.push_back({&devices[i].second, devices[i].first, uint32_t(i + 1)});
    const Ids got = physical_ids(routes);
    for (size_t k = 0; k < order.size(); ++k) EXPECT_EQ(got[k], (Ids{1, 2, 3, 3, 2, 1})[order[k]]) << "route " << order[k];
  }
}

}  // namespace
}  // namespace tenon::kernel
