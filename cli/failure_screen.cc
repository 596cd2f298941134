#include "cli/failure_screen.h"

#include <algorithm>
#include <cstdio>
#include <vector>

#include "launcher/failure/failure_text.h"
#include "runtime/base/recovery_words.h"
#include "runtime/base/text.h"

namespace fleetrun::cli {
namespace {

using launcher::FirstFailure;
using launcher::Followers;

constexpr std::size_t kMaxLines = 24;   // of the log, on this screen
constexpr std::size_t kHeadLines = 6;   // of them from the beginning of a longer block
constexpr std::size_t kLastLines = 10;  // when no block was recognised
constexpr std::size_t kMaxNames = 4;
constexpr std::size_t kMaxAttempts = 5;

/// "12 ms", "1.5 s", "2 min 5 s"
std::string shown_time(std::int64_t ns) {
  char text[48];
  const double ms = static_cast<double>(ns) / 1e6;
  if (ms < 9.95)
    std::snprintf(text, sizeof text, "%.1f ms", ms);
  else if (ms < 999.5)
    std::snprintf(text, sizeof text, "%.0f ms", ms);
  else if (ms < 119'950)
    std::snprintf(text, sizeof text, "%.1f s", ms / 1e3);
  else
    std::snprintf(text, sizeof text, "%lld min %lld s", static_cast<long long>(ns / 60'000'000'000),
                  static_cast<long long>(ns / 1'000'000'000 % 60));
  return text;
}

/// "trainer 0", "trainer 0 and trainer 2", "trainer 0, trainer 1 and 6 others"
std::string shown_names(const std::vector<std::string>& names) {
  const bool cut = names.size() > kMaxNames;
  const std::size_t shown = cut ? kMaxNames - 2 : names.size() - 1;
  std::string text;
  for (std::size_t i = 0; i < shown; ++i) text.append(i > 0 ? ", " : "").append(names[i]);
  if (!text.empty()) text += " and ";
  return text + (cut ? std::to_string(names.size() - shown) + " others" : names.back());
}

std::string shown_delay(const Followers& group) {
  const std::int64_t first = std::max<std::int64_t>(group.first_ns, 0);
  const std::string last = shown_time(group.last_ns);
  return (shown_time(first) == last ? "" : shown_time(first) + " to ") + last + " later";
}

std::string shown_followers(const Followers& group) {
  if (group.asked) {
    const bool one = group.names.size() == 1;
    const std::string who = "then " + std::to_string(group.names.size()) + (one ? " other " : " others ");
    const bool plural = !one && group.said.starts_with("was ");
    return who + (plural ? "were" + group.said.substr(3) : group.said) +
           (group.said.starts_with("ended")
                ? one ? " after fleetrun stopped it" : " after fleetrun stopped them"
                : " while fleetrun stopped the job");
  }
  if (group.last_ns < 0)
    return "before it, being quicker to die, " + shown_names(group.names) + ", " +
           shown_time(-group.last_ns) + " earlier: " + group.said;
  return "then " + shown_names(group.names) + ", " + shown_delay(group) + ": " + group.said;
}

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines = split(text, '\n');
  while (!lines.empty() && lines.back().empty()) lines.pop_back();
  return lines;
}

/// A long block loses its middle.
std::vector<std::string> shortened(std::vector<std::string> lines) {
  if (lines.size() <= kMaxLines) return lines;
  const std::size_t dropped = lines.size() - kMaxLines + 1;
  const auto begin = lines.begin() + static_cast<std::ptrdiff_t>(kHeadLines);
  lines.erase(begin, begin + static_cast<std::ptrdiff_t>(dropped));
  lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(kHeadLines),
               "… " + std::to_string(dropped) + " lines …");
  return lines;
}

class Screen {
 public:
  void line(const std::string& text) { text_.append("  ").append(text).append("\n"); }
  void head(const std::string& text) { text_.append(text).append("\n"); }
  void quoted(const std::vector<std::string>& lines) {
    for (const std::string& quoted : lines) text_.append("  | ").append(quoted).append("\n");
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

void show_log(const FirstFailure& first, std::string_view last_lines, Screen& screen) {
  const std::string plain = launcher::plain_text(last_lines);
  const std::vector<std::string> end = lines_of(plain);
  const bool in_sight = end.size() <= kMaxLines &&
                        (first.cause.block.empty() || plain.find(first.cause.block) != std::string::npos);
  if (in_sight) return;
  if (!first.cause.block.empty()) return screen.quoted(shortened(lines_of(first.cause.block)));
  const std::size_t count = std::min(end.size(), kLastLines);
  screen.quoted({end.end() - static_cast<std::ptrdiff_t>(count), end.end()});
}

void show_attempts(const launcher::JobHistory& history, const launcher::Plan& plan, Screen& screen) {
  const auto& attempts = history.attempts();
  if (history.restarts() > 0) screen.line("restarts so far: " + std::to_string(history.restarts()));
  const std::size_t earlier = attempts.empty() ? 0 : attempts.size() - 1;
  for (std::size_t i = earlier > kMaxAttempts ? earlier - kMaxAttempts : 0; i < earlier; ++i)
    screen.line("  attempt " + std::to_string(attempts[i].attempt) + ": " +
                plan.processes[attempts[i].index].name + " " + attempts[i].cause.text);
  if (!attempts.empty() && !attempts.back().restarted && !attempts.back().decision.empty())
    screen.line("no restart: " + attempts.back().decision);
}

/// What became of the model that parameter servers held.
void show_tables(const launcher::Plan& plan, const FirstFailure& first, Screen& screen) {
  const auto server = std::find_if(
      plan.processes.begin(), plan.processes.end(),
      [](const launcher::ProcessSpec& process) { return process.identity.role == Role::server; });
  if (server == plan.processes.end()) return;
  const std::string kept = server->environment.value_or("FLEETRUN_PS_CHECKPOINT", "");
  if (kept.empty())
    return screen.line(
        "tables: lost, but for what the script has saved; --max_restart=N starts a trainer again alone, "
        "--ps_checkpoint=DIR keeps the tables");
  const auto says = [&](std::string_view words) { return first.cause.text.find(words) != std::string::npos; };
  if (says(kHasLostItsTables) || says(kMayHaveLostItsTables))
    return screen.line("tables: lost with that server's, but for what the script has saved");
  screen.line("tables: kept in " + kept + "; --ps_checkpoint=" + shell_quoted(kept) +
              " --ps_checkpoint_found=resume goes on from them");
}

}  // namespace

std::string failure_screen(const launcher::Report& report, const launcher::Plan& plan,
                           const launcher::JobHistory& history, std::string_view last_lines) {
  if (!report.first) return {};
  const FirstFailure& first = *report.first;
  Screen screen;
  screen.head("first failure: " + first.name + " " + first.cause.text);
  std::string where = "attempt " + std::to_string(first.attempt);
  if (first.pid > 0)
    where += ", pid " + std::to_string(first.pid) + ", " + shown_time(first.after_ns) + " after the start";
  screen.line(where + ", log " + first.log);
  show_log(first, last_lines, screen);
  for (const std::string& fact : lines_of(first.cause.detail)) screen.line(fact);
  for (const Followers& group : first.followers) screen.line(shown_followers(group));
  show_attempts(history, plan, screen);
  show_tables(plan, first, screen);
  if (!first.cause.hint.empty()) screen.line("hint: " + first.cause.hint);
  return screen.take();
}

}  // namespace fleetrun::cli
