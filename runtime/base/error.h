// The one exception type of fleetrun, and how it is shown to a person.
//
// "Cannot go on" is an Error; a result among others (a child's death, a bad data line that is skipped) is a
// value. Errors are caught in two places only: main(), and the boundary to Python (fleetrun.Error).
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fleetrun {

enum class ErrorKind { usage, config, host, spawn, network, timeout, data };

/// The kind's name as it is written in logs, JSON and Python (`Error.kind`).
std::string_view to_string(ErrorKind kind) noexcept;

/// `what` names the two things that disagree, in the user's words; `hint` is an action, or empty where there
/// is none; `context` says what was being done, innermost first.
class Error : public std::runtime_error {
 public:
  explicit Error(ErrorKind kind, const std::string& what, std::string hint = {});

  ErrorKind kind() const noexcept { return kind_; }
  const std::string& hint() const noexcept { return hint_; }
  const std::vector<std::string>& context() const noexcept { return context_; }

  /// Adds a line of context on the way up: "reading hosts.txt line 3".
  Error& while_doing(std::string what);

 private:
  ErrorKind kind_;
  std::string hint_;
  std::vector<std::string> context_;
};

/// The text for a terminal, without a final newline:
///   PROGRAM: error: WHAT
///     while: CONTEXT
///     hint: HINT
std::string render(const Error& error, std::string_view program);

/// Runs `action` and adds `what` to an Error that leaves it.
template <class Action>
decltype(auto) while_doing(std::string what, Action&& action) {
  try {
    return std::forward<Action>(action)();
  } catch (Error& error) {
    error.while_doing(std::move(what));
    throw;
  }
}

/// Returns `result` of a system call, or throws Error with the call's name, what it was for and errno's text
/// when it is -1.
int check_errno(int result, std::string_view call, std::string_view what, ErrorKind kind = ErrorKind::host);

}  // namespace fleetrun
