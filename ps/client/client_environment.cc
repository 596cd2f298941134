#include "ps/client/client_environment.h"

#include <charconv>
#include <cmath>

#include "runtime/base/environ.h"
#include "runtime/base/error.h"
#include "runtime/base/text.h"

namespace fleetrun::ps {
namespace {

constexpr double kLongest = 1e6;  // seconds

std::chrono::milliseconds seconds_of(const Environ& environ, const std::string& name,
                                     const std::string& usual, const std::string& meaning) {
  const std::string text = environ.value_or(name, usual);
  double seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error == std::errc() && end == text.data() + text.size() && seconds >= 0 && seconds <= kLongest)
    return std::chrono::milliseconds(static_cast<std::int64_t>(std::ceil(seconds * 1000)));
  throw Error(ErrorKind::config, name + "=" + printable(text) + " is not a number of seconds",
              "set it to " + meaning + ", or to 0");
}

}  // namespace

void read_environment(const Environ& environ, ClientOptions& options) {
  options.encodings = encodings_of(environ);
  options.deadlines.data =
      seconds_of(environ, "FLEETRUN_PS_DEADLINE", "0", "how long a pull or a push may take");
  options.tell_waits = seconds_of(environ, "FLEETRUN_PS_WAIT_WARNING", "60",
                                  "how long trainers may wait for each other before they say so");
}

}  // namespace fleetrun::ps
