// DLPack 1.x for host memory: the published structures, declared here.
#include "framework/core/state.h"

namespace tenon {
using namespace detail;
namespace {

struct DlDevice { int32_t type, id; };
struct DlType { uint8_t code, bits; uint16_t lanes; };
struct DlTensor { void* data; DlDevice device; int32_t ndim; DlType dtype; int64_t* shape; int64_t* strides; uint64_t byte_offset; };
struct DlManaged { DlTensor tensor; void* ctx; void (*deleter)(DlManaged*); };
struct DlVersion { uint32_t major, minor; };
struct DlManagedVersioned { DlVersion version; void* ctx; void (*deleter)(DlManagedVersioned*); uint64_t flags; DlTensor tensor; };
constexpr int32_t kDlCpu = 1;
constexpr uint64_t kReadOnly = 1;
enum : uint8_t { kInt = 0, kUint = 1, kFloat = 2, kBfloat = 4, kBool = 6 };

DlType to_dl(DType t) {
  const uint8_t bits = static_cast<uint8_t>(8 * size_bytes(t));
  switch (t) {
    case DType::boolean: return {kBool, 8, 1};
    case DType::u8: case DType::u16: case DType::u32: case DType::u64: return {kUint, bits, 1};
    case DType::i8: case DType::i16: case DType::i32: case DType::i64: return {kInt, bits, 1};
    case DType::bf16: return {kBfloat, 16, 1};
    default: return {kFloat, bits, 1};
  }
}

bool from_dl(DlType d, DType& out) {
  if (d.lanes != 1) return false;
  static constexpr DType kAll[] = {DType::boolean, DType::u8, DType::u16, DType::u32, DType::u64, DType::i8, DType::i16,
                                   DType::i32, DType::i64, DType::f16, DType::bf16, DType::f32, DType::f64};
  for (DType t : kAll) {
    const DlType k = to_dl(t);
    if (k.code == d.code && k.bits == d.bits) return out = t, true;
  }
  return false;
}

// Keeps the tensor alive, and holds the arrays that the structure points at.
template <class Managed>
struct Exported {
  Managed managed{};
  Tensor keep;
  int64_t dims[TN_MAX_RANK], strides[TN_MAX_RANK];
  static void drop(Managed* m) { delete static_cast<Exported*>(m->ctx); }
};

template <class Managed>
Managed* export_tensor(const Tensor& t, Where where) {
  require_defined(t, "to_dlpack", "t", where);
  if (t.is_packed())
    raise(TN_E_UNSUPPORTED, error::id(error::kOp, 130), where, "to_dlpack", "a packed tensor cannot be read, written, copied or viewed",
          t.type_text() + ": only its own kernels know the order of its elements", "keep the tensor it was packed from, and export that");
  void* data = t.host_data();
  if (data == nullptr && t.numel() != 0)
    raise(TN_E_UNSUPPORTED, error::id(error::kDevice, 101), where, "to_dlpack", "the memory is not visible to the host",
          t.type_text() + " lies on " + t.device().name(), "move it first: to_dlpack(t.to(device(\"cpu:0\")))");
  auto* e = new Exported<Managed>;
  e->keep = t;
  const tn_type& type = meta(t.impl());
  std::copy(type.dim, type.dim + type.rank, e->dims);
  std::copy(type.stride, type.stride + type.rank, e->strides);
  e->managed.ctx = e;
  e->managed.deleter = &Exported<Managed>::drop;
  e->managed.tensor = {data, {kDlCpu, 0}, type.rank, to_dl(t.dtype()), e->dims, e->strides, 0};
  return &e->managed;
}

template <class Managed>
void drop_import(void* ctx, void*) {
  Managed* m = static_cast<Managed*>(ctx);
  if (m->deleter) m->deleter(m);
}

template <class Managed>
Tensor import_tensor(Managed* m, Where where) {
  const DlTensor& t = m->tensor;
  DType dtype;
  if (t.device.type != kDlCpu)
    raise(TN_E_UNSUPPORTED, error::id(error::kDevice, 101), where, "from_dlpack", "the memory is not visible to the host",
          format("DLPack device type %d, only 1 (CPU) is taken", t.device.type), "move it to the CPU in the library that made it");
  if (!from_dl(t.dtype, dtype))
    raise(TN_E_DTYPE, error::id(error::kDtype, 102), where, "from_dlpack", "no element type for this DLPack type",
          format("code %u, %u bits, %u lanes", t.dtype.code, t.dtype.bits, t.dtype.lanes), "convert it in the library that made it");
  if (t.ndim < 0 || t.ndim > TN_MAX_RANK)
    raise(TN_E_SHAPE, error::id(error::kShape, 101), where, "from_dlpack", "too many axes", format("%d axes, at most %d", t.ndim, TN_MAX_RANK),
          "merge axes in the library that made it");
  const Shape dims(std::span<const int64_t>(t.shape, static_cast<size_t>(t.ndim)));
  const Shape strides = t.strides ? Shape(std::span<const int64_t>(t.strides, static_cast<size_t>(t.ndim))) : Shape();
  return from_blob(static_cast<char*>(t.data) + t.byte_offset, dims, dtype, &drop_import<Managed>, m, strides, where);
}

}  // namespace

void* to_dlpack(const Tensor& t, Where where) {
  auto* m = export_tensor<DlManagedVersioned>(t, where);
  m->version = {1, 0};
  return m;
}
void* to_dlpack_unversioned(const Tensor& t, Where where) { return export_tensor<DlManaged>(t, where); }

Tensor from_dlpack(void* managed, Where where) {
  auto* m = static_cast<DlManagedVersioned*>(managed);
  if (m->version.major != 1)
    raise(TN_E_ABI, error::id(error::kAbi, 101), where, "from_dlpack", "a DLPack of another major version",
          format("version %u.%u, 1.x is understood", m->version.major, m->version.minor), "export with DLPack 1.x");
  if (m->flags & kReadOnly) {  // tensors here may be written in place: a copy keeps the promise
    const Tensor view = import_tensor(m, where);
    return view.clone(where);
  }
  return import_tensor(m, where);
}
Tensor from_dlpack_unversioned(void* managed, Where where) { return import_tensor(static_cast<DlManaged*>(managed), where); }

}  // namespace tenon
