#include "runtime/base/error.h"

#include <cerrno>
#include <system_error>

namespace fleetrun {

std::string_view to_string(ErrorKind kind) noexcept {
  switch (kind) {
    case ErrorKind::usage:
      return "usage";
    case ErrorKind::config:
      return "config";
    case ErrorKind::host:
      return "host";
    case ErrorKind::spawn:
      return "spawn";
    case ErrorKind::network:
      return "network";
    case ErrorKind::timeout:
      return "timeout";
    case ErrorKind::data:
      return "data";
  }
  return "unknown";
}

Error::Error(ErrorKind kind, const std::string& what, std::string hint)
    : std::runtime_error(what), kind_(kind), hint_(std::move(hint)) {}

Error& Error::while_doing(std::string what) {
  context_.push_back(std::move(what));
  return *this;
}

std::string render(const Error& error, std::string_view program) {
  std::string text;
  text.append(program).append(": error: ").append(error.what());
  for (const std::string& line : error.context()) text.append("\n  while: ").append(line);
  if (!error.hint().empty()) text.append("\n  hint: ").append(error.hint());
  return text;
}

int check_errno(int result, std::string_view call, std::string_view what, ErrorKind kind) {
  if (result != -1) return result;
  const std::string reason = std::generic_category().message(errno);
  throw Error(kind, std::string(what) + ": " + reason + " (" + std::string(call) + ")");
}

}  // namespace fleetrun
