#include <tenon/data/loader.hpp>

#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <stdexcept>

using namespace tenon::data;
using tenon::io::data_error;

#if defined(__SANITIZE_THREAD__)
constexpr bool kThreadSanitizer = true;
#else
constexpr bool kThreadSanitizer = false;
#endif

namespace {

// Sample i has label i and pixels telling i.
std::shared_ptr<const MemoryDataset> numbered(uint64_t n, ImageShape shape = {1, 2, 2}) {
  std::vector<uint8_t> pixels(n * shape.pixels());
  for (uint64_t i = 0; i < n; ++i)
    for (uint64_t p = 0; p < shape.pixels(); ++p) pixels[i * shape.pixels() + p] = static_cast<uint8_t>(i * 31 + p);
  std::vector<int64_t> labels(n);
  std::iota(labels.begin(), labels.end(), 0);
  return *MemoryDataset::create(shape, std::move(pixels), std::move(labels));
}

using Labels = std::vector<std::vector<int64_t>>;

Labels epoch(DataLoader& loader) {
  Labels all;
  Batch b;
  for (;;) {
    auto more = loader.next(b);
    EXPECT_TRUE(more) << more.status().text();
    if (!more || !*more) return all;
    EXPECT_EQ(b.y.size(), b.size);
    all.push_back(b.y);
  }
}

class Faulty final : public Dataset {
 public:
  mutable std::atomic<int> reads{0};
  int fail_at = -1;
  bool throws = false;
  uint64_t size() const override { return 100; }
  ImageShape shape() const override { return {1, 1, 1}; }
  uint32_t classes() const override { return 100; }
  Status read(std::span<const uint64_t> indices, uint8_t* pixels, int64_t* labels) const override {
    if (reads++ == fail_at) {
      if (throws) throw std::runtime_error("disk on fire");
      return {data_error(14), "planted", "", "", ""};
    }
    for (size_t i = 0; i < indices.size(); ++i) pixels[i] = 0, labels[i] = static_cast<int64_t>(indices[i]);
    return {};
  }
};

}  // namespace

TEST(Philox, matches_the_published_random123_vectors) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}), (PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}), (PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}), (PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Sampler, every_epoch_visits_every_index_once) {
  for (uint64_t n : {1, 2, 3, 4, 5, 7, 8, 9, 63, 64, 65, 1000, 4097})
    for (uint64_t e : {0, 1, 5}) {
      ShuffleSampler sampler(n, 42);
      std::vector<bool> seen(n);
      for (uint64_t i = 0; i < n; ++i) {
        const uint64_t index = sampler.index_at(e, i);
        ASSERT_LT(index, n);
        ASSERT_FALSE(seen[index]);
        seen[index] = true;
      }
    }
}

TEST(Sampler, order_depends_on_seed_and_epoch_and_on_nothing_else) {
  const auto order = [](uint64_t seed, uint64_t e) {
    ShuffleSampler s(100, seed);
    std::vector<uint64_t> v;
    for (uint64_t i = 0; i < 100; ++i) v.push_back(s.index_at(e, i));
    return v;
  };
  EXPECT_EQ(order(1, 2), order(1, 2));
  std::set<std::vector<uint64_t>> all;
  for (uint64_t seed : {0ull, 1ull, 1ull << 32, ~0ull})
    for (uint64_t e : {0ull, 1ull, 2ull, 1ull << 32, (1ull << 32) + 1}) all.insert(order(seed, e));
  EXPECT_EQ(all.size(), 20u);
}

TEST(Sampler, all_orders_are_equally_likely) {
  // Chi-squared over all n! permutations; the bound is the mean plus six standard deviations.
  for (uint64_t n : {3, 4, 5}) {
    std::map<std::vector<uint64_t>, double> count;
    const int trials = 24000;
    for (int t = 0; t < trials; ++t) {
      Permutation p(n, 7, static_cast<uint64_t>(t));
      std::vector<uint64_t> v;
      for (uint64_t i = 0; i < n; ++i) v.push_back(p(i));
      ++count[v];
    }
    const double kinds = std::tgamma(static_cast<double>(n) + 1), expected = trials / kinds;
    double chi = (kinds - static_cast<double>(count.size())) * expected;
    for (const auto& [v, c] : count) chi += (c - expected) * (c - expected) / expected;
    EXPECT_LT(chi, kinds - 1 + 6 * std::sqrt(2 * (kinds - 1))) << n;
  }
}

