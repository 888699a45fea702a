// Whether two function types are called alike: the same number of arguments, each passed as the same kind of value.
#pragma once
#include <cstddef>
#include <type_traits>

namespace tenon::gpu::test {

// Pointers, integers and enums of one size travel in the same registers.
template <class A, class B>
constexpr bool kSameValue = sizeof(A) == sizeof(B) && !std::is_floating_point_v<A> && !std::is_floating_point_v<B> && !std::is_class_v<A> && !std::is_class_v<B>;

template <class A, class B>
struct SameCall : std::false_type {};
template <class R, class... A, class Q, class... B>
struct SameCall<R (*)(A...), Q (*)(B...)> {
  static constexpr bool arguments() {
    if constexpr (sizeof...(A) == sizeof...(B)) return (kSameValue<A, B> && ...);
    return false;
  }
  static constexpr bool value = kSameValue<R, Q> && arguments();
};

}  // namespace tenon::gpu::test
