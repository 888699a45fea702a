// loader/rates.h - measured rates of devices, kept between runs: one small file for each piece of hardware and thread count.
//
//   tenon-rates 1
//   for cpu:0; Some Processor; built in; 2 threads; ABI 0.1; dev.tenon.cpu 0.1.0 1f2e3d4c
//   when 2026-11-30
//   rate bandwidth 1.2e+10
//   end
//
// Rates hold for the hardware, driver and builds of plugins that they were measured with; a file for others is ignored, and
// so is one that is damaged, foreign, or in a folder where others may write. A note says which.
#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "kernel/rates.h"

namespace tenon::loader {

constexpr size_t kRatesBytes = 8192;  // a longer file is damaged

// folder "": nothing is read or kept. Made when the plugins are known: their builds are part of what rates hold for.
std::unique_ptr<kernel::RateStore> make_rate_store(kernel::Runtime& runtime, std::string folder);

// The text of a file as kept rates: state, when, note, caps. `path` is for the note alone.
void parse_rates(std::string_view text, const std::string& made_for, const std::string& path, kernel::KeptRates* out);
std::string rates_text(const std::string& made_for, const std::string& when, std::span<const tn_cap> caps);

}  // namespace tenon::loader
