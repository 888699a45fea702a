// tenon/core/tensor.hpp - the tensor: an 8-byte counted handle.
//
//   Tensor x = tensor({{1.f, 2.f}, {3.f, 4.f}});        // f32[2,2] on the default device
//   Tensor y = x * 2 + zeros({2, 2});                    // see ops.hpp
//   std::vector<float> v = y.to_vector<float>();         // waits for the device
//
// Copying a handle shares the tensor; clone() copies the elements. Views (reshape, slice, ...) share memory.
// Threads: different tensors from any threads; one tensor may be read by many threads, but written (in-place functions,
// set_requires_grad, set_data, backward) by one at a time.
// Blocks: only item, to_vector, read, to_string, from DLPack and synchronize wait for a device.
// Errors: tenon::Error. `where` arguments are filled in by the compiler.
#pragma once
#include <tenon/core/dtype.hpp>
#include <tenon/core/error.hpp>
#include <tenon/core/random.hpp>
#include <tenon/core/runtime.hpp>
#include <tenon/core/shape.hpp>

#include <atomic>
#include <initializer_list>
#include <iosfwd>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace tenon {
class Tensor;
namespace detail {
struct TensorImpl;
struct Counted { std::atomic<uint32_t> refs{1}; };
void destroy(TensorImpl* impl);
struct Adopt {};
}  // namespace detail

class Tensor {
 public:
  Tensor() : impl_(nullptr) {}
  Tensor(const Tensor& o) : impl_(o.impl_) { retain(); }
  Tensor(Tensor&& o) noexcept : impl_(std::exchange(o.impl_, nullptr)) {}
  Tensor& operator=(const Tensor& o) { Tensor copy(o); std::swap(impl_, copy.impl_); return *this; }
  Tensor& operator=(Tensor&& o) noexcept { std::swap(impl_, o.impl_); return *this; }
  ~Tensor() { release(); }

  // ---- what it is
  bool defined() const { return impl_ != nullptr; }
  explicit operator bool() const { return defined(); }
  std::span<const int64_t> dims() const;    // valid as long as the tensor
  std::span<const int64_t> strides() const;  // in elements
  Shape shape() const { return Shape(dims()); }
  uint32_t rank() const { return static_cast<uint32_t>(dims().size()); }
  int64_t dim(int64_t axis, Where where = here()) const;  // negative counts from the end
  int64_t numel() const;
  DType dtype() const;
  Device device() const;
  bool is_contiguous() const;      // row-major without gaps
  tn_tensor* handle() const;       // for the C functions; borrowed
  uint32_t type_id() const;
  uint64_t version() const;        // writes to the memory so far; all aliases share it
  // The host address of the first element after this tensor's work is done, NULL for memory the host cannot see and for packed
  // tensors. Writing through it is not seen by version().
  void* host_data() const;
  bool is(const Tensor& o) const { return impl_ == o.impl_; }
  std::string to_string() const;   // values, cut in the middle when there are many, then "f32[2,2] cpu:0"
  std::string type_text() const;   // "f32[2,2]"
  bool is_packed() const;          // from prepack(): a right operand of matmul, and nothing else

  // ---- getting values out (blocks)
  template <class T> T item(Where where = here()) const { T v; read_converted(&v, dtype_of<T>(), 1, where); return v; }
  template <class T> std::vector<T> to_vector(Where where = here()) const {
    static_assert(!std::is_same_v<T, bool>, "std::vector<bool> has no elements to write to: ask for uint8_t");
    std::vector<T> v(static_cast<size_t>(numel()));
    read_converted(v.data(), dtype_of<T>(), static_cast<int64_t>(v.size()), where);
    return v;
  }
  void read(void* out, uint64_t bytes, Where where = here()) const;         // this element type, row-major
  void write(const void* data, uint64_t bytes, Where where = here());       // in place, likewise; data is copied

