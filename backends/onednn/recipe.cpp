#include "backends/onednn/recipe.h"

#include <omp.h>

#include <cmath>
#include <cstring>
#include <new>

#include "backends/onednn/operand.h"

namespace tenon::onednn {
namespace {

constexpr uint64_t kAlign = 64;

uint64_t align_up(uint64_t bytes) { return (bytes + kAlign - 1) & ~(kAlign - 1); }

float load_bf16(uint16_t bits) {
  const uint32_t wide = static_cast<uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &wide, sizeof value);
  return value;
}

uint16_t store_bf16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  if (value != value) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

bool keeps(ClampRule rule, float x, float low) {
  if (rule == ClampRule::SelectLessEqual) return !(x <= low);
  // With a limit of -0, x = +0 must stay.
  return (std::signbit(low) ? x >= low : x > low) || x != x;
}

template <ClampRule rule, bool negative_limit>
void clamp_row_f32(float* row, int64_t n, float low) {
  for (int64_t i = 0; i < n; ++i) {
    const float x = row[i];
    bool keep = !(x <= low);
    if constexpr (rule == ClampRule::Max) keep = (negative_limit ? x >= low : x > low) || x != x;
    row[i] = keep ? x : low;
  }
}

void clamp_row(ClampRule rule, float* row, int64_t n, float low) {
  if (rule == ClampRule::SelectLessEqual) return clamp_row_f32<ClampRule::SelectLessEqual, false>(row, n, low);
  if (std::signbit(low)) return clamp_row_f32<ClampRule::Max, true>(row, n, low);
  clamp_row_f32<ClampRule::Max, false>(row, n, low);
}

// Limits and rounding commute (both are monotonic), so the rounded values are compared.
void clamp_row(ClampRule rule, uint16_t* row, int64_t n, float low) {
  const uint16_t low_bits = store_bf16(low);
  const float low_rounded = load_bf16(low_bits);
  for (int64_t i = 0; i < n; ++i) row[i] = keeps(rule, load_bf16(row[i]), low_rounded) ? row[i] : low_bits;
}

void run_clamp(const Clamp& c, const tn_launch& call) {
  float low;
  std::memcpy(&low, static_cast<const char*>(call.push) + 8 * static_cast<size_t>(c.push_slot), sizeof low);
  char* base = static_cast<char*>(call.views[c.view].host) + c.offset_bytes;
  for (int64_t r = 0; r < c.rows; ++r) {
    if (c.dtype == TN_BF16) {
      clamp_row(c.rule, reinterpret_cast<uint16_t*>(base) + r * c.row_stride, c.columns, low);
    } else {
      clamp_row(c.rule, reinterpret_cast<float*>(base) + r * c.row_stride, c.columns, low);
    }
  }
}

void run_root(const ReciprocalRoot& r, const tn_launch& call) {
  auto* v = reinterpret_cast<float*>(static_cast<char*>(call.views[r.view].host) + r.offset_bytes);
  for (int64_t i = 0; i < r.count; ++i) v[i] = 1.0f / std::sqrt(v[i] + r.epsilon);
}

// The parts are summed into the first one, which is workspace.
void run_gather(const Gather& g, char* workspace, const tn_launch& call) {
  const auto part = [&](uint32_t p) { return reinterpret_cast<float*>(workspace + g.offset_bytes + p * g.part_bytes); };
  float* sum = part(0);
  for (uint32_t p = 1; p < g.parts; ++p) {
    const float* next = part(p);
    for (int64_t i = 0; i < g.elements; ++i) sum[i] += next[i];
  }
  if (g.dtype == TN_F32) {
    std::memcpy(call.views[g.view].host, sum, static_cast<size_t>(g.elements) * sizeof(float));
  } else {
    auto* out = static_cast<uint16_t*>(call.views[g.view].host);
    for (int64_t i = 0; i < g.elements; ++i) out[i] = store_bf16(sum[i]);
  }
}

// The memory objects and argument lists of one shard, reused from launch to launch.
struct BoundShard {
  explicit BoundShard(const Shard& shard, const dnnl::engine& engine) : stream(engine) {
    memories.reserve(shard.regions.size());
    for (const Region& r : shard.regions) memories.emplace_back(r.desc, engine, nullptr);
    pointers.assign(shard.regions.size(), nullptr);
    for (const Step& step : shard.steps) {
      auto& list = arguments.emplace_back();
      for (const Argument& a : step.arguments) list.push_back({a.name, memories[a.region].get()});
    }
  }

  bool run(const Shard& shard, const tn_launch& call, char* workspace) {
    for (size_t i = 0; i < memories.size(); ++i) {
      const Region& r = shard.regions[i];
      char* base = r.view == kWorkspace ? workspace : static_cast<char*>(call.views[r.view].host);
      void* pointer = base + r.offset_bytes;
      if (pointer == pointers[i]) continue;
      if (dnnl_memory_set_data_handle(memories[i].get(), pointer) != dnnl_success) return false;
      pointers[i] = pointer;
    }
    for (size_t i = 0; i < shard.steps.size(); ++i) {
      const auto& list = arguments[i];
      if (dnnl_primitive_execute(shard.steps[i].primitive.get(), stream.get(), static_cast<int>(list.size()),
                                 list.data()) != dnnl_success) {
        return false;
      }
    }
    for (const Clamp& c : shard.clamps) run_clamp(c, call);
    for (const ReciprocalRoot& r : shard.roots) run_root(r, call);
    return true;
  }

  dnnl::stream stream;
  std::vector<dnnl::memory> memories;
  std::vector<void*> pointers;  // what each memory points at now
  std::vector<std::vector<dnnl_exec_arg_t>> arguments;
};

}  // namespace

