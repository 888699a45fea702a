// tenon/train/train.hpp - all of train.
#pragma once
#include <tenon/train/evaluate.hpp>
#include <tenon/train/interrupt.hpp>
#include <tenon/train/metrics.hpp>
#include <tenon/train/models.hpp>
#include <tenon/train/progress.hpp>
#include <tenon/train/source.hpp>
#include <tenon/train/trainer.hpp>