  // ---- moving and converting (differentiable)
  Tensor to(Device d, Where where = here()) const;    // itself when already there
  Tensor to(DType t, Where where = here()) const;
  Tensor contiguous(Where where = here()) const;      // itself when row-major without gaps
  Tensor clone(Where where = here()) const;
  Tensor channels_last(Where where = here()) const;   // same dims [N,C,H,W], memory in N,H,W,C order

  // ---- views (differentiable; the memory is shared, but for reshape where strides allow no view)
  Tensor reshape(const Shape& dims, Where where = here()) const;  // one dim may be -1
  Tensor permute(std::initializer_list<int64_t> perm, Where where = here()) const;
  Tensor permute(std::span<const int64_t> perm, Where where = here()) const;
  Tensor transpose(int64_t a, int64_t b, Where where = here()) const;
  Tensor t(Where where = here()) const;                            // swaps the last two axes
  Tensor flatten(int64_t first = 0, int64_t last = -1, Where where = here()) const;
  Tensor expand(const Shape& dims, Where where = here()) const;    // NumPy broadcast_to; -1 keeps a dim
  Tensor squeeze(Where where = here()) const;                      // all axes of size 1
  Tensor squeeze(int64_t axis, Where where = here()) const;
  Tensor unsqueeze(int64_t axis, Where where = here()) const;
  Tensor flip(std::initializer_list<int64_t> axes, Where where = here()) const;
  Tensor slice(std::initializer_list<Slice> ranges, Where where = here()) const;  // first axes; the rest whole
  Tensor slice(std::span<const Slice> ranges, Where where = here()) const;
  Tensor narrow(int64_t axis, int64_t start, int64_t length, Where where = here()) const;
  Tensor select(int64_t axis, int64_t index, Where where = here()) const;         // the axis goes
  Tensor operator[](int64_t index) const { return select(0, index); }

  // ---- in place: writes the memory that every view of it sees, and raises version()
  Tensor& add_(const Tensor& b, Where where = here());
  Tensor& add_(double b, Where where = here());
  Tensor& sub_(const Tensor& b, Where where = here());
  Tensor& mul_(const Tensor& b, Where where = here());
  Tensor& mul_(double b, Where where = here());
  Tensor& div_(const Tensor& b, Where where = here());
  Tensor& copy_(const Tensor& source, Where where = here());  // broadcasts and converts
  Tensor& fill_(double value, Where where = here());
  Tensor& zero_(Where where = here()) { return fill_(0, where); }

  // ---- gradients (autograd/autograd.hpp says how)
  bool requires_grad() const;
  Tensor& set_requires_grad(bool on, Where where = here());  // leaves only
  bool is_leaf() const;                                     // no op made it, as far as gradients are concerned
  Tensor grad() const;                                      // what backward() summed so far; undefined before
  void set_grad(const Tensor& g, Where where = here());     // undefined clears
  void backward(const Tensor& gradient = Tensor(), bool retain_graph = false, Where where = here()) const;
  Tensor detach() const;                                    // same memory, no history
  // Takes over memory, type and device of `data` and keeps identity: optimizers and modules go on seeing this tensor.
  void set_data(const Tensor& data, Where where = here());

  // ---- for code that builds on the handle
  Tensor(detail::Adopt, detail::TensorImpl* impl) : impl_(impl) {}  // takes one count
  detail::TensorImpl* impl() const { return impl_; }
  detail::TensorImpl* leak() { return std::exchange(impl_, nullptr); }  // hands out the count

 private:
  void read_converted(void* out, DType as, int64_t n, Where where) const;
  void retain() const {
    if (impl_ != nullptr) counted()->refs.fetch_add(1, std::memory_order_relaxed);
  }
  void release() {
    if (impl_ == nullptr) return;
    std::atomic<uint32_t>& refs = counted()->refs;
    // A sole owner needs no locked instruction: nobody else can raise the count.
    if (refs.load(std::memory_order_acquire) == 1 || refs.fetch_sub(1, std::memory_order_acq_rel) == 1) detail::destroy(impl_);
  }
  detail::Counted* counted() const { return reinterpret_cast<detail::Counted*>(impl_); }
  detail::TensorImpl* impl_;
};

