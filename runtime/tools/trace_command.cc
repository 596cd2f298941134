#include "runtime/tools/trace_command.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>

#include "runtime/base/argument_reader.h"
#include "runtime/base/error.h"
#include "runtime/base/own_file.h"
#include "runtime/base/text.h"
#include "runtime/tools/curve_plot.h"
#include "runtime/tools/event_series.h"
#include "runtime/tools/trace_merge.h"

namespace fleetrun::trace {
namespace {

void print(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

int run_merge(const std::vector<std::string>& arguments) {
  ArgumentReader words(arguments, "for example: fleetrun trace merge FOLDER -o trace.json");
  std::string folder, out = "trace.json";
  while (words.next()) {
    if (words.word() == "-o" || words.word() == "--out")
      out = words.value();
    else if (words.is_flag())
      words.refuse("trace merge has no flag " + printable(words.word()));
    else if (folder.empty())
      folder = words.word();
    else
      words.refuse("trace merge takes one folder, and there are " + printable(folder) + " and " +
                   printable(words.word()));
  }
  if (folder.empty()) words.refuse("trace merge: the folder with the timelines is not named");
  const Summary summary = merge(find_timelines(folder), out);
  print(summary_text(summary) + "\n" + out + " is the timeline: open it at https://ui.perfetto.dev\n");
  return 0;
}

int run_plot(const std::vector<std::string>& arguments) {
  constexpr std::int64_t kMin = 300, kMax = 20'000;
  ArgumentReader words(arguments, "for example: fleetrun plot EVENTS -o curve.png");
  std::vector<std::string> paths;
  std::string out = "curve.png";
  std::int64_t width = 1200;
  bool as_json = false;
  while (words.next()) {
    if (words.word() == "-o" || words.word() == "--out")
      out = words.value();
    else if (words.word() == "--width")
      width = std::min(words.number(kMin), kMax);
    else if (words.word() == "--json")
      as_json = true;
    else if (words.is_flag())
      words.refuse("plot has no flag " + printable(words.word()));
    else
      paths.push_back(words.word());
  }
  if (paths.empty()) words.refuse("plot: no file of events, folder of them or log is named");
  const Curves curves = read_curves(paths);
  if (as_json) {
    print(to_json(curves) + "\n");
    return 0;
  }
  const std::string png = plot(curves, static_cast<std::size_t>(width)).png();
  const UniqueFd file(open_own(out, O_WRONLY | O_CREAT | O_TRUNC, Readers::by_directory));
  if (!file || ::write(file.value(), png.data(), png.size()) != static_cast<ssize_t>(png.size()))
    throw Error(ErrorKind::host, "the picture could not be written to " + printable(out),
                "name a file in a folder that is there, with space left");
  print(out + " has the curves\n");
  return 0;
}

std::string merge_help() {
  return "usage: fleetrun trace merge FOLDER [-o FILE]\n\n"
         "Joins the timelines in a folder, which FLEETRUN_TRACE has named, into one file (default: "
         "trace.json), and says\n"
         "what took the time.\n";
}

std::string plot_help() {
  return "usage: fleetrun plot FILE|FOLDER... [-o FILE.png] [--width PIXELS] [--json]\n\n"
         "Plots the variables that were fetched in training, a panel per variable and a line per trainer, as "
         "a "
         "PNG (default:\n"
         "curve.png, 1200 pixels wide). FOLDER is the one that FLEETRUN_EVENTS has named, FILE one of its "
         "files, or the log\n"
         "of a trainer whose train_from_dataset prints what it fetches. --json prints the values as one line "
         "of JSON instead.\n\n"
         "examples:\n"
         "  FLEETRUN_EVENTS=events fleetrun --server_num=1 --trainer_num=2 train.py; fleetrun plot events\n"
         "  fleetrun plot log/workerlog.* -o loss.png\n";
}

}  // namespace

int run_trace(const std::vector<std::string>& arguments) {
  const std::string command = arguments.empty() ? "" : arguments[0];
  const std::vector<std::string> rest(arguments.begin() + (arguments.empty() ? 0 : 1), arguments.end());
  for (const std::string& word : rest) {
    if (word != "--help" && word != "-h") continue;
    print(command == "plot" ? plot_help() : merge_help());
    return 0;
  }
  if (command == "merge") return run_merge(rest);
  if (command == "plot") return run_plot(rest);
  throw Error(ErrorKind::usage, "fleetrun-trace has no command '" + printable(command) + "'",
              "there is merge and plot");
}

}  // namespace fleetrun::trace
