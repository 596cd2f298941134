// Several lambdas as one, for std::visit.
#pragma once

namespace fleetrun {

template <class... Calls>
struct Overloaded : Calls... {
  using Calls::operator()...;
};
template <class... Calls>  // clang needs to be told
Overloaded(Calls...)->Overloaded<Calls...>;

}  // namespace fleetrun
