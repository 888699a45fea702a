// ops/pull.h - emitting the gradients of pointwise and reduce: programs as nodes, summed over broadcast axes.
//
// A gradient towards an input that was broadcast is a reduce SUM whose `pre` is the gradient program, so that nothing of
// the output's size is stored for it.
#pragma once
#include <functional>

#include "ops/emit.h"
#include "ops/scalar_graph.h"

namespace tenon::ops {

struct PullTarget {
  ScalarGraph::Id value;  // the gradient per element of the broadcast inputs, in the compute type
  tn_type type;           // of the input it belongs to: dtype, and dims to sum down to
};

struct Pull {
  Emit* emit;
  ScalarGraph* graph;
  uint32_t n_leaves;                            // inputs of the graph, numbered 0 .. n_leaves-1
  std::function<Value(uint32_t)> leaf;          // asked at most once each, and only for those needed
  std::vector<int64_t> full;                    // dims of the inputs broadcast together
  uint32_t full_leaf;                           // a leaf of these dims, for programs with INDEX
};

// One value per target, of the target's type.
std::vector<Value> pull_targets(Pull pull, std::span<const PullTarget> targets);

// x with exactly `dims`: a reshape when it only adds or drops axes of size 1, an expand when sizes differ, else x itself.
Value with_dims(Emit& e, Value x, const std::vector<int64_t>& dims);

}  // namespace tenon::ops
