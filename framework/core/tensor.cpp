// What a tensor is, and its elements going out and coming in.
#include <tenon/core/tensor.hpp>

#include "framework/core/state.h"

#include <ostream>

namespace tenon {
using namespace detail;

std::span<const int64_t> Tensor::dims() const {
  require_defined(*this, "dims", "this", Where{"", 0});
  const tn_type& t = meta(impl_);
  return {t.dim, t.rank};
}
std::span<const int64_t> Tensor::strides() const {
  const tn_type& t = meta(impl_);
  return {t.stride, t.rank};
}
int64_t Tensor::dim(int64_t axis, Where where) const {
  const auto d = dims();
  const int64_t rank = static_cast<int64_t>(d.size()), a = axis < 0 ? axis + rank : axis;
  if (a < 0 || a >= rank)
    raise(TN_E_SHAPE, error::id(error::kShape, 102), where, "dim", "no such axis",
          format("axis %lld of %s, which has %lld axes", static_cast<long long>(axis), type_text().c_str(), static_cast<long long>(rank)),
          "use an axis from -rank to rank - 1");
  return d[static_cast<size_t>(a)];
}
int64_t Tensor::numel() const {
  int64_t n = 1;
  for (int64_t d : dims()) n *= d;
  return n;
}
DType Tensor::dtype() const {
  require_defined(*this, "dtype", "this", Where{"", 0});
  return detail::dtype(thread(), impl_);
}
Device Tensor::device() const { return impl_ ? device_of(impl_->device) : Device{}; }
bool Tensor::is_contiguous() const { return is_row_major(meta(impl_)); }
tn_tensor* Tensor::handle() const { return impl_ ? impl_->handle : nullptr; }
uint32_t Tensor::type_id() const { return impl_->type; }
std::string Tensor::type_text() const {
  if (!impl_) return "undefined";
  const char* layout = is_packed() ? tn_layout_name(impl_->device->runtime->handle, meta(impl_).layout) : nullptr;
  return text(meta(impl_)) + (layout ? std::string(" packed as ") + layout : "");
}

uint64_t Tensor::version() const {
  tn_tensor_info info{sizeof info};
  tn_tensor_inspect(impl_->handle, &info);
  return info.writes;
}

void* Tensor::host_data() const {
  tn_tensor_info info{sizeof info};
  tn_tensor_inspect(impl_->handle, &info);
  if (info.host == nullptr) return nullptr;
  tn_diag diag{sizeof diag};
  if (info.ready.value != 0) {
    const tn_status s = tn_wait(impl_->device->runtime->handle, &info.ready, 1, TN_FOREVER, &diag);
    if (s != TN_OK) raise(diag, s, here(), "host_data", impl_->device);
  }
  return info.host;
}

void Tensor::read(void* out, uint64_t bytes, Where where) const {
  require_defined(*this, "read", "this", where);
  tn_diag diag{sizeof diag};
  tn_queue* q = queue(thread(), impl_->device, where);
  const tn_status s = tn_tensor_read(q, impl_->handle, out, bytes, &diag);
  if (s != TN_OK) raise(diag, s, where, "read", impl_->device);
}

void Tensor::write(const void* data, uint64_t bytes, Where where) {
  require_defined(*this, "write", "this", where);
  tn_diag diag{sizeof diag};
  tn_queue* q = queue(thread(), impl_->device, where);
  const tn_status s = tn_tensor_write(q, impl_->handle, data, bytes, &diag);
  if (s != TN_OK) raise(diag, s, where, "write", impl_->device);
}

void Tensor::read_converted(void* out, DType as, int64_t n, Where where) const {
  require_defined(*this, "read", "this", where);
  if (numel() != n)
    raise(TN_E_SHAPE, error::id(error::kShape, 103), where, "item", "one element was asked of a tensor of more or less",
          format("%s holds %lld elements, %lld wanted", type_text().c_str(), static_cast<long long>(numel()), static_cast<long long>(n)),
          "reduce it first (mean, sum), or use to_vector");
  const Tensor source = dtype() == as ? *this : cast(detach(), as, where);
  source.read(out, static_cast<uint64_t>(n * size_bytes(as)), where);
}

Tensor Tensor::detach() const {
  if (!impl_) return {};
  tn_tensor_retain(impl_->handle);
  return adopt(new_impl(thread(), impl_->handle, impl_->device));
}

namespace {

// One element as text. Integers and bools read as i64, everything else as f64.
std::string value_text(const std::vector<double>* real, const std::vector<int64_t>* whole, size_t i) {
  return real ? format("%.6g", (*real)[i]) : format("%lld", static_cast<long long>((*whole)[i]));
}

// Rows in brackets; more than `kEdge` entries at both ends of an axis are cut.
void print_axis(std::string& out, const Shape& dims, uint32_t axis, size_t at, const std::vector<double>* real,
                const std::vector<int64_t>* whole) {
  constexpr int64_t kEdge = 3, kWhole = 8;
  if (axis == dims.size()) {
    out += value_text(real, whole, at);
    return;
  }
  size_t stride = 1;
  for (uint32_t a = axis + 1; a < dims.size(); ++a) stride *= static_cast<size_t>(dims[a]);
  out += '[';
  for (int64_t i = 0; i < dims[axis]; ++i) {
    if (dims[axis] > kWhole && i == kEdge) {
      out += ", ...";
      i = dims[axis] - kEdge;
    }
    if (i) out += axis + 1 == dims.size() ? ", " : ",\n" + std::string(axis + 1, ' ');
    print_axis(out, dims, axis + 1, at + static_cast<size_t>(i) * stride, real, whole);
  }
  out += ']';
}

}  // namespace

std::string Tensor::to_string() const {
  if (!impl_) return "undefined tensor";
  std::string out;
  if (is_float(dtype())) {
    const auto v = to_vector<double>();
    print_axis(out, shape(), 0, 0, &v, nullptr);
  } else {
    const auto v = to_vector<int64_t>();
    print_axis(out, shape(), 0, 0, nullptr, &v);
  }
  return out + "  " + type_text() + " " + impl_->device->name;
}

std::ostream& operator<<(std::ostream& out, const Tensor& t) { return out << t.to_string(); }

}  // namespace tenon