TEST(Sampler, neighbours_do_not_stay_neighbours) {
  ShuffleSampler s(60000, 3);
  int close = 0;
  for (uint64_t i = 0; i + 1 < 60000; ++i) close += std::llabs(static_cast<long long>(s.index_at(0, i)) - static_cast<long long>(s.index_at(0, i + 1))) < 60;
  EXPECT_NEAR(close, 120, 60) << "about 60000 x 120 / 60000 by chance";
}

TEST(DataLoader, an_epoch_has_every_sample_once_and_the_next_another_order) {
  DataLoader loader(numbered(103), {.batch = 10, .seed = 5});
  std::vector<Labels> epochs{epoch(loader), epoch(loader)};
  EXPECT_NE(epochs[0], epochs[1]);
  for (const Labels& e : epochs) {
    ASSERT_EQ(e.size(), 11u);
    EXPECT_EQ(e[10].size(), 3u);
    std::set<int64_t> seen;
    for (const auto& b : e) seen.insert(b.begin(), b.end());
    EXPECT_EQ(seen.size(), 103u);
  }
}

TEST(DataLoader, pixels_belong_to_their_label_and_are_normalised) {
  DataLoader loader(numbered(50, {2, 3, 5}), {.batch = 8, .normalise = {{0.5f, 0.25f}, {0.5f, 2.0f}}});
  Batch b;
  for (auto more = loader.next(b); more && *more; more = loader.next(b))
    for (uint32_t i = 0; i < b.size; ++i)
      for (uint32_t p = 0; p < 30; ++p) {
        const long double pixel = static_cast<uint8_t>(b.y[i] * 31 + p), mean = p < 15 ? 0.5L : 0.25L, dev = p < 15 ? 0.5L : 2.0L;
        ASSERT_NEAR(b.x[i * 30 + p], static_cast<double>((pixel / 255 - mean) / dev), 3e-7);
      }
}

TEST(DataLoader, prefetch_changes_nothing) {
  Labels reference;
  for (uint32_t prefetch : {0u, 1u, 2u, 7u}) {
    DataLoader loader(numbered(77), {.batch = 9, .seed = 1, .prefetch = prefetch, .transforms = {std::make_shared<RandomCrop>(1)}});
    const Labels got = epoch(loader);
    if (prefetch == 0) reference = got;
    EXPECT_EQ(got, reference);
  }
}

TEST(DataLoader, resumes_with_the_very_next_batch_from_any_point) {
  const LoaderOptions options{.batch = 10, .seed = 9, .prefetch = 3, .transforms = {std::make_shared<RandomCrop>(1), std::make_shared<HorizontalFlip>()}};
  const auto stream = [&](DataLoader& loader, int calls) {
    std::vector<std::vector<float>> xs;
    Batch b;
    for (int i = 0; i < calls; ++i) {
      auto more = loader.next(b);
      EXPECT_TRUE(more);
      xs.push_back(*more ? b.x : std::vector<float>{});
    }
    return xs;
  };
  DataLoader whole(numbered(45), options);
  const auto expected = stream(whole, 13);
  for (int stop = 0; stop < 13; ++stop) {
    DataLoader first(numbered(45), options), second(numbered(45), options);
    stream(first, stop);
    ASSERT_TRUE(second.restore(first.state()).ok());
    const auto rest = stream(second, 13 - stop);
    EXPECT_TRUE(std::equal(rest.begin(), rest.end(), expected.begin() + stop)) << stop;
  }
}

TEST(DataLoader, a_restored_state_brings_its_seed) {
  DataLoader a(numbered(30), {.batch = 30, .seed = 1}), b(numbered(30), {.batch = 30, .seed = 2});
  ASSERT_TRUE(b.restore(a.state()).ok());
  EXPECT_EQ(epoch(a), epoch(b));
  EXPECT_EQ(b.restore({1, 0, 31}).id, data_error(16));
}

