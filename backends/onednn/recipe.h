// backends/onednn/recipe.h - what a plan runs: oneDNN primitives over views and workspace, cut into shards.
//
// A recipe is immutable once built and shared by every plan of equal op, types, attributes and width (instance.h caches
// them); plans count references. A shard is a run of primitives that one thread executes; shards are independent of each
// other and are spread over the host's pool. So most primitives are built for one thread, and OpenMP (whose idle
// threads spin and would fight the pool for cores) is used only where a problem cannot be cut: see Recipe::omp_width.
//
// Threads: launch() may run in any number of threads at once. oneDNN memory objects hold a pointer, so each launch
// borrows a set of them (Binding); a recipe keeps one spare set, further ones are made when launches overlap.
#pragma once
#include <tenon/plugin.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backends/onednn/compat.h"

namespace tenon::onednn {

inline constexpr uint32_t kWorkspace = 0xFFFF;

// A piece of a view (or of the workspace) seen through a descriptor.
struct Region {
  Desc desc;
  uint32_t view = 0;
  uint64_t offset_bytes = 0;
};

struct Argument {
  int name;         // DNNL_ARG_*
  uint32_t region;  // index in Shard::regions
};

struct Step {
  dnnl::primitive primitive;
  std::vector<Argument> arguments;
};

// A lower limit over rows x columns elements, after the shard's primitives. oneDNN's own relu turns NaN into 0.
//   Max: TN_OP_MAX, NaN of either side wins, -0 < +0.   SelectLessEqual: x <= c ? c : x, so a NaN limit limits nothing.
enum class ClampRule { Max, SelectLessEqual };
struct Clamp {
  ClampRule rule = ClampRule::Max;
  uint32_t view = 0, dtype = 0, push_slot = 0;
  uint64_t offset_bytes = 0;
  int64_t rows = 0, columns = 0, row_stride = 0;
};

// v = 1 / sqrt(v + epsilon) over `count` f32: oneDNN gives variances where the op wants their reciprocal roots.
struct ReciprocalRoot {
  uint32_t view = 0;
  uint64_t offset_bytes = 0;
  int64_t count = 0;
  float epsilon = 0;
};

struct Shard {
  std::vector<Region> regions;
  std::vector<Step> steps;
  std::vector<Clamp> clamps;
  std::vector<ReciprocalRoot> roots;
};

// Sum of `parts` f32 arrays that lie one after the other in the workspace, into a view of `dtype` (f32 or bf16, rounded
// once), after all shards.
struct Gather {
  uint32_t view = 0, dtype = 0;
  uint64_t offset_bytes = 0, part_bytes = 0;
  int64_t elements = 0;
  uint32_t parts = 0;
};

struct Recipe {
  std::vector<Shard> shards;
  std::vector<Gather> gathers;
  uint64_t workspace_bytes = 0;  // including room to align the start to 64
  uint32_t n_views = 0, push_bytes = 0;
  int omp_width = 1;             // above 1 only when there is one shard
  std::string key;
  dnnl::engine engine;           // streams must come from the very engine object the primitives came from

  struct Binding;
  explicit Recipe(const dnnl::engine&);
  ~Recipe();
  Recipe(const Recipe&) = delete;
  Recipe& operator=(const Recipe&) = delete;

  // Runs everything before it returns. errors: TN_E_FAILED when oneDNN reports one, TN_E_OOM.
  tn_status launch(const tn_host& host, const tn_launch& call);
  // Names of the implementations oneDNN chose, for logs and tests.
  std::string implementations() const;

 private:
  std::atomic<Binding*> spare_{nullptr};
};

// Builds a recipe. Example:
//   RecipeBuilder b(engine, n_views); b.begin_shard();
//   auto src = b.region(desc, 0), dst = b.region(desc, 1);
//   b.add(dnnl::matmul(pd), pd.scratchpad_desc(), {{DNNL_ARG_SRC, src}, {DNNL_ARG_DST, dst}});
class RecipeBuilder {
 public:
  RecipeBuilder(const dnnl::engine& engine, uint32_t n_views);
  void begin_shard();
  uint32_t region(const Desc& desc, uint32_t view, uint64_t offset_bytes = 0);
  uint32_t workspace(const Desc& desc);
  // Takes bytes of the workspace; returns their offset.
  uint64_t reserve(uint64_t bytes);
  void add(const dnnl::primitive& primitive, const Desc& scratchpad, std::vector<Argument> arguments);
  // Region that holds `from` in layout `want`: `from` itself, or a workspace region filled by a reorder.
  uint32_t reordered(uint32_t from, const Desc& want);
  // Region a primitive writes in layout `want` whose content must end up in `to`; call finish_output() after add().
  uint32_t output_for(uint32_t to, const Desc& want);
  void finish_output(uint32_t written, uint32_t to);
  Shard& shard() { return recipe_->shards.back(); }
  Recipe& recipe() { return *recipe_; }
  std::shared_ptr<Recipe> finish();

 private:
  void add_reorder(uint32_t from, uint32_t to);
  dnnl::engine engine_;
  std::shared_ptr<Recipe> recipe_;
};

// Scratchpad comes from the plan's workspace, so that plans may run in several threads at once.
dnnl::primitive_attr user_scratchpad();

// Sets the calling thread's OpenMP width for a scope. oneDNN reads it when it makes and when it runs a primitive; both
// must see the same width.
class OmpWidth {
 public:
  explicit OmpWidth(int width);
  ~OmpWidth();
  OmpWidth(const OmpWidth&) = delete;
  OmpWidth& operator=(const OmpWidth&) = delete;

 private:
  int before_;
  bool changed_;
};

}  // namespace tenon::onednn
