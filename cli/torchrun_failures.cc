#include "cli/torchrun_failures.h"

#include <fcntl.h>
#include <netdb.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <sstream>

#include "cli/job_choice.h"
#include "runtime/base/exit_reason.h"
#include "runtime/base/host_name.h"
#include "runtime/base/identity.h"
#include "runtime/base/json_text.h"
#include "runtime/base/own_file.h"
#include "runtime/base/text.h"
#include "runtime/base/unique_fd.h"

namespace fleetrun::cli {
namespace {

using Json = nlohmann::ordered_json;
using launcher::Ending;

constexpr std::size_t kWidest = 60;

std::string name_of_host() {
  const std::string name = host_name();
  if (name.empty()) return "localhost";
  addrinfo hints = {}, *found = nullptr;
  hints.ai_flags = AI_CANONNAME;
  if (::getaddrinfo(name.c_str(), nullptr, &hints, &found) != 0 || found == nullptr) return name;
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, ::freeaddrinfo);
  return found->ai_canonname != nullptr ? found->ai_canonname : name;
}

/// As Python's Popen has it: a signal's number is negative.
int exit_code(const Ending& ending) {
  const auto* reason = std::get_if<ExitReason>(&ending.how);
  if (!reason) return 1;
  return reason->kind == ExitReason::Kind::signaled ? -reason->code : reason->code;
}

/// Seconds since 1970, of a moment of CLOCK_MONOTONIC.
time_t wall_time(std::int64_t at) {
  timespec now = {}, wall = {};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  ::clock_gettime(CLOCK_REALTIME, &wall);
  return wall.tv_sec -
         (static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec - at) / 1'000'000'000;
}

std::string time_text(time_t seconds) {
  tm local = {};
  ::localtime_r(&seconds, &local);
  char text[32];
  ::strftime(text, sizeof text, "%Y-%m-%d_%H:%M:%S", &local);
  return text;
}

/// One process that failed, with what it wrote into its error file.
struct Failure {
  const Ending* ending = nullptr;
  const Identity* who = nullptr;
  std::string error_file;  // empty: there is none
  Json reply;

  /// "message" is a text, or an object that has the traceback.
  std::string traceback() const {
    const int code = exit_code(*ending);
    if (!error_file.empty() && reply.contains("message")) {
      const Json& message = reply["message"];
      if (message.is_string()) return message.get<std::string>();
      if (message.is_object()) {
        const std::string plain = message.value("message", std::string("<N/A>"));
        const Json extra = message.value("extraInfo", Json::object());
        return indented(extra.is_object() ? extra.value("py_callstack", plain) : plain);
      }
    }
    if (code < 0)
      return "Signal " + std::to_string(-code) + " (" + signal_name(-code) + ") received by PID " +
             std::to_string(ending->pid);
    return "To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html";
  }

  static std::string indented(std::string text) {
    for (std::size_t at = 0; (at = text.find('\n', at)) != std::string::npos; at += 3)
      text.insert(at + 1, "  ");
    return text;
  }

  std::string text(std::size_t number) const {
    const int code = exit_code(*ending);
    std::string text = "[" + std::to_string(number) + "]:\n";
    text.append("  time      : ").append(time_text(wall_time(ending->at))).append("\n");
    text.append("  host      : ").append(name_of_host()).append("\n");
    text.append("  rank      : ").append(std::to_string(who->rank));
    text.append(" (local_rank: ").append(std::to_string(who->local_rank)).append(")\n");
    text.append("  exitcode  : ").append(std::to_string(code)).append(" (pid: ");
    text.append(std::to_string(ending->pid)).append(") ");
    text.append(code < 0 ? " (" + signal_name(-code) + ")" : "").append("\n");
    text.append("  error_file: ").append(error_file.empty() ? "<N/A>" : error_file).append("\n");
    return text.append("  traceback : ").append(traceback());
  }
};

Failure failure_of(const Ending& ending, const launcher::Plan& plan) {
  const launcher::ProcessSpec& process = plan.processes[ending.index];
  Failure failure = {&ending, &process.identity, "", Json()};
  if (!process.output || process.output->directory.empty()) return failure;
  const std::string path = process.output->place(ending.attempt, process.identity.local_rank) + "/error.json";
  std::error_code missing;
  if (!std::filesystem::is_regular_file(path, missing)) return failure;
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  failure.reply = read_json<Json>(text.str());
  if (!failure.reply.is_discarded()) failure.error_file = path;
  return failure;
}

std::size_t widest_line(const std::string& text) {
  std::size_t widest = 0;
  for (const std::string& line : split(text, '\n')) widest = std::max(widest, line.size());
  return widest;
}

}  // namespace

std::string torchrun_failures(const launcher::Report& report, const launcher::Plan& plan,
                              const launcher::JobHistory& history, const std::string& name) {
  if (!report.first) return {};
  std::string others, root;
  const std::string title = name + " FAILED";
  std::size_t width = title.size(), number = 0;
  for (const Ending& ending : history.endings()) {
    const bool is_root = ending.index == report.first->index;
    if (!is_root && (ending.ok() || ending.asked)) continue;
    const std::string text = failure_of(ending, plan).text(number++);
    width = std::max(width, widest_line(text));
    if (is_root)
      root = text;
    else
      others.append(others.empty() ? "" : "\n").append(text);
  }
  width = std::min(width, kWidest);
  const std::string border(width, '='), line(width, '-');
  if (others.empty()) others = "  <NO_OTHER_FAILURES>";
  return "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n" + border + "\n" + title +
         "\n" + line + "\nFailures:\n" + others + "\n" + line + "\nRoot Cause (first observed failure):\n" +
         root + "\n" + border + "\n";
}

void write_reply(const launcher::Report& report, const launcher::Plan& plan,
                 const launcher::JobHistory& history, const std::string& reply) {
  const Ending* ending = report.first ? history.ending_of(report.first->index) : nullptr;
  if (!ending) return;
  Failure root = failure_of(*ending, plan);
  if (root.error_file.empty()) return;
  if (root.reply.contains("message") && root.reply["message"].is_object() && exit_code(*ending) != 0)
    root.reply["message"]["errorCode"] = exit_code(*ending);
  const UniqueFd file(open_own(reply, O_WRONLY | O_CREAT | O_TRUNC, Readers::by_directory));
  if (file) write_bytes(file.value(), json_text(root.reply));
}

}  // namespace fleetrun::cli
