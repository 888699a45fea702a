// The same memory under two libraries: tensors handed to libtorch and back by DLPack, without a copy.
#include <ATen/ATen.h>
#include <ATen/DLConvertor.h>
#include <gtest/gtest.h>
#include <tenon/tenon.hpp>

namespace {

using tenon::DType;
using tenon::Tensor;

at::Tensor to_torch(const Tensor& t) { return at::fromDLPack(static_cast<DLManagedTensor*>(tenon::to_dlpack_unversioned(t))); }
Tensor from_torch(const at::Tensor& t) { return tenon::from_dlpack_unversioned(at::toDLPack(t)); }

struct Pair { DType ours; at::ScalarType theirs; };
const Pair kTypes[] = {{DType::u8, at::kByte}, {DType::i8, at::kChar}, {DType::i16, at::kShort}, {DType::i32, at::kInt}, {DType::i64, at::kLong},
                       {DType::f16, at::kHalf}, {DType::bf16, at::kBFloat16}, {DType::f32, at::kFloat}, {DType::f64, at::kDouble}};

TEST(Dlpack, hands_a_tensor_to_torch_without_a_copy) {
  Tensor ours = tenon::tensor({1.f, 2.f, 3.f});
  at::Tensor theirs = to_torch(ours);
  EXPECT_EQ(theirs.data_ptr(), ours.host_data());
  theirs[1] = 20.f;
  EXPECT_EQ(ours.to_vector<float>(), (std::vector<float>{1, 20, 3}));
  ours.fill_(7);
  EXPECT_EQ(theirs[2].item<float>(), 7);
}

TEST(Dlpack, takes_a_tensor_of_torch_without_a_copy) {
  at::Tensor theirs = at::arange(6, at::kFloat).reshape({2, 3});
  Tensor ours = from_torch(theirs);
  EXPECT_EQ(ours.host_data(), theirs.data_ptr());
  EXPECT_EQ(ours.type_text(), "f32[2,3]");
  theirs[1][2] = 50.f;
  EXPECT_EQ(ours.to_vector<float>(), (std::vector<float>{0, 1, 2, 3, 4, 50}));
  ours.mul_(2);
  EXPECT_EQ(theirs[1][2].item<float>(), 100);
}

TEST(Dlpack, comes_back_as_the_same_memory) {
  const Tensor ours = tenon::tensor({1.f, 2.f});
  EXPECT_EQ(from_torch(to_torch(ours)).host_data(), ours.host_data());
  const at::Tensor theirs = at::ones({2});
  EXPECT_EQ(to_torch(from_torch(theirs)).data_ptr(), theirs.data_ptr());
}

TEST(Dlpack, carries_every_element_type_both_ways) {
  for (const Pair& p : kTypes) {
    const Tensor ours = tenon::full({2, 2}, 3, {.dtype = p.ours});
    const at::Tensor theirs = to_torch(ours);
    EXPECT_EQ(theirs.scalar_type(), p.theirs);
    EXPECT_EQ(theirs.data_ptr(), ours.host_data());
    EXPECT_EQ(theirs.to(at::kDouble).sum().item<double>(), 12);
    const at::Tensor made = at::full({3}, 5, at::TensorOptions(p.theirs));
    const Tensor taken = from_torch(made);
    EXPECT_EQ(taken.dtype(), p.ours);
    EXPECT_EQ(taken.host_data(), made.data_ptr());
    EXPECT_EQ(taken.to_vector<double>(), (std::vector<double>{5, 5, 5}));
  }
}

TEST(Dlpack, takes_truth_values_where_torch_can_say_them) {
  // DLPack had no bool when torch 1.13 was made; it then refuses to export one.
  DLManagedTensor* managed = nullptr;
  try {
    managed = at::toDLPack(at::ones({2}, at::TensorOptions(at::kBool)));
  } catch (const c10::Error&) {
    GTEST_SKIP() << "this torch exports no bool";
  }
  const Tensor taken = tenon::from_dlpack_unversioned(managed);
  EXPECT_TRUE(taken.dtype() == DType::u8 || taken.dtype() == DType::boolean);
  EXPECT_EQ(taken.to_vector<uint8_t>(), (std::vector<uint8_t>{1, 1}));
}

TEST(Dlpack, refuses_types_that_it_has_not) {
  const at::Tensor theirs = at::zeros({2}, at::TensorOptions(at::kComplexFloat));
  DLManagedTensor* managed = at::toDLPack(theirs);
  try {
    tenon::from_dlpack_unversioned(managed);
    FAIL();
  } catch (const tenon::Error& e) {
    EXPECT_EQ(e.id(), "TN-DTYPE-102");
  }
  managed->deleter(managed);  // still the caller's
}

TEST(Dlpack, keeps_strides) {
  const at::Tensor theirs = at::arange(6, at::kFloat).reshape({2, 3}).t();
  const Tensor ours = from_torch(theirs);
  EXPECT_EQ(ours.host_data(), theirs.data_ptr());
  EXPECT_EQ(ours.type_text(), "f32[3,2]");
  EXPECT_EQ(ours.to_vector<float>(), (std::vector<float>{0, 3, 1, 4, 2, 5}));
  const Tensor turned = tenon::arange(0, 6).reshape({2, 3}).t();
  const at::Tensor back = to_torch(turned);
  EXPECT_EQ(back.data_ptr(), turned.host_data());
  EXPECT_EQ(back.strides(), (at::IntArrayRef{1, 3}));
  EXPECT_EQ(back[2][1].item<float>(), 5);
}

TEST(Dlpack, starts_in_the_middle_of_a_block) {
  const at::Tensor theirs = at::arange(10, at::kFloat).slice(0, 3, 10, 2);
  const Tensor ours = from_torch(theirs);
  EXPECT_EQ(ours.host_data(), theirs.data_ptr());
  EXPECT_EQ(ours.to_vector<float>(), (std::vector<float>{3, 5, 7, 9}));
  const Tensor part = tenon::arange(0, 10).slice({tenon::Slice{3, 10, 2}});
  EXPECT_EQ(to_torch(part)[3].item<float>(), 9);
}

TEST(Dlpack, carries_one_number_and_none) {
  EXPECT_EQ(from_torch(at::scalar_tensor(2.5)).item<double>(), 2.5);
  EXPECT_EQ(to_torch(tenon::tensor(2.5)).item<double>(), 2.5);
  EXPECT_EQ(to_torch(tenon::tensor(2.5)).dim(), 0);
  EXPECT_EQ(from_torch(at::zeros({0, 3})).type_text(), "f32[0,3]");
  EXPECT_EQ(to_torch(tenon::zeros({0, 3})).sizes(), (at::IntArrayRef{0, 3}));
}

TEST(Dlpack, gives_the_memory_back_once) {
  static int dropped;
  dropped = 0;
  static float memory[4] = {1, 2, 3, 4};
  {
    at::Tensor theirs = at::from_blob(memory, {4}, [](void*) { ++dropped; });
    Tensor a = from_torch(theirs), b = a;
    theirs.reset();
    EXPECT_EQ(a.to_vector<float>(), (std::vector<float>{1, 2, 3, 4}));
    EXPECT_EQ(dropped, 0);
  }
  EXPECT_EQ(dropped, 1);
  dropped = 0;
  {
    Tensor ours = tenon::from_blob(memory, {4}, DType::f32, [](void*, void*) { ++dropped; });
    at::Tensor theirs = to_torch(ours), view = theirs.slice(0, 1, 3);
    ours = Tensor();
    EXPECT_EQ(view[0].item<float>(), 2);
    EXPECT_EQ(dropped, 0);
  }
  EXPECT_EQ(dropped, 1);
}

}  // namespace
