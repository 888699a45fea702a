// tools/conformance/array.h - an operand's numbers and how they lie in memory.
//
//   Array x = array(TN_F32, {2, 3}, {1, 2, 3, 4, 5, 6});  x.layout = ops::Layout::Permuted;
//   Placement p = place(x);                 // type with strides, where element [0,0] is, how much memory is wanted
//   std::vector<unsigned char> bytes = laid_out(x, p);
#pragma once
#include <tenon/types.h>

#include <string>
#include <vector>

#include "ops/op.h"
#include "tools/conformance/number.h"

namespace tenon::conformance {

// Elements in row-major order, whatever the layout in memory is. dtype 0: an optional operand left out.
struct Array {
  uint32_t dtype = 0;
  std::vector<int64_t> dims;
  std::vector<Number> v;
  ops::Layout layout = ops::Layout::Dense;
  int64_t skip = 0;       // elements in front of the first one: less alignment
  bool reversed = false;  // every stride negative: the first element lies last

  bool absent() const { return dtype == 0; }
};
Array array(uint32_t dtype, std::vector<int64_t> dims, std::vector<Number> v);
size_t count(const std::vector<int64_t>& dims);
std::string type_text(const Array& a);

struct Placement {
  tn_type type{};
  int64_t first = 0, elements = 0;  // in elements: where [0, ..., 0] is; size of the whole, some unused ones included
};
Placement place(const Array& a);
// Byte offset of an element (row-major number) from the first one.
int64_t offset_of(const tn_type& t, size_t element);

// What lies between the elements: not to be read, not to be written.
inline constexpr unsigned char kPoison = 0xC7;
std::vector<unsigned char> laid_out(const Array& a, const Placement& p);

}  // namespace tenon::conformance
