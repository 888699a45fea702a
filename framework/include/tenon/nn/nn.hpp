// tenon/nn/nn.hpp - all of nn.
#pragma once
#include <tenon/nn/init.hpp>
#include <tenon/nn/layers.hpp>
#include <tenon/nn/loss.hpp>
#include <tenon/nn/module.hpp>
