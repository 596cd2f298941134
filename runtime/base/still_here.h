// Handlers of an event loop that outlives the object that they belong to: closing a descriptor or cancelling
// a timer does not take back a handler that is due already.
#pragma once

#include <memory>
#include <utility>

namespace fleetrun {

/// A member of that object, the last one.
class StillHere {
 public:
  StillHere() = default;
  StillHere(const StillHere&) = delete;
  StillHere& operator=(const StillHere&) = delete;

  /// `handler`, which does nothing once the object is gone.
  template <class Handler>
  auto only(Handler handler) const {
    return [token = std::weak_ptr<const char>(token_),
            handler = std::move(handler)](auto&&... arguments) mutable {
      if (!token.expired()) handler(std::forward<decltype(arguments)>(arguments)...);
    };
  }

 private:
  std::shared_ptr<const char> token_ = std::make_shared<const char>();
};

}  // namespace fleetrun