TEST(DataLoader, ranks_share_the_epoch_without_overlap_and_in_step) {
  for (uint32_t world : {1u, 2u, 3u, 7u}) {
    std::multiset<int64_t> seen;
    std::vector<DataLoader*> none;
    std::set<uint64_t> counts;
    for (uint32_t rank = 0; rank < world; ++rank) {
      DataLoader loader(numbered(50), {.batch = 4, .seed = 3, .rank = rank, .world = world});
      const Labels mine = epoch(loader);
      counts.insert(mine.size());
      for (const auto& b : mine) seen.insert(b.begin(), b.end());
    }
    EXPECT_EQ(seen.size(), 50u) << "no sample twice, none padded";
    EXPECT_EQ(std::set<int64_t>(seen.begin(), seen.end()).size(), 50u);
    EXPECT_EQ(counts.size(), 1u) << "all ranks make the same number of steps";
  }
}

TEST(DataLoader, a_run_saved_on_two_ranks_continues_on_one) {
  DataLoader one(numbered(48), {.batch = 8, .seed = 3});
  std::vector<int64_t> expected;
  for (const auto& b : epoch(one)) expected.insert(expected.end(), b.begin(), b.end());
  DataLoader half(numbered(48), {.batch = 4, .seed = 3, .rank = 1, .world = 2}), resumed(numbered(48), {.batch = 8, .seed = 3});
  Batch b;
  ASSERT_TRUE(half.next(b) && half.next(b));
  ASSERT_TRUE(resumed.restore(half.state()).ok());
  std::vector<int64_t> rest;
  for (const auto& batch : epoch(resumed)) rest.insert(rest.end(), batch.begin(), batch.end());
  EXPECT_TRUE(std::equal(rest.begin(), rest.end(), expected.begin() + 16, expected.end()));
}

TEST(DataLoader, drop_last_leaves_out_what_is_not_full) {
  DataLoader loader(numbered(25), {.batch = 10, .drop_last = true});
  EXPECT_EQ(loader.batches_per_epoch(), 2u);
  EXPECT_EQ(epoch(loader).size(), 2u);
  EXPECT_EQ(epoch(loader).size(), 2u) << "and the next epoch is whole again";
}

TEST(DataLoader, options_that_make_no_sense_are_refused) {
  Batch b;
  const auto id = [&](LoaderOptions o) { return DataLoader(numbered(5), std::move(o)).next(b).status().id; };
  EXPECT_EQ(id({.batch = 0}), data_error(16));
  EXPECT_EQ(id({.rank = 1, .world = 1}), data_error(16));
  EXPECT_EQ(id({.world = 0}), data_error(16));
  EXPECT_EQ(id({.batch = 6, .drop_last = true}), data_error(16));
  EXPECT_EQ(id({.normalise = {{0, 0}, {1}}}), data_error(16));
  EXPECT_EQ(id({.normalise = {{0}, {0}}}), data_error(16));
  EXPECT_EQ(id({.normalise = {{0}, {NAN}}}), data_error(16));
}

TEST(DataLoader, errors_and_exceptions_reach_the_caller_after_the_good_batches) {
  for (bool throws : {false, true})
    for (uint32_t prefetch : {0u, 3u}) {
      auto data = std::make_shared<Faulty>();
      data->fail_at = 2, data->throws = throws;
      DataLoader loader(data, {.batch = 10, .prefetch = prefetch});
      Batch b;
      ASSERT_TRUE(loader.next(b) && loader.next(b));
      const SamplerState before = loader.state();
      if (throws) {
        EXPECT_THROW(static_cast<void>(loader.next(b)), std::runtime_error);
      } else {
        EXPECT_EQ(loader.next(b).status().what, "planted");
      }
      EXPECT_EQ(loader.state(), before);
      ASSERT_TRUE(loader.next(b)) << "the same batch is tried again";
      EXPECT_EQ(loader.state().offset, 30u);
    }
}

TEST(DataLoader, can_be_dropped_at_any_time) {
  for (int calls = 0; calls < 6; ++calls) {
    DataLoader loader(numbered(40), {.batch = 10, .prefetch = 2});
    Batch b;
    for (int i = 0; i < calls; ++i) ASSERT_TRUE(loader.next(b));
  }
}

TEST(DataLoader, a_forked_child_goes_on_with_the_same_batches) {
  if (kThreadSanitizer) GTEST_SKIP() << "the thread sanitizer starts no threads in a forked child";
  DataLoader loader(numbered(100), {.batch = 10, .seed = 4});
  Batch b;
  ASSERT_TRUE(loader.next(b));
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(20);  // a hang is a failure, not a wait
    Batch c;
    auto more = loader.next(c);
    ::_exit(more && *more ? static_cast<int>(c.y[0]) : 255);
  }
  ASSERT_TRUE(loader.next(b));
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), b.y[0]);
}

