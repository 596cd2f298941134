// Several lambdas as one, for std::visit.
#pragma once

namespace fleetrun {

template <class... Calls>
struct Overloaded : Calls... {
  using Calls::operator()...;
};

}  // namespace fleetrun
