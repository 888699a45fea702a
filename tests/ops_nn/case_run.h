// tests/ops_nn/case_run.h - an op's cases as calls on arrays of f64.
#pragma once
#include <cmath>
#include <algorithm>
#include <random>

#include "tests/ops_nn/graph.h"

namespace tenon::ops::test {

inline std::vector<uint64_t> own_ops() {
  return {TN_OPID_MATMUL, TN_OPID_COPY, TN_OPID_GATHER, TN_OPID_SCATTER, TN_OPID_CAST, TN_OPID_PAD, TN_OPID_CONCAT, TN_OPID_ONE_HOT, TN_OPID_FULL,
          TN_OPID_IOTA, TN_OPID_TAKE, TN_OPID_SOFTMAX, TN_OPID_LOG_SOFTMAX, TN_OPID_CROSS_ENTROPY, TN_OPID_LAYER_NORM, TN_OPID_BATCH_NORM,
          TN_OPID_BATCH_NORM_INFER, TN_OPID_LAYER_NORM_GRAD, TN_OPID_BATCH_NORM_GRAD, TN_OPID_CROSS_ENTROPY_GRAD, TN_OPID_CONV2D,
          TN_OPID_CONV2D_INPUT_GRAD, TN_OPID_CONV2D_WEIGHT_GRAD, TN_OPID_MAX_POOL2D, TN_OPID_AVG_POOL2D, TN_OPID_MAX_POOL2D_GRAD,
          TN_OPID_AVG_POOL2D_GRAD, TN_OPID_LINEAR, TN_OPID_RANDOM_UNIFORM, TN_OPID_RANDOM_NORMAL, TN_OPID_DROPOUT, TN_OPID_SGD_STEP,
          TN_OPID_ADAM_STEP};
}

struct CaseCall {
  Call call;
  std::vector<Array> in;
};

inline int64_t total_elements(const Case& c) {
  int64_t n = 0;
  for (const CaseOperand& o : c.in) n += o.absent ? 0 : count(o.dims);
  return n;
}

inline Array fill(const CaseOperand& o, std::mt19937& random) {
  if (o.absent) return {0, {}, {}};
  Array a{o.dtype != 0 ? o.dtype : uint32_t{TN_F64}, o.dims, {}};
  const auto n = static_cast<size_t>(count(o.dims));
  std::normal_distribution<double> normal;
  for (size_t i = 0; i < n; ++i) {
    const double unit = static_cast<double>(random() % 100000) / 100000;
    switch (o.fill) {
      case Fill::Normal: a.data.push_back(normal(random)); break;
      case Fill::Positive: a.data.push_back(0.1 + 1.9 * unit); break;
      case Fill::Unit: a.data.push_back(-0.9 + 1.8 * unit); break;
      case Fill::Spaced: a.data.push_back(0.05 * (static_cast<double>(i) - static_cast<double>(n) / 2) + 0.01); break;
      case Fill::Index: a.data.push_back(static_cast<Number>(o.limit > 0 ? random() % static_cast<uint64_t>(o.limit) : 0)); break;
      case Fill::Bool: a.data.push_back(random() % 2); break;
    }
  }
  if (o.fill == Fill::Spaced) std::shuffle(a.data.begin(), a.data.end(), random);
  return a;
}

inline CaseCall make_call(const OpDecl& decl, const Case& c) {
  CaseCall made;
  made.call.op_id = decl.def.op_id;
  made.call.n_out = decl.def.n_out;
  for (const CaseAttr& a : c.attrs)
    made.call.attrs.push_back(a.kind == CaseAttr::Kind::I64 ? Attr::i64(a.key, a.i) : a.kind == CaseAttr::Kind::F64 ? Attr::f64(a.key, a.f) : Attr::ints(a.key, a.list));
  uint32_t type = TN_F64;
  for (const CaseAttr& a : c.attrs)
    if (c.in.empty() && a.key == TN_KEY_DTYPE) type = compute_type(static_cast<uint32_t>(a.i));
  for (size_t k = 0; k < c.push.size(); ++k)
    made.call.push.push_back((c.raw_push >> k & 1) != 0 ? literal_bits(static_cast<uint64_t>(c.push[k])) : literal(c.push[k], type));
  std::mt19937 random(7);
  for (const CaseOperand& o : c.in) made.in.push_back(fill(o, random));
  // Without a buffer in, sgd_step has one output.
  if (decl.def.op_id == TN_OPID_SGD_STEP && c.in[2].absent) made.call.n_out = 1;
  return made;
}

}  // namespace tenon::ops::test