struct Recipe::Binding {
  explicit Binding(const Recipe& recipe) {
    shards.reserve(recipe.shards.size());
    for (const Shard& s : recipe.shards) shards.emplace_back(s, recipe.engine);
  }
  std::vector<BoundShard> shards;
};

namespace {

struct ShardedLaunch {
  const Recipe* recipe;
  std::vector<BoundShard>* bound;
  const tn_launch* call;
  char* workspace;
  std::atomic<bool> good{true};
};

void run_shards(void* arg, int64_t begin, int64_t end, uint32_t) {
  auto& l = *static_cast<ShardedLaunch*>(arg);
  const OmpWidth width(l.recipe->omp_width);
  for (int64_t i = begin; i < end; ++i) {
    const auto k = static_cast<size_t>(i);
    if (!(*l.bound)[k].run(l.recipe->shards[k], *l.call, l.workspace)) l.good.store(false, std::memory_order_relaxed);
  }
}

}  // namespace

Recipe::Recipe(const dnnl::engine& of) : engine(of) {}
Recipe::~Recipe() { delete spare_.load(std::memory_order_acquire); }

tn_status Recipe::launch(const tn_host& host, const tn_launch& call) {
  Binding* binding = spare_.exchange(nullptr, std::memory_order_acq_rel);
  if (binding == nullptr) {
    try {
      binding = new Binding(*this);
    } catch (const std::exception& e) {
      return fail(call.diag, TN_E_OOM, kLibraryFailed, "oneDNN could not make memory objects\nwhy: %s\ntry: %s", e.what(),
                  "free memory and launch again");
    }
  }
  char* workspace = nullptr;
  if (workspace_bytes > 0) {
    const auto address = reinterpret_cast<uintptr_t>(call.views[n_views].host);
    workspace = reinterpret_cast<char*>(align_up(address));
  }
  ShardedLaunch sharded{this, &binding->shards, &call, workspace};
  const auto count = static_cast<int64_t>(shards.size());
  if (count == 1) {
    run_shards(&sharded, 0, 1, 0);
  } else {
    host.parallel(host.ctx, count, 1, run_shards, &sharded);
  }
  for (const Gather& g : gathers) run_gather(g, workspace, call);
  // Two launches may have overlapped: keep one set, drop the other.
  delete spare_.exchange(binding, std::memory_order_acq_rel);
  if (sharded.good.load(std::memory_order_relaxed)) return TN_OK;
  return fail(call.diag, TN_E_FAILED, kLibraryFailed, "oneDNN reported a failed execution\nwhy: %s\ntry: %s",
              implementations().c_str(), "report this call; pin another kernel meanwhile");
}

std::string Recipe::implementations() const {
  std::string text;
  for (const Step& step : shards.front().steps) {
    const char* name = nullptr;
    const_dnnl_primitive_desc_t pd = nullptr;
    if (dnnl_primitive_get_primitive_desc(step.primitive.get(), &pd) != dnnl_success) continue;
    if (dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, &name) != dnnl_success) continue;
    text += (text.empty() ? "" : " + ");
    text += name;
  }
  return text;
}

RecipeBuilder::RecipeBuilder(const dnnl::engine& engine, uint32_t n_views)
    : engine_(engine), recipe_(std::make_shared<Recipe>(engine)) {
  recipe_->n_views = n_views;
}

void RecipeBuilder::begin_shard() { recipe_->shards.emplace_back(); }

uint32_t RecipeBuilder::region(const Desc& desc, uint32_t view, uint64_t offset_bytes) {
  shard().regions.push_back({desc, view, offset_bytes});
  return static_cast<uint32_t>(shard().regions.size() - 1);
}

uint64_t RecipeBuilder::reserve(uint64_t bytes) {
  const uint64_t offset = recipe_->workspace_bytes;
  recipe_->workspace_bytes += align_up(bytes);
  return offset;
}

uint32_t RecipeBuilder::workspace(const Desc& desc) { return region(desc, kWorkspace, reserve(desc.get_size())); }

void RecipeBuilder::add(const dnnl::primitive& primitive, const Desc& scratchpad, std::vector<Argument> arguments) {
  if (scratchpad.get_size() > 0) arguments.push_back({DNNL_ARG_SCRATCHPAD, workspace(scratchpad)});
  shard().steps.push_back({primitive, std::move(arguments)});
}

void RecipeBuilder::add_reorder(uint32_t from, uint32_t to) {
  const dnnl::reorder::primitive_desc pd(engine_, shard().regions[from].desc, engine_, shard().regions[to].desc,
                                         user_scratchpad());
  add(dnnl::reorder(pd), pd.scratchpad_desc(), {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}});
}

uint32_t RecipeBuilder::reordered(uint32_t from, const Desc& want) {
  if (shard().regions[from].desc == want) return from;
  const uint32_t to = workspace(want);
  add_reorder(from, to);
  return to;
}

uint32_t RecipeBuilder::output_for(uint32_t to, const Desc& want) {
  return shard().regions[to].desc == want ? to : workspace(want);
}

void RecipeBuilder::finish_output(uint32_t written, uint32_t to) {
  if (written != to) add_reorder(written, to);
}

std::shared_ptr<Recipe> RecipeBuilder::finish() {
  if (recipe_->workspace_bytes > 0) recipe_->workspace_bytes += kAlign;
  return std::move(recipe_);
}

dnnl::primitive_attr user_scratchpad() {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attr;
}

OmpWidth::OmpWidth(int width) : before_(omp_get_max_threads()), changed_(before_ != width) {
  if (changed_) omp_set_num_threads(width);
}

OmpWidth::~OmpWidth() {
  if (changed_) omp_set_num_threads(before_);
}

}  // namespace tenon::onednn
