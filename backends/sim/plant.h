// backends/sim/plant.h - faults that tests build into copies of this plugin, to see that the conformance kit finds each.
// The plugin that is installed has none.
#pragma once

namespace tenon::sim {

enum class Plant { None, WrongResult, DishonestSupports, NarrowConstraints, MissingBarrier, LeakedBuffer };
#if defined(TENON_SIM_PLANT)
inline constexpr Plant kPlant = Plant::TENON_SIM_PLANT;
#else
inline constexpr Plant kPlant = Plant::None;
#endif

}  // namespace tenon::sim
