#include <tenon/data/tensors.hpp>
#include <tenon/io/tensors.hpp>

#include <cstring>

#include "temp_dir.hpp"

using namespace tenon;
using test::TempDir;

TEST(Tensors, come_back_from_a_file_with_value_type_and_shape) {
  TempDir dir;
  const float w[6] = {1, -0.0f, 3, 4, 5, 1e-45f};
  const int64_t n[1] = {INT64_MIN};
  save_safetensors(dir / "x", {{"w", from_host(w, DType::f32, {2, 3})}, {"n", from_host(n, DType::i64, {})}, {"none", from_host(w, DType::f32, {0, 4})}}, {{"k", "v"}});
  auto back = load_safetensors(dir / "x");
  ASSERT_EQ(back.size(), 3u);
  EXPECT_EQ(back.at("w").shape(), (Shape{2, 3}));
  const std::vector<float> values = back.at("w").to_vector<float>();
  EXPECT_EQ(std::memcmp(values.data(), w, sizeof w), 0) << "bit for bit";
  EXPECT_EQ(back.at("n").item<int64_t>(), INT64_MIN);
  EXPECT_EQ(back.at("none").numel(), 0);
}

TEST(Tensors, failures_are_tenon_errors_with_the_id_of_the_file_layer) {
  TempDir dir;
  try {
    load_safetensors(dir / "none");
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.id(), "TN-FILE-001");
    EXPECT_EQ(e.status(), TN_E_NOT_FOUND);
    EXPECT_FALSE(e.advice().empty());
  }
}

TEST(Tensors, a_batch_becomes_images_and_labels) {
  auto dataset = *data::MemoryDataset::create({1, 1, 2}, {0, 255, 51, 102}, {1, 0});
  data::DataLoader loader(dataset, {.batch = 2, .shuffle = false});
  data::Batch batch;
  ASSERT_TRUE(loader.next(batch));
  const auto [x, y] = data::to_tensors(batch);
  EXPECT_EQ(x.shape(), (Shape{2, 1, 1, 2}));
  EXPECT_FLOAT_EQ(x.to_vector<float>()[1], 1.0f);
  EXPECT_FLOAT_EQ(x.to_vector<float>()[2], 0.2f);
  EXPECT_EQ(y.to_vector<int64_t>(), (std::vector<int64_t>{1, 0}));
}
