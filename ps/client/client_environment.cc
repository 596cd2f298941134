#include "ps/client/client_environment.h"

#include <charconv>
#include <cmath>

#include "runtime/base/environ.h"
#include "runtime/base/error.h"
#include "runtime/base/text.h"

namespace fleetrun::ps {
namespace {

constexpr const char* kDeadline = "FLEETRUN_PS_DEADLINE";
constexpr double kLongest = 1e6;  // seconds

std::chrono::milliseconds deadline_of(const Environ& environ) {
  const std::string text = environ.value_or(kDeadline, "0");
  double seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error == std::errc() && end == text.data() + text.size() && seconds >= 0 && seconds <= kLongest)
    return std::chrono::milliseconds(static_cast<std::int64_t>(std::ceil(seconds * 1000)));
  throw Error(ErrorKind::config,
              std::string(kDeadline) + "=" + printable(text) + " is not a number of seconds",
              "set it to how long a pull or a push may take, or to 0");
}

}  // namespace

void read_environment(const Environ& environ, ClientOptions& options) {
  options.encodings = encodings_of(environ);
  options.deadlines.data = deadline_of(environ);
}

}  // namespace fleetrun::ps
