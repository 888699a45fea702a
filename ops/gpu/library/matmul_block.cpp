// ops/gpu/library/matmul_block.cpp - the product for processors: 8 rows by two vectors held in registers.
//
// A processor's work-groups are loops and its local memory is ordinary memory, so tiles in local memory only copy. What counts
// is the vector unit: each thread keeps 8 x 2 vectors of results, and for each step of depth loads two vectors of b and
// multiplies them with 8 elements of a. Rows of b that lie far apart fall into few cache sets; then b is packed first.
#include "ops/gpu/library/matmul_common.h"

namespace tenon::gpu {
namespace {

// Vectors of f32 as each language has them: type, load of consecutive elements, one value in all lanes, a * b + c, lane l.
const char kOpenClVectors[] =
    "#define OFFSET size_t\n#define OFFSET_OF(x) ((size_t)(long)(int)(x))\n#define LANES 16\n#define VECTOR float16\n#define VECTOR_OF(x) ((float16)(x))\n#define VECTOR_LOAD(buffer, i) vload16(0, (buffer) + (i))\n"
    "#define VECTOR_STORE(buffer, i, v) vstore16(v, 0, (buffer) + (i))\n#define VECTOR_TO(array, at, v) vstore16(v, 0, (array) + (at))\n"
    "#define VECTOR_MAD(a, b, c) ((a) * (b) + (c))\n";
const char kGlslVectors[] =
    "#define OFFSET tn_uint\n#define OFFSET_OF(x) (x)\n#define LANES 4\n#define VECTOR vec4\n#define VECTOR_OF(x) vec4(x)\n#define VECTOR_LOAD(buffer, i) vec4(buffer[i], buffer[(i) + 1u], buffer[(i) + 2u], buffer[(i) + 3u])\n"
    "#define VECTOR_STORE(buffer, i, v) { const tn_uint i_ = (i); buffer[i_] = (v).x; buffer[i_ + 1u] = (v).y; buffer[i_ + 2u] = (v).z; buffer[i_ + 3u] = (v).w; }\n"
    "#define VECTOR_TO(array, at, v) { array[at] = (v).x; array[(at) + 1] = (v).y; array[(at) + 2] = (v).z; array[(at) + 3] = (v).w; }\n"
    "#define VECTOR_MAD(a, b, c) fma(a, b, c)\n";
const char kCudaVectors[] =
    "#define OFFSET tn_ulong\n#define OFFSET_OF(x) TN_U64(TN_I64(TN_I32(x)))\n#define LANES 4\n#define VECTOR float4\n#define VECTOR_LOAD(buffer, i) tn_vector((buffer)[i], (buffer)[(i) + 1u], (buffer)[(i) + 2u], (buffer)[(i) + 3u])\n"
    "#define VECTOR_STORE(buffer, i, v) { const tn_uint i_ = (i); buffer[i_] = (v).x; buffer[i_ + 1u] = (v).y; buffer[i_ + 2u] = (v).z; buffer[i_ + 3u] = (v).w; }\n"
    "#define VECTOR_TO(array, at, v) { array[at] = (v).x; array[(at) + 1] = (v).y; array[(at) + 2] = (v).z; array[(at) + 3] = (v).w; }\n"
    "#define VECTOR_OF(x) tn_vector(x, x, x, x)\n#define VECTOR_MAD(a, b, c) tn_vector_mad(a, b, c)\n"
    "TN_FN float4 tn_vector(float x, float y, float z, float w) { float4 v; v.x = x; v.y = y; v.z = z; v.w = w; return v; }\n"
    "TN_FN float4 tn_vector_mad(float4 a, float4 b, float4 c) {\n"
    "  return tn_vector(TN_MAD_F32(a.x, b.x, c.x), TN_MAD_F32(a.y, b.y, c.y), TN_MAD_F32(a.z, b.z, c.z), TN_MAD_F32(a.w, b.w, c.w));\n}\n";

const char* vectors(Dialect d) {
  return d == Dialect::OpenCl ? kOpenClVectors : d == Dialect::Glsl ? kGlslVectors : kCudaVectors;
}

uint64_t blocks(int64_t n, uint32_t size) { return (static_cast<uint64_t>(n) + size - 1) / size; }

// Blocks at the lower and right edge begin earlier, so that they are whole; what their neighbours store they do not.
std::string place_text(bool b_packed) {
  std::string out =
      "  const tn_uint row_block = TN_GID(y), col_block = TN_GID(x), batch = TN_WG(z) % n_batch, slice = TN_WG(z) / n_batch;\n"
      "  if (row_block * ROWS < n_m) {\n"
      "  const tn_uint row0 = row_block * ROWS + ROWS <= n_m ? row_block * ROWS : n_m - ROWS;\n";
  out += b_packed ? "  const tn_uint col0 = col_block * COLS;\n" : "  const tn_uint col0 = col_block * COLS + COLS <= n_n ? col_block * COLS : n_n - COLS;\n";
  return out;
}

}  // namespace

uint32_t block_columns(const Caps& caps) { return caps.dialect == Dialect::OpenCl ? 32 : 8; }

Step matmul_block_step(const Caps& caps, const MatmulShape& s, const Piece& p, bool b_packed) {
  StepBuilder step("tn_matmul_block");
  bind_product(&step, s, p, true);
  KernelSpec& spec = step.spec;
  const uint32_t threads = std::min({8u, caps.max_threads, caps.max_group[1]});
  spec.group[0] = 1, spec.group[1] = threads;
  spec.defines = {{"ROWS", std::to_string(kBlockRows)}, {"COLS", std::to_string(block_columns(caps)) + "u"}};
  spec.helpers = vectors(caps.dialect);
  const Access& y = s.space.access[2];
  const bool straight = y.dtype == TN_F32 && y.stride[s.n_axis()] == 1 && (s.to_parts || s.post == nullptr);
  std::string& body = spec.body;
  body = place_text(b_packed) + batch_text(s, "batch", true);
  body += b_packed ? "  at_b += col_block * (n_k * COLS);\n" : "  at_b += col0;\n";
  body += "  at_a += row0 * a_m;\n  const tn_uint first = slice * slice_k, stop = first + slice_k < n_k ? first + slice_k : n_k;\n";
  body += "  VECTOR acc[ROWS * 2];\n  TN_UNROLL for (int i = 0; i < ROWS * 2; i++) acc[i] = VECTOR_OF(TN_F32(0));\n";
  // Offsets as wide as addresses: they then cost no instruction of their own in the loop.
  body += "  OFFSET left_row[ROWS];\n  TN_UNROLL for (int i = 0; i < ROWS; i++) left_row[i] = OFFSET_OF(TN_U32(i) * a_m);\n";
  body += "  OFFSET left_at = at_a + first * a_k, right_at = at_b + first * b_k;\n  const OFFSET left_step = OFFSET_OF(a_k), right_step = OFFSET_OF(b_k);\n";
  body += "  for (tn_uint k = first; k < stop; k++) {\n";
  // Sums of products may be fused here and nowhere else; fma() would be a slow function where the hardware has none.
  if (caps.dialect == Dialect::OpenCl) body += "#pragma OPENCL FP_CONTRACT ON\n";
  body += "    const VECTOR right0 = VECTOR_LOAD(b, right_at), right1 = VECTOR_LOAD(b, right_at + LANES);\n";
  body += "    TN_UNROLL for (int i = 0; i < ROWS; i++) {\n      const VECTOR left = VECTOR_OF(a[left_at + left_row[i]]);\n";
  body += "      acc[i * 2] = VECTOR_MAD(left, right0, acc[i * 2]); acc[i * 2 + 1] = VECTOR_MAD(left, right1, acc[i * 2 + 1]);\n    }\n    left_at += left_step; right_at += right_step;\n  }\n";
  if (straight) {
    std::string to = "at_" + y.name + " + (row0 + TN_U32(i)) * " + y.name + "_m + col0";
    if (s.to_parts) to += " + slice * (n_batch * n_m * n_n)";
    body += "  if (row0 == row_block * ROWS && col0 == col_block * COLS && col0 + COLS <= n_n) {\n    TN_UNROLL for (int i = 0; i < ROWS; i++) {\n";
    body += "      VECTOR_STORE(" + y.name + ", " + to + ", acc[i * 2]); VECTOR_STORE(" + y.name + ", " + to + " + LANES, acc[i * 2 + 1]);\n    }\n  } else\n";
  }
  // Registers take no running index: what a loop picks out lies in memory first.
  body += "  {\n  float lane[ROWS * 2 * LANES];\n  TN_UNROLL for (int v = 0; v < ROWS * 2; v++) VECTOR_TO(lane, v * LANES, acc[v]);\n";
  body += "  for (int e = 0; e < ROWS * 2 * LANES; e++) {\n    const tn_uint row = row0 + TN_U32(e) / COLS, col = col0 + TN_U32(e) % COLS;\n";
  body += "    if (row >= row_block * ROWS && col >= col_block * COLS && col < n_n) {\n    const float sum_ = lane[e];\n";
  body += finish_text(&step, s, "sum_", "row", "col", "slice") + "    }\n  }\n  }\n  }\n";
  int64_t batch = 1;
  for (int d = 0; d < s.batches; ++d) batch *= p.size[d];
  step.groups(blocks(p.size[s.n_axis()], block_columns(caps)), blocks(p.size[s.m_axis()], kBlockRows * threads), static_cast<uint64_t>(batch) * s.slices);
  return step.finish();
}

tn_status matmul_pack_step(const Caps& caps, const MatmulShape& s, const Piece& p, const PackJob& job, Step* out, tn_diag* diag) {
  StepBuilder step("tn_matmul_pack");
  const Access& x = *job.from;
  Piece own = p;  // axes that this operand is not walked along do not count
  int64_t batch = 1;
  for (int d = 0; d < s.batches; ++d) {
    if (!job.batched) own.size[d] = 1;
    batch *= own.size[d];
  }
  bind_operand(&step, s.space, x, own);
  step.buffer("panel", TN_F32, true, job.target);
  for (int d = 0; d < s.batches; ++d) step.scalar_u32("x_b" + std::to_string(d), static_cast<uint32_t>(x.stride[d]));
  for (int d = 1; d < s.batches; ++d) step.scalar_u32("b" + std::to_string(d), static_cast<uint32_t>(own.size[d]));
  const uint32_t lines = static_cast<uint32_t>(p.size[job.line_axis]), depth = static_cast<uint32_t>(p.size[s.k_axis()]), panels = (lines + job.width - 1) / job.width;
  step.scalar_u32("x_line", static_cast<uint32_t>(x.stride[job.line_axis]));
  step.scalar_u32("x_depth", static_cast<uint32_t>(x.stride[s.k_axis()]));
  step.scalar_u32("n_lines", lines);
  step.scalar_u32("n_depth", depth);
  step.scalar_u32("n_panels", panels);
  const uint64_t all = static_cast<uint64_t>(batch) * panels * depth * job.width;
  step.scalar_u32("n_all", static_cast<uint32_t>(all));
  const uint32_t threads = std::min({64u, caps.max_threads, caps.max_group[0]});
  KernelSpec& spec = step.spec;
  spec.group[0] = threads;
  spec.defines = {{"GROUP", std::to_string(threads)}, {"WIDTH", std::to_string(job.width) + "u"}};
  spec.helpers = kGroupNumber;
  std::string& body = spec.body;
  body = "  const tn_uint number = TN_GROUP_NUMBER * GROUP + TN_LID(x);\n  if (number < n_all) {\n"
         "  const tn_uint within = number % WIDTH, up = number / WIDTH, depth = up % n_depth, panels = up / n_depth, line = panels % n_panels * WIDTH + within;\n"
         "  tn_uint rest = panels / n_panels, at_x = " + start_text(x.name) + " + line * x_line + depth * x_depth;\n";
  for (int d = s.batches - 1; d > 0; --d) body += "  at_x += rest % b" + std::to_string(d) + " * x_b" + std::to_string(d) + "; rest /= b" + std::to_string(d) + ";\n";
  body += "  at_x += rest * x_b0;\n  float value = TN_F32(0);\n  if (line < n_lines) value = " + held_load(s, x, "at_x") + ";\n  panel[panel_start + number] = value;\n  }\n";
  const uint64_t groups = (all + threads - 1) / threads;
  if (!spread_groups(&step, caps, groups))
    return refuse(diag, TN_E_UNSUPPORTED, "matmul: too many work-groups\nwhy: %llu to pack an operand\ntry: multiply smaller batches", static_cast<unsigned long long>(groups));
  *out = step.finish();
  return TN_OK;
}

}  // namespace tenon::gpu
