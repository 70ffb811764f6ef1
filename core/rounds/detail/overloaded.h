// Lambdas as one visitor.
#pragma once

namespace neuroshard::rounds {

template <class... Parts>
struct Overloaded : Parts... {
  using Parts::operator()...;
};
template <class... Parts>
Overloaded(Parts...) -> Overloaded<Parts...>;

}  // namespace neuroshard::rounds