std::ostream& operator<<(std::ostream& out, const Tensor& t);

// ---- making tensors
struct TensorOptions {
  DType dtype = DType::f32;
  Device device = {};             // none: default_device()
  bool requires_grad = false;
  Generator* generator = nullptr;  // rand, randn; NULL: default_generator()
};
Tensor empty(const Shape& dims, TensorOptions o = {}, Where where = here());  // unset memory
Tensor full(const Shape& dims, double value, TensorOptions o = {}, Where where = here());
Tensor zeros(const Shape& dims, TensorOptions o = {}, Where where = here());
Tensor ones(const Shape& dims, TensorOptions o = {}, Where where = here());
Tensor zeros_like(const Tensor& t, Where where = here());
Tensor ones_like(const Tensor& t, Where where = here());
Tensor full_like(const Tensor& t, double value, Where where = here());
Tensor arange(double start, double stop, double step = 1, TensorOptions o = {}, Where where = here());  // start + i * step
Tensor eye(int64_t n, TensorOptions o = {}, Where where = here());
Tensor rand(const Shape& dims, TensorOptions o = {}, Where where = here());   // [0, 1)
Tensor randn(const Shape& dims, TensorOptions o = {}, Where where = here());  // mean 0, variance 1
// Copies n elements of type `t` from host memory, row-major.
Tensor from_host(const void* data, DType t, const Shape& dims, TensorOptions o = {}, Where where = here());
// Uses host memory in place, on the host's device. `drop(ctx, data)` is called once when the last use is over, from any
// thread; NULL: the caller keeps the memory alive. strides in elements, none = row-major.
Tensor from_blob(void* data, const Shape& dims, DType t, void (*drop)(void* ctx, void* data) = nullptr, void* ctx = nullptr,
                 const Shape& strides = {}, Where where = here());

template <class T>
Tensor from_vector(const std::vector<T>& v, const Shape& dims, TensorOptions o = {}, Where where = here()) {
  return detail_from_list(v.data(), dtype_of<T>(), static_cast<int64_t>(v.size()), dims, o, where);
}
Tensor detail_from_list(const void* data, DType t, int64_t n, const Shape& dims, const TensorOptions& o, Where where);

// Literals: tensor(3.f), tensor({1.f, 2.f}), tensor({{1, 2}, {3, 4}}). The element type is the C++ type.
template <class T> requires std::is_arithmetic_v<T>
Tensor tensor(T v, TensorOptions o = {}, Where where = here()) { return detail_from_list(&v, dtype_of<T>(), 1, {}, o, where); }
template <class T> requires std::is_arithmetic_v<T>
Tensor tensor(std::initializer_list<T> v, TensorOptions o = {}, Where where = here()) {
  return detail_from_list(v.begin(), dtype_of<T>(), static_cast<int64_t>(v.size()), {static_cast<int64_t>(v.size())}, o, where);
}
template <class T> requires std::is_arithmetic_v<T>
Tensor tensor(std::initializer_list<std::initializer_list<T>> rows, TensorOptions o = {}, Where where = here()) {
  std::vector<T> flat;
  const int64_t n = static_cast<int64_t>(rows.size()), m = n ? static_cast<int64_t>(rows.begin()->size()) : 0;
  for (const auto& row : rows) flat.insert(flat.end(), row.begin(), row.end());
  return detail_from_list(flat.data(), dtype_of<T>(), static_cast<int64_t>(flat.size()), {n, m}, o, where);
}

// ---- DLPack 1.x, for host memory (TN-DEVICE-101 elsewhere)
// The memory is shared. `managed` is a DLManagedTensorVersioned*, moved in both directions.
void* to_dlpack(const Tensor& t, Where where = here());
Tensor from_dlpack(void* managed, Where where = here());
// The same for DLManagedTensor*, which older libraries speak.
void* to_dlpack_unversioned(const Tensor& t, Where where = here());
Tensor from_dlpack_unversioned(void* managed, Where where = here());

// How many tensors this process holds now (handles sharing one count once). For leak tests.
int64_t live_tensors();

}  // namespace tenon
