// fleetrun-ps: looks into the parameter servers of a running job. `fleetrun ps` finds the job and runs this
// program with the endpoints of its servers; it is one of its own so that fleetrun stays free of gRPC.
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "ps/rpc/connect.h"
#include "ps/tools/arguments.h"
#include "ps/tools/stat_table.h"
#include "ps/tools/stored_rows_text.h"
#include "runtime/base/environ.h"
#include "runtime/base/error.h"
#include "runtime/base/unique_fd.h"

namespace {

using namespace fleetrun;
using namespace fleetrun::ps;

constexpr int kRefused = 125;
constexpr int kSecond = 1000;

/// False when nobody reads it any more.
bool print(const std::string& text) {
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t count = ::write(STDOUT_FILENO, text.data() + done, text.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    done += static_cast<std::size_t>(count);
  }
  return true;
}

Access access_for(const ToolRequest& request) {
  Environ environ = Environ::of_process();
  if (request.insecure) environ.set("FLEETRUN_INSECURE", "1");
  if (!request.secret_file.empty()) {
    environ.set("FLEETRUN_SECRET_FILE", request.secret_file);
    environ.erase("FLEETRUN_INSECURE");
  }
  return access_of(environ);
}

std::string lines(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts) all += text + "\n";
  return all;
}

/// Whether a second passed; a signal, or standard output that is closed, ends it before.
bool wait_a_second(int signals) {
  pollfd events[] = {{signals, POLLIN, 0}, {STDOUT_FILENO, 0, 0}};
  const int ready = ::poll(events, 2, kSecond);
  return ready == 0 || (ready < 0 && errno == EINTR);
}

int watch(Observer& observer, const ToolRequest& request) {
  sigset_t ending;
  ::sigemptyset(&ending);
  ::sigaddset(&ending, SIGINT);
  ::sigaddset(&ending, SIGTERM);
  ::sigprocmask(SIG_BLOCK, &ending, nullptr);
  const UniqueFd signals(
      check_errno(::signalfd(-1, &ending, SFD_CLOEXEC), "signalfd", "watch parameter servers"));
  const bool is_terminal = ::isatty(STDOUT_FILENO) != 0;
  std::vector<std::string> before = observer.client->stat();
  if (request.json && !print(lines(before))) return 0;
  while (wait_a_second(signals.value())) {
    const std::vector<std::string> now = observer.client->stat();
    const std::string text = request.json ? lines(now) : stat_table(now, &before);
    if (!print((is_terminal && !request.json ? "\x1b[H\x1b[2J" : "") + text)) return 0;
    before = now;
  }
  return 0;
}

StoredRows get(Observer& observer, const ToolRequest& request) {
  const TableConfig& table = find_table(observer.tables, request.words.at(0));
  if (table.kind == TableConfig::Kind::sparse && request.keys.empty())
    throw Error(ErrorKind::usage, "get needs keys of table '" + table.name + "'",
                "fleetrun ps get " + table.name + " KEY…");
  return observer.client->get(table.id, request.keys);
}

void shrink(Observer& observer, const ToolRequest& request) {
  const TableConfig* only = request.words.empty() ? nullptr : &find_table(observer.tables, request.words[0]);
  for (const TableConfig& table : observer.tables) {
    if (only ? table.id != only->id : table.kind != TableConfig::Kind::sparse) continue;
    const std::uint64_t erased = observer.client->shrink(table.id);
    print(table.name + ": " + std::to_string(erased) + " rows erased, " +
          std::to_string(observer.client->rows(table.id)) + " left\n");
  }
}

void export_rows(Observer& observer, const ToolRequest& request) {
  const std::string number = std::to_string(observer.client->export_rows(request.words.at(0), request.since));
  print(request.json ? "{\"number\":" + number + ",\"since\":" + std::to_string(request.since) + "}\n"
                     : "exported to " + request.words.at(0) + ", number " + number + "\n");
}

int run(const ToolRequest& request) {
  if (request.command == ToolRequest::Command::help) {
    print(tool_help(request.about));
    return 0;
  }
  Observer observer =
      observe(request.endpoints, {.connect_timeout = request.timeout, .access = access_for(request)});
  switch (request.command) {
    case ToolRequest::Command::stat:
      if (request.watch) return watch(observer, request);
      print(request.json ? lines(observer.client->stat()) : stat_table(observer.client->stat()));
      return 0;
    case ToolRequest::Command::save:
      observer.client->save(request.words.at(0), static_cast<SaveMode>(request.mode));
      print("saved to " + request.words.at(0) + "\n");
      return 0;
    case ToolRequest::Command::export_rows:
      export_rows(observer, request);
      return 0;
    case ToolRequest::Command::get:
      print(stored_rows_text(find_table(observer.tables, request.words.at(0)), request.keys,
                             get(observer, request), request.json));
      return 0;
    case ToolRequest::Command::shrink:
      shrink(observer, request);
      return 0;
    case ToolRequest::Command::help:
      break;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  ::signal(SIGPIPE, SIG_IGN);
  Error refusal(ErrorKind::host, "");
  try {
    return run(parse_tool_arguments({argv + 1, argv + argc}));
  } catch (const Error& error) {
    refusal = error;
  } catch (const std::exception& error) {
    refusal = Error(ErrorKind::host, error.what());
  }
  std::fputs((render(refusal, "fleetrun ps") + "\n").c_str(), stderr);
  return kRefused;
}
