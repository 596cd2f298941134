// The table is drawn on the alternate screen once a second and after events (at most five times a second),
// each time over the one before, without clearing, so that nothing flickers.
// The terminal is put back however this ends.
#include "cli/top_command.h"

#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <chrono>
#include <limits>
#include <optional>

#include "cli/command_flags.h"
#include "cli/job_choice.h"
#include "cli/job_stream.h"
#include "cli/status_text.h"
#include "launcher/status/control_client.h"
#include "launcher/status/job_status_json.h"
#include "runtime/base/error.h"
#include "runtime/base/terminal_text.h"
#include "runtime/base/text.h"
#include "runtime/base/unique_fd.h"

namespace fleetrun::cli {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr CommandFlag kTopFlags[] = {{"help", 'h', "", "show this"}};

constexpr const char* kTopHelp = R"(usage: fleetrun top [JOB]

Shows a running job of yours as a table of its processes, once a second and when something happens; q or
Ctrl-C leaves it. JOB is a pod or a job id; without it there has to be one job only. Where standard output is
no terminal, the table is printed once.

)";

constexpr milliseconds kPeriod{1000}, kShortest{200};
constexpr const char* kStatus = R"({"request":"status"})";

/// The terminal as top needs it, until this object goes.
class Screen {
 public:
  Screen() {
    ::tcgetattr(STDIN_FILENO, &before_);
    termios now = before_;
    now.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    ::tcsetattr(STDIN_FILENO, TCSANOW, &now);
    write_bytes(STDOUT_FILENO, "\x1b[?1049h\x1b[?25l");  // alternate screen, no cursor
  }
  ~Screen() {
    write_bytes(STDOUT_FILENO, "\x1b[?25h\x1b[?1049l");
    ::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
  }
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  static TableSize size() {
    winsize window = {};
    if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) != 0 || window.ws_col == 0 || window.ws_row == 0)
      return {80, 23};
    return {window.ws_col, window.ws_row - 1};
  }

  static void draw(const std::string& table) {
    std::string text = "\x1b[H";
    for (const std::string& line : split(table, '\n')) {
      if (!line.empty()) text += terminal_text(line) + "\x1b[K\r\n";
    }
    write_bytes(STDOUT_FILENO, text + "\x1b[J\x1b[7m q leaves \x1b[0m\x1b[K");
  }

 private:
  termios before_ = {};
};

/// What the job has said since the last look.
struct News {
  std::optional<launcher::JobStatus> status;
  bool happened = false;
  std::optional<int> exit_status;
};

News read_news(launcher::ControlClient& client) {
  News news;
  while (const auto line = client.next_line()) {
    const auto event = parse_streamed(*line);
    if (!event) {
      news.status = launcher::job_status_from_json(launcher::status_in(*line));
      continue;
    }
    news.happened = true;
    if (event->exit_status) news.exit_status = event->exit_status;
  }
  return news;
}

/// Waits for the job, the user or the time. True: the user wants to leave.
bool wait_for_something(int job, int signals, Clock::time_point until) {
  const auto left = std::chrono::ceil<milliseconds>(until - Clock::now()).count();
  pollfd all[] = {{job, POLLIN, 0}, {signals, POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}};
  if (::poll(all, 3, static_cast<int>(std::max<std::int64_t>(left, 0))) <= 0) return false;
  if (all[1].revents != 0) return wait_for(signals, signals, milliseconds(0)).signal != SIGWINCH;
  if (all[2].revents == 0) return false;
  char key = 0;
  return ::read(STDIN_FILENO, &key, 1) != 1 || key == 'q' || key == 'Q' || key == '\x04';
}

/// Returns the exit status of the job when it has ended meanwhile.
std::optional<int> show(launcher::ControlClient& client, launcher::JobStatus status) {
  const UniqueFd signals(open_signals());
  const Screen screen;
  std::optional<launcher::JobStatus> before;
  Screen::draw(status_table(status, nullptr, Screen::size()));
  auto asked = Clock::now();
  auto next = asked + kPeriod;
  bool waiting = false;  // for an answer
  for (;;) {
    if (wait_for_something(client.descriptor(), signals.value(), next)) return std::nullopt;
    const bool open = client.read_more();
    News news = read_news(client);
    if (news.status) {
      before = std::exchange(status, std::move(*news.status));
      waiting = false;
      Screen::draw(status_table(status, &*before, Screen::size()));
    }
    if (news.exit_status || !open) return news.exit_status;
    if (news.happened) next = std::min(next, std::max(Clock::now(), asked + kShortest));
    if (Clock::now() < next || waiting) {
      if (waiting) next = Clock::now() + kPeriod;
      continue;
    }
    client.send(kStatus);
    waiting = true;
    asked = Clock::now();
    next = asked + kPeriod;
  }
}

}  // namespace

int run_top_command(const std::vector<std::string>& arguments, const Environ& environment) {
  const CommandArguments words = parse_command_arguments("top", arguments, kTopFlags);
  if (words.has("help")) {
    write_text(STDOUT_FILENO, kTopHelp + describe_flags(kTopFlags));
    return 0;
  }
  const launcher::JobEntry job = choose_job("top", words.words, environment);
  launcher::ControlClient client(job);
  launcher::JobStatus status =
      launcher::job_status_from_json(launcher::status_in(client.ask(R"({"request":"attach"})")));
  if (!::isatty(STDOUT_FILENO) || !::isatty(STDIN_FILENO)) {
    write_text(STDOUT_FILENO, status_table(status, nullptr, {std::numeric_limits<int>::max(), 0}));
    return 0;
  }
  const std::optional<int> exit_status = show(client, std::move(status));
  if (exit_status)
    write_text(STDOUT_FILENO,
               name_of(job) + " has ended with exit status " + std::to_string(*exit_status) + "\n");
  return 0;
}

}  // namespace fleetrun::cli
