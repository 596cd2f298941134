#include "cli/job_stream.h"

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include <cerrno>

#include "runtime/base/error.h"
#include "runtime/base/json_text.h"
#include "runtime/base/process_end.h"
#include "runtime/base/unique_fd.h"

namespace fleetrun::cli {

using Json = nlohmann::json;

std::optional<StreamedEvent> parse_streamed(std::string_view line) {
  const Json json = read_json<Json>(line);
  if (!json.is_object() || !json.contains("event") || !json["event"].is_object()) return std::nullopt;
  const Json& event = json["event"];
  StreamedEvent streamed;
  streamed.type = event.value("type", std::string());
  streamed.level = json.value("level", std::string());
  streamed.text = json.value("text", std::string());
  if (event.contains("exit_status") && event["exit_status"].is_number_integer())
    streamed.exit_status = event["exit_status"].get<int>();
  return streamed;
}

Wake wait_for(int fd, int signals, std::chrono::milliseconds patience) {
  pollfd both[] = {{fd, POLLIN, 0}, {signals, POLLIN, 0}};
  Wake wake;
  if (::poll(both, 2, static_cast<int>(patience.count())) <= 0) return wake;
  wake.readable = both[0].revents != 0;
  signalfd_siginfo info = {};
  if (both[1].revents != 0 && ::read(signals, &info, sizeof info) == sizeof info)
    wake.signal = static_cast<int>(info.ssi_signo);
  return wake;
}

int open_signals() {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGWINCH}) ::sigaddset(&set, number);
  ::sigprocmask(SIG_BLOCK, &set, nullptr);
  return check_errno(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK), "signalfd", "waiting for the job");
}

bool wait_for_end(pid_t pid, std::chrono::milliseconds patience) {
  const UniqueFd process = watch_end(pid);
  if (!process) return errno == ESRCH;
  pollfd ended = {process.value(), POLLIN, 0};
  return ::poll(&ended, 1, static_cast<int>(patience.count())) > 0;
}

}  // namespace fleetrun::cli
