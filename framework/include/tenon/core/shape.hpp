// tenon/core/shape.hpp - sizes of up to eight axes, held inline, and the ranges that slicing takes.
//
//   Shape s{2, 3};   s.size() == 2;   s.numel() == 6;   to_string(s) == "[2,3]"
//   Slice{}            all          Slice{1, 5}      1, 2, 3, 4
//   Slice{{}, {}, -1}  backwards    Slice{-3}        the last three         (NumPy's meaning, absent ends included)
#pragma once
#include <tenon/types.h>

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>

namespace tenon {

class Shape {
 public:
  static constexpr uint32_t kMaxRank = TN_MAX_RANK;
  constexpr Shape() = default;
  Shape(std::initializer_list<int64_t> dims) : Shape(std::span<const int64_t>(dims.begin(), dims.size())) {}
  Shape(std::span<const int64_t> dims);  // throws TN-SHAPE-101 above eight axes
  uint32_t size() const { return rank_; }
  bool empty() const { return rank_ == 0; }
  int64_t operator[](uint32_t i) const { return dim_[i]; }
  int64_t& operator[](uint32_t i) { return dim_[i]; }
  const int64_t* begin() const { return dim_; }
  const int64_t* end() const { return dim_ + rank_; }
  operator std::span<const int64_t>() const { return {dim_, rank_}; }
  void push_back(int64_t d);
  void erase(uint32_t axis);
  void insert(uint32_t axis, int64_t d);
  int64_t numel() const;  // 1 without axes
  friend bool operator==(const Shape& a, const Shape& b) {
    if (a.rank_ != b.rank_) return false;
    for (uint32_t i = 0; i < a.rank_; ++i) if (a.dim_[i] != b.dim_[i]) return false;
    return true;
  }

 private:
  int64_t dim_[kMaxRank] = {};
  uint32_t rank_ = 0;
};
std::string to_string(const Shape& s);  // "[2,3]"

// start:stop:step of one axis. Negative ends count from the end once, then everything is clamped; an empty result is legal.
// step 0 throws TN-ARG-102.
struct Slice {
  std::optional<int64_t> start, stop;
  int64_t step = 1;
};
// What a Slice means on an axis of `dim` elements: first index, number of elements, step.
struct ResolvedSlice { int64_t start, length, step; };
ResolvedSlice resolve(const Slice& slice, int64_t dim);

}  // namespace tenon
