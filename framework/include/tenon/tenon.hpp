// tenon/tenon.hpp - everything people program with, in namespace tenon.
#pragma once
#include <tenon/autograd/autograd.hpp>
#include <tenon/core/ops.hpp>
#include <tenon/core/tensor.hpp>
#include <tenon/data/tensors.hpp>
#include <tenon/io/tensors.hpp>
#include <tenon/nn/nn.hpp>
#include <tenon/optim/optim.hpp>
#include <tenon/train/train.hpp>
