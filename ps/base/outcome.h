// The answer to a request: bytes, or the error that stood in the way.
#pragma once

#include <functional>
#include <string>
#include <variant>

#include "ps/base/message.h"
#include "runtime/base/error_copy.h"

namespace fleetrun::ps {

using Outcome = std::variant<Message, Error>;

/// Called once, from any thread; must not throw.
using Respond = std::function<void(Outcome)>;

using fleetrun::separate_copy;

inline Outcome separate_copy(const Outcome& outcome) {
  if (const Error* error = std::get_if<Error>(&outcome)) return separate_copy(*error);
  const auto bytes = std::get<Message>(outcome).bytes();
  Message copy(bytes.size());
  Writer(copy).array(bytes);
  return copy;
}

}  // namespace fleetrun::ps
