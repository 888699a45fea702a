// ops/gpu/library/matmul_text.cpp - direct, tiled, and the adding up of parts.
#include <algorithm>

#include "ops/gpu/library/matmul_common.h"


namespace tenon::gpu {
namespace {

uint64_t count(const Piece& p, int begin, int end) {
  uint64_t n = 1;
  for (int d = begin; d < end; ++d) n *= static_cast<uint64_t>(p.size[d]);
  return n;
}

tn_status launch(const Caps& caps, StepBuilder* step, uint64_t threads, tn_diag* diag) {
  const uint64_t groups = (threads + step->spec.group[0] - 1) / step->spec.group[0];
  if (spread_groups(step, caps, groups)) return TN_OK;
  return refuse(diag, TN_E_UNSUPPORTED, "matmul: too many work-groups\nwhy: %llu, the device takes %llu times %llu\ntry: multiply smaller batches",
                static_cast<unsigned long long>(groups), static_cast<unsigned long long>(caps.max_groups[0]), static_cast<unsigned long long>(caps.max_groups[1]));
}

void one_row_of_threads(const Caps& caps, StepBuilder* step) {
  const uint32_t threads = std::min({64u, caps.max_threads, caps.max_group[0]});
  step->spec.group[0] = threads;
  step->spec.defines.push_back({"GROUP", std::to_string(threads)});
  step->spec.helpers = kGroupNumber;
}

// Which element, batch and slice a thread has; columns change fastest.
const char kElement[] =
    "  const tn_uint number = TN_GROUP_NUMBER * GROUP + TN_LID(x);\n"
    "  if (number < n_all) {\n"
    "  const tn_uint col = number % n_n, rows = number / n_n, row = rows % n_m, batches = rows / n_m, batch = batches % n_batch;\n";

}  // namespace

tn_status matmul_direct_step(const Caps& caps, const MatmulShape& s, const Piece& p, Step* out, tn_diag* diag) {
  StepBuilder step("tn_matmul_direct");
  bind_product(&step, s, p, true);
  const uint64_t threads = count(p, 0, s.k_axis()) * s.slices;
  step.scalar_u32("n_all", static_cast<uint32_t>(threads));
  one_row_of_threads(caps, &step);
  const Access &a = s.space.access[0], &b = s.space.access[1];
  const std::string t = held_type(s);
  std::string& body = step.spec.body;
  body = kElement;
  body += "  const tn_uint slice = batches / n_batch;\n" + batch_text(s, "batch", true);
  body += "  at_a += row * a_m; at_b += col * b_n;\n";
  body += "  tn_uint k = slice * slice_k;\n  const tn_uint stop = k + slice_k < n_k ? k + slice_k : n_k;\n";
  // Runs of 128 terms are added up on their own, so that rounding errors grow with the number of runs.
  body += "  " + t + " acc = " + held_zero(s) + ";\n  while (k < stop) {\n    const tn_uint end = stop - k > 128u ? k + 128u : stop;\n    " + t + " run = " + held_zero(s) + ";\n";
  body += "    for (; k < end; k++) {\n      const " + t + " left = " + held_load(s, a, "at_a + k * a_k") + ", right = " + held_load(s, b, "at_b + k * b_k") + ";\n";
  body += "      run = " + mad_text(s, "left", "right", "run") + ";\n    }\n    acc += run;\n  }\n";
  body += finish_text(&step, s, "acc", "row", "col", "slice") + "  }\n";
  if (tn_status status = launch(caps, &step, threads, diag); status != TN_OK) return status;
  *out = step.finish();
  return TN_OK;
}

tn_status matmul_finish_step(const Caps& caps, const MatmulShape& s, const Piece& p, Reach part, uint32_t parts, Step* out, tn_diag* diag) {
  StepBuilder step("tn_matmul_finish");
  if (parts > 0) step.buffer("part", s.held, false, part);
  bind_product(&step, s, p, false);
  const uint64_t threads = count(p, 0, s.k_axis());
  step.scalar_u32("n_all", static_cast<uint32_t>(threads));
  step.scalar_u32("n_parts", parts);
  one_row_of_threads(caps, &step);
  std::string& body = step.spec.body;
  body = kElement + batch_text(s, "batch", false);
  body += "  " + held_type(s) + " acc = " + held_zero(s) + ";\n";
  if (parts > 0) body += "  for (tn_uint k = 0u; k < n_parts; k++) acc += part[part_start + number + k * n_all];\n";
  body += finish_text(&step, s, "acc", "row", "col", "0u") + "  }\n";
  if (tn_status status = launch(caps, &step, threads, diag); status != TN_OK) return status;
  *out = step.finish();
  return TN_OK;
}

uint64_t tile_local_bytes(const Tile& t, uint8_t held) { return uint64_t{t.bk} * (t.bm + 1 + t.bn + 1) * element_bytes(held); }

namespace {

// Which row and depth of the tile the e-th element to load is: neighbouring threads take neighbours in memory.
std::string load_tile(const MatmulShape& s, bool left, bool depth_fast) {
  const Access& x = s.space.access[left ? 0 : 1];
  const std::string lines = left ? "BM" : "BN", line_stride = x.name + (left ? "_m" : "_n"), limit = left ? "n_m" : "n_n", first = left ? "row0" : "col0";
  std::string out = "    for (tn_uint e = thread; e < " + lines + " * BK; e += THREADS) {\n";
  out += depth_fast ? "      const tn_uint line = e / BK, depth = e % BK;\n" : "      const tn_uint line = e % " + lines + ", depth = e / " + lines + ";\n";
  out += "      " + held_type(s) + " x = " + held_zero(s) + ";\n";
  out += "      if (" + first + " + line < " + limit + " && k0 + depth < stop) x = " +
         held_load(s, x, "at_" + x.name + " + (" + first + " + line) * " + line_stride + " + (k0 + depth) * " + x.name + "_k") + ";\n";
  return out + "      tile_" + x.name + "[depth * (" + lines + " + 1) + line] = x;\n    }\n";
}

}  // namespace

Step matmul_tiled_step(const MatmulShape& s, const Piece& p, const Tile& t) {
  StepBuilder step("tn_matmul_tiled");
  bind_product(&step, s, p, true);
  KernelSpec& spec = step.spec;
  spec.group[0] = t.bn / t.tn, spec.group[1] = t.bm / t.tm;
  for (auto [name, value] : {std::pair{"BM", t.bm}, {"BN", t.bn}, {"BK", t.bk}, {"TM", t.tm}, {"TN", t.tn}, {"ROWS", t.bm / t.tm}, {"COLS", t.bn / t.tn}, {"THREADS", t.threads()}})
    spec.defines.push_back({name, std::to_string(value)});
  spec.locals = {{"tile_a", s.held, "BK * (BM + 1)"}, {"tile_b", s.held, "BK * (BN + 1)"}};
  const std::string type = held_type(s);
  const Access &a = s.space.access[0], &b = s.space.access[1];
  std::string& body = spec.body;
  body = "  const tn_uint tx = TN_LID(x), ty = TN_LID(y), thread = ty * COLS + tx;\n"
         "  const tn_uint row0 = TN_WG(y) * BM, col0 = TN_WG(x) * BN, batch = TN_WG(z) % n_batch, slice = TN_WG(z) / n_batch;\n";
  body += batch_text(s, "batch", true);
  body += "  const tn_uint first = slice * slice_k, stop = first + slice_k < n_k ? first + slice_k : n_k;\n";
  body += "  " + type + " acc[TM * TN];\n  TN_UNROLL for (int i = 0; i < TM * TN; i++) acc[i] = " + held_zero(s) + ";\n";
  body += "  for (tn_uint k0 = first; k0 < stop; k0 += BK) {\n";
  body += load_tile(s, true, a.stride[s.k_axis()] == 1) + load_tile(s, false, b.stride[s.k_axis()] == 1);
  body += "    TN_BARRIER();\n    for (int depth = 0; depth < BK; depth++) {\n      " + type + " left[TM]; " + type + " right[TN];\n";
  body += "      TN_UNROLL for (int i = 0; i < TM; i++) left[i] = tile_a[TN_U32(depth) * (BM + 1) + ty + TN_U32(i) * ROWS];\n";
  body += "      TN_UNROLL for (int j = 0; j < TN; j++) right[j] = tile_b[TN_U32(depth) * (BN + 1) + tx + TN_U32(j) * COLS];\n";
  body += "      TN_UNROLL for (int i = 0; i < TM; i++) { TN_UNROLL for (int j = 0; j < TN; j++) acc[i * TN + j] = " + mad_text(s, "left[i]", "right[j]", "acc[i * TN + j]") + "; }\n";
  body += "    }\n    TN_BARRIER();\n  }\n";
  body += "  for (int i = 0; i < TM; i++) {\n    for (int j = 0; j < TN; j++) {\n    const tn_uint row = row0 + ty + TN_U32(i) * ROWS, col = col0 + tx + TN_U32(j) * COLS;\n    if (row < n_m && col < n_n) {\n";
  body += "    const " + type + " sum_ = acc[i * TN + j];\n" + finish_text(&step, s, "sum_", "row", "col", "slice") + "    }\n    }\n  }\n";
  auto tiles = [](int64_t n, uint32_t size) { return (static_cast<uint64_t>(n) + size - 1) / size; };
  step.groups(tiles(p.size[s.n_axis()], t.bn), tiles(p.size[s.m_axis()], t.bm), count(p, 0, s.batches) * s.slices);
  return step.finish();
}

}  // namespace tenon::gpu
