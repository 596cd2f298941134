// The answer to a request: bytes, or the error that stood in the way.
#pragma once

#include <functional>
#include <string>
#include <variant>

#include "ps/message.h"
#include "runtime/base/error.h"

namespace fleetrun::ps {

using Outcome = std::variant<Message, Error>;

/// Called once, from any thread; must not throw.
using Respond = std::function<void(Outcome)>;

/// A copy for another thread. Copies of a std::exception share one text, whose references libstdc++ counts
/// where a race detector cannot see it; this one shares nothing.
inline Error separate_copy(const Error& error) {
  Error copy(error.kind(), std::string(error.what()), error.hint());
  for (const std::string& context : error.context()) copy.while_doing(context);
  return copy;
}

inline Outcome separate_copy(const Outcome& outcome) {
  if (const Error* error = std::get_if<Error>(&outcome)) return separate_copy(*error);
  const auto bytes = std::get<Message>(outcome).bytes();
  Message copy(bytes.size());
  Writer(copy).array(bytes);
  return copy;
}

}  // namespace fleetrun::ps