TEST(Transforms, crop_shifts_by_every_amount_equally_often_and_fills_the_rest) {
  const ImageShape shape{1, 5, 5};
  std::map<std::pair<int, int>, int> shifts;
  for (uint64_t i = 0; i < 9000; ++i) {
    std::vector<uint8_t> image(25, 1), scratch(25);
    image[12] = 200;
    RandomStream random({1, 0, i, 0});
    RandomCrop(1, 77).apply(image.data(), scratch.data(), shape, random);
    const auto at = std::find(image.begin(), image.end(), 200) - image.begin();
    const int dy = static_cast<int>(at / 5) - 2, dx = static_cast<int>(at % 5) - 2;
    ++shifts[{dy, dx}];
    for (int y = 0; y < 5; ++y)
      for (int x = 0; x < 5; ++x) {
        const bool outside = y - dy < 0 || y - dy > 4 || x - dx < 0 || x - dx > 4;
        ASSERT_EQ(image[static_cast<size_t>(y * 5 + x)], outside ? 77 : y * 5 + x == at ? 200 : 1);
      }
  }
  ASSERT_EQ(shifts.size(), 9u);
  for (const auto& [shift, n] : shifts) EXPECT_NEAR(n, 1000, 180);
}

TEST(Transforms, a_crop_wider_than_the_image_leaves_only_fill_or_part) {
  for (uint64_t i = 0; i < 500; ++i) {
    std::vector<uint8_t> image(2 * 3 * 4, 9), scratch(24);
    RandomStream random({2, 0, i, 0});
    RandomCrop(50, 3).apply(image.data(), scratch.data(), {2, 3, 4}, random);
    for (uint8_t p : image) ASSERT_TRUE(p == 3 || p == 9);
  }
}

TEST(Transforms, flip_mirrors_rows_of_every_channel_half_the_time) {
  int flipped = 0;
  for (uint64_t i = 0; i < 1000; ++i) {
    std::vector<uint8_t> image{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, original = image;
    RandomStream random({3, 0, i, 0});
    HorizontalFlip().apply(image.data(), nullptr, {2, 2, 3}, random);
    if (image == original) continue;
    ++flipped;
    EXPECT_EQ(image, (std::vector<uint8_t>{3, 2, 1, 6, 5, 4, 9, 8, 7, 12, 11, 10}));
  }
  EXPECT_NEAR(flipped, 500, 100);
}

TEST(Transforms, an_image_gets_the_same_treatment_whatever_the_batch_size) {
  std::map<int64_t, std::vector<float>> reference;
  for (uint32_t batch : {1u, 7u, 64u}) {
    DataLoader loader(numbered(64, {1, 6, 6}), {.batch = batch, .seed = 8, .transforms = {std::make_shared<RandomCrop>(2), std::make_shared<HorizontalFlip>()}});
    Batch b;
    for (auto more = loader.next(b); more && *more; more = loader.next(b))
      for (uint32_t i = 0; i < b.size; ++i) {
        std::vector<float> x(b.x.begin() + i * 36, b.x.begin() + (i + 1) * 36);
        const auto [it, fresh] = reference.emplace(b.y[i], x);
        EXPECT_EQ(it->second, x);
      }
  }
}

TEST(DataLoader, makes_a_batch_of_128_x_784_fast_enough) {
  if (kThreadSanitizer) GTEST_SKIP() << "times mean nothing under the thread sanitizer";
  DataLoader loader(numbered(6400, {1, 28, 28}), {.batch = 128, .prefetch = 0, .normalise = {{0.1307f}, {0.3081f}}});
  Batch b;
  std::vector<double> us;
  for (int i = 0; i < 200; ++i) {
    const auto start = std::chrono::steady_clock::now();
    auto more = loader.next(b);
    ASSERT_TRUE(more);
    if (*more) us.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count());
  }
  std::sort(us.begin(), us.end());
  RecordProperty("min_us", std::to_string(us[0]));
  printf("batch 128x784: min %.1f us, median %.1f us\n", us[0], us[us.size() / 2]);
  EXPECT_LT(us[0], 2000) << "a gross slip only; the figure is printed";
}
