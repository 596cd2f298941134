// The answer to a request: bytes, or the error that stood in the way.
#pragma once

#include <functional>
#include <variant>

#include "ps/message.h"
#include "runtime/base/error.h"

namespace fleetrun::ps {

using Outcome = std::variant<Message, Error>;

/// Called once, from any thread; must not throw.
using Respond = std::function<void(Outcome)>;

}  // namespace fleetrun::ps
