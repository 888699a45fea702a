// backends/onednn/plugin.cpp - the cold record, the table, and the list of kernels.
//
// A kernel pack: no devices of its own, kernels for devices of kind CPU. It is not unloadable: libgomp, which oneDNN
// links, leaves threads behind that would run unmapped code after dlclose.
#include <tenon/ops.h>
#include <tenon/plugin.h>

#include <exception>
#include <new>

#include "backends/onednn/conv2d.h"
#include "backends/onednn/instance.h"
#include "backends/onednn/matmul.h"
#include "backends/onednn/matmul_packed.h"
#include "backends/onednn/norm.h"
#include "backends/onednn/operand.h"
#include "backends/onednn/pool2d.h"

namespace tenon::onednn {
namespace {

TN_COLD({sizeof(tn_cold), 1, TN_ABI_CURRENT, TN_ABI_CURRENT, "dev.tenon.onednn", "0.1.0", TENON_TARGET, {0, 0, 0, 0},
         TN_COLD_PACK_ONLY, 0, {""}});

constexpr uint64_t bit(uint32_t dtype) { return uint64_t{1} << dtype; }
constexpr uint64_t kFloat = bit(TN_F32) | bit(TN_BF16);

constexpr tn_constraint on_cpu() { return {0, TN_NEED_DEVICE_KIND, TN_KIND_CPU, 0, 0, 0}; }
constexpr tn_constraint types(uint16_t operand, uint64_t mask) { return {operand, TN_NEED_DTYPE, 0, mask, 0, 0}; }
constexpr tn_constraint ranks(uint16_t operand, int64_t lo, int64_t hi) {
  return {operand, TN_NEED_RANK, 0, 0, lo, hi};
}

constexpr tn_constraint kMatmulNeeds[] = {on_cpu(), types(0, kFloat | bit(TN_U8) | bit(TN_I8)),
                                          types(1, kFloat | bit(TN_I8)), ranks(0, 2, TN_MAX_RANK),
                                          ranks(1, 2, TN_MAX_RANK)};
template <uint64_t a, uint64_t b>
constexpr tn_constraint kStoredNeeds[] = {on_cpu(), types(0, bit(a)), types(1, bit(b)), ranks(0, 2, TN_MAX_RANK), ranks(1, 2, 2)};
constexpr tn_constraint kLinearNeeds[] = {on_cpu(), types(0, kFloat), types(1, kFloat), ranks(0, 1, TN_MAX_RANK - 2)};
constexpr tn_constraint kConvNeeds[] = {on_cpu(), types(0, kFloat), types(1, kFloat), ranks(0, 4, 4), ranks(1, 4, 4)};
constexpr tn_constraint kPoolNeeds[] = {on_cpu(), types(0, kFloat), ranks(0, 4, 4)};
constexpr tn_constraint kNormNeeds[] = {on_cpu(), types(0, bit(TN_F32)), ranks(0, 1, TN_MAX_RANK)};

// What a row's constraints refuse, its supports() refuses too, whoever asks. Its own words come first: they say more.
template <const auto& needs, auto supports>
tn_status within(tn_instance* self, const tn_device_ref* ref, const tn_op* op, tn_support* out, tn_diag* diag) {
  if (const tn_status s = supports(self, ref, op, out, diag)) return s;
  for (const tn_constraint& c : needs) {
    if (c.kind == TN_NEED_DEVICE_KIND || c.operand >= op->n_in || op->type[c.operand].dtype == 0) continue;
    const tn_type& t = op->type[c.operand];
    if (c.kind == TN_NEED_DTYPE && !(c.mask >> t.dtype & 1)) return refuse(diag, "a constraint of the kernel names other element types", t.dtype);
    if (c.kind == TN_NEED_RANK && (t.rank < c.lo || t.rank > c.hi)) return refuse(diag, "a constraint of the kernel names other ranks", t.rank);
  }
  return TN_OK;
}

template <BuildFn build, uint32_t row>
tn_status prepare(tn_instance* self, const tn_device_ref*, const tn_op* op, const tn_kernel_plan** out, tn_diag* diag) {
  return prepare_plan(self, *op, row, build, out, diag);
}

template <BuildFn build, uint32_t row, const auto& needs, auto supports>
constexpr tn_kernel_info kernel(const char* name, uint64_t op_id, uint32_t flags = TN_KERNEL_DETERMINISTIC, const tn_ext* next = nullptr) {
  return {sizeof(tn_kernel_info), flags, next, name, op_id, 1, 1, TN_TIER_NATIVE, needs, std::size(needs), 0,
          within<needs, supports>, prepare<build, row>, retire_plan};
}

constexpr uint32_t kFlushes = TN_KERNEL_DETERMINISTIC | TN_KERNEL_FTZ;  // in bf16

const tn_kernel_info kKernels[] = {
    kernel<matmul_build, 0, kMatmulNeeds, matmul_supports>("onednn.matmul", TN_OPID_MATMUL, kFlushes),
    kernel<linear_build, 1, kLinearNeeds, linear_supports>("onednn.linear", TN_OPID_LINEAR, kFlushes),
    kernel<conv2d_build, 2, kConvNeeds, conv2d_supports>("onednn.conv2d", TN_OPID_CONV2D, kFlushes),
    kernel<conv2d_input_grad_build, 3, kConvNeeds, conv2d_input_grad_supports>("onednn.conv2d_input_grad", TN_OPID_CONV2D_INPUT_GRAD, kFlushes),
    kernel<conv2d_weight_grad_build, 4, kConvNeeds, conv2d_weight_grad_supports>("onednn.conv2d_weight_grad", TN_OPID_CONV2D_WEIGHT_GRAD, kFlushes),
    kernel<avg_pool2d_build, 5, kPoolNeeds, avg_pool2d_supports>("onednn.avg_pool2d", TN_OPID_AVG_POOL2D, kFlushes),
    kernel<avg_pool2d_grad_build, 6, kPoolNeeds, avg_pool2d_grad_supports>("onednn.avg_pool2d_grad", TN_OPID_AVG_POOL2D_GRAD, kFlushes),
    kernel<layer_norm_build, 7, kNormNeeds, layer_norm_supports>("onednn.layer_norm", TN_OPID_LAYER_NORM),
    kernel<batch_norm_build, 8, kNormNeeds, batch_norm_supports>("onednn.batch_norm", TN_OPID_BATCH_NORM),
    kernel<batch_norm_grad_build, 9, kNormNeeds, batch_norm_grad_supports>("onednn.batch_norm_grad", TN_OPID_BATCH_NORM_GRAD),
    kernel<batch_norm_infer_build, 10, kNormNeeds, batch_norm_infer_supports>("onednn.batch_norm_infer", TN_OPID_BATCH_NORM_INFER),
    kernel<matmul_packed_build, 11, kStoredNeeds<TN_F32, TN_F32>, matmul_packed_supports>("onednn.matmul.f32_packed", TN_OPID_MATMUL, TN_KERNEL_DETERMINISTIC, &kPackedF32.ext),
    kernel<matmul_packed_build, 12, kStoredNeeds<TN_BF16, TN_BF16>, matmul_packed_supports>("onednn.matmul.bf16_packed", TN_OPID_MATMUL, kFlushes, &kPackedBf16.ext),
    kernel<matmul_packed_build, 13, kStoredNeeds<TN_U8, TN_I8>, matmul_packed_supports>("onednn.matmul.u8s8_packed", TN_OPID_MATMUL, TN_KERNEL_DETERMINISTIC, &kPackedI8.ext),
};

// Rates of one thread, measured on processors of each class; only ratios between candidates matter.
void find_abilities(tn_instance& self) {
  using Isa = dnnl::cpu_isa;
  const Isa isa = dnnl::get_effective_cpu_isa();
  const bool amx = isa == Isa::avx512_core_amx;
  const bool avx512_bf16 = amx || isa == Isa::avx512_core_bf16;
  const bool vnni = avx512_bf16 || isa == Isa::avx512_core_vnni;
  const bool avx512 = vnni || isa == Isa::avx512_core;
  const bool avx2 = avx512 || isa == Isa::avx2 || isa == Isa::avx2_vnni;
  self.f32_rate = avx512 ? 140 : avx2 ? 60 : 10;
  self.bf16 = avx512;
  self.bf16_rate = amx ? 700 : avx512_bf16 ? 250 : 60;
  self.int8 = vnni || isa == Isa::avx2_vnni;
  self.int8_rate = amx ? 1200 : 400;
}

tn_status open(const tn_host* host, tn_instance** out, tn_diag* diag) {
  try {
    auto self = std::make_unique<tn_instance>();
    self->host = host;
    const uint32_t threads = host->threads != nullptr ? host->threads(host->ctx) : 1;
    self->threads = threads > 1 && host->parallel != nullptr ? static_cast<int>(threads) : 1;
    find_abilities(*self);
    *out = self.release();
    return TN_OK;
  } catch (const std::bad_alloc&) {
    return fail(diag, TN_E_OOM, kLibraryFailed, "oneDNN could not start\nwhy: no memory\ntry: %s", "free memory");
  } catch (const std::exception& e) {
    return fail(diag, TN_E_UNAVAILABLE, kLibraryFailed, "oneDNN could not start\nwhy: %s\ntry: %s", e.what(),
                "reinstall libdnnl2, or remove this plugin");
  }
}

tn_status quiesce(tn_instance* self, uint64_t, uint32_t* out_live, tn_diag*) {
  const std::lock_guard lock(self->mutex);
  *out_live = self->live_plans;
  return TN_OK;
}

void close(tn_instance* self) { delete self; }

tn_status kernels(tn_instance*, const tn_kernel_info** out, uint32_t* out_stride, uint32_t* out_n, tn_diag*) {
  *out = kKernels;
  *out_stride = sizeof(tn_kernel_info);
  *out_n = sizeof kKernels / sizeof kKernels[0];
  return TN_OK;
}

tn_plugin make_table() {
  tn_plugin t{};
  t.size = sizeof t;
  t.abi = TN_ABI_CURRENT;
  t.open = open;
  t.quiesce = quiesce;
  t.close = close;
  t.kernels = kernels;
  return t;
}

const tn_plugin kTable = make_table();

}  // namespace
}  // namespace tenon::onednn

extern "C" const tn_plugin* tn_plugin_query(uint32_t abi, const tn_host*) {
  return abi == TN_ABI_CURRENT ? &tenon::onednn::kTable : nullptr;
}
