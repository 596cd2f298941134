#include "runtime/tools/trace_merge.h"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <tuple>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/json_text.h"
#include "runtime/base/own_file.h"
#include "runtime/base/text.h"

namespace fleetrun::trace {
namespace {

using nlohmann::json;

constexpr const char* kOfWhom =
    "timelines are written where FLEETRUN_TRACE names the folder, by train_from_dataset, infer_from_dataset, "
    "Executor.run "
    "and parameter servers of the fleetrun package";

/// A timeline, and who wrote it.
struct Source {
  std::string path;
  std::string process;
  std::int64_t start_us = 0;
  std::map<int, int> tracks;  // its numbers → those of the merged file
};

/// The first line, closed.
json header_of(const std::string& line) {
  return read_json<json>(line + "]}");
}

bool is_timeline(const json& header) {
  const auto data = header.is_object() ? header.find("otherData") : header.end();
  return data != header.end() && data->contains("process") && data->contains("start_us");
}

Source open_source(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  if (!file)
    throw Error(ErrorKind::host, "the timeline " + path + " cannot be read: " + std::strerror(errno));
  std::getline(file, line);
  const json header = header_of(line);
  if (!is_timeline(header)) throw Error(ErrorKind::data, path + " is not a timeline of fleetrun's", kOfWhom);
  return {path,
          header["otherData"]["process"].get<std::string>(),
          header["otherData"]["start_us"].get<std::int64_t>(),
          {}};
}

/// "trainer 10" after "trainer 9", servers after trainers.
std::tuple<bool, std::string, std::int64_t> place_of(const std::string& process) {
  const std::size_t blank = process.rfind(' ');
  const std::string role = process.substr(0, blank);
  const auto rank = blank == std::string::npos ? std::nullopt : parse_integer(process.substr(blank + 1));
  return {role != "trainer", role, rank.value_or(0)};
}

/// Tracks of one number lie together: the thread, the thread that exchanges for it, its reader.
std::int64_t track_place(const std::string& name) {
  constexpr std::array<std::string_view, 3> kKinds{"thread", "exchange", "reader"};
  const std::size_t blank = name.rfind(' ');
  const auto kind = std::ranges::find(kKinds, std::string_view(name).substr(0, blank)) - kKinds.begin();
  const auto number = blank == std::string::npos ? std::nullopt : parse_integer(name.substr(blank + 1));
  return 4 * number.value_or(0) + kind;
}

class Merger {
 public:
  Merger(std::vector<Source> sources, std::ofstream& out) : sources_(std::move(sources)), out_(out) {
    for (const Source& source : sources_) start_us_ = std::min(start_us_, source.start_us);
  }

  Summary run() {
    out_ << R"({"displayTimeUnit": "ms", "traceEvents": [)";
    for (Source& source : sources_) {
      if (summary_.processes.empty() || summary_.processes.back().name != source.process)
        begin_process(source.process);
      copy(source);
    }
    out_ << "\n]}\n";
    if (summary_.spans > 0) summary_.seconds = (last_us_ - first_us_) / 1e6;
    return std::move(summary_);
  }

 private:
  ProcessSummary& process() { return summary_.processes.back(); }

  void write(const json& event) {
    out_ << (std::exchange(is_first_, false) ? "\n" : ",\n") << json_text(event);
  }

  void describe(const char* what, int track, const json& arguments) {
    json event = {{"name", what}, {"ph", "M"}, {"pid", summary_.processes.size()}, {"args", arguments}};
    if (track > 0) event["tid"] = track;
    write(event);
  }

  void begin_process(const std::string& name) {
    summary_.processes.push_back({name, 0, 0, {}});
    tracks_.clear();
    describe("process_name", 0, {{"name", name}});
    describe("process_sort_index", 0, {{"sort_index", summary_.processes.size()}});
  }

  /// The track of this name: a process has the same ones in each pass.
  int track_of(const std::string& name) {
    const auto [found, is_new] = tracks_.emplace(name, static_cast<int>(tracks_.size()) + 1);
    if (!is_new) return found->second;
    describe("thread_name", found->second, {{"name", name}});
    describe("thread_sort_index", found->second, {{"sort_index", track_place(name)}});
    return found->second;
  }

  void copy(Source& source) {
    ++process().files;
    bool is_ended = false;
    std::ifstream file(source.path);
    for (std::string line; !is_ended && std::getline(file, line);) {
      is_ended = line == "]}";
      if (line.ends_with(',')) line.pop_back();
      const json event = read_json<json>(line);
      if (event.is_object()) take(source, event);
    }
    if (!is_ended) ++process().cut_off;
  }

  void take(Source& source, const json& event) {
    const int track = event.value("tid", 0);
    if (event.value("name", "") == "thread_name")
      source.tracks[track] = track_of(event["args"].value("name", ""));
    if (event.value("ph", "") != "X") return;
    const std::string name = event.value("name", ""), category = event.value("cat", "");
    const double from = event.value("ts", 0.0) + static_cast<double>(source.start_us - start_us_);
    const double duration = event.value("dur", 0.0);
    Total& total = process().totals[category][name];
    ++total.spans;
    total.microseconds += duration;
    ++summary_.spans;
    first_us_ = std::min(first_us_, from);
    last_us_ = std::max(last_us_, from + duration);
    char figures[120];
    std::snprintf(figures, sizeof figures, R"("ph":"X","ts":%.3f,"dur":%.3f,"pid":%zu,"tid":%d})", from,
                  duration, summary_.processes.size(), source.tracks[track]);
    out_ << (std::exchange(is_first_, false) ? "\n" : ",\n") << R"({"name":)" << json_text(json(name))
         << R"(,"cat":)" << json_text(json(category)) << "," << figures;
  }

  std::vector<Source> sources_;
  std::ofstream& out_;
  std::int64_t start_us_ = std::numeric_limits<std::int64_t>::max();
  double first_us_ = std::numeric_limits<double>::max(), last_us_ = 0;
  std::map<std::string, int> tracks_;  // of the process
  bool is_first_ = true;
  Summary summary_;
};

Error not_written(const std::string& out) {
  return Error(ErrorKind::host, "the merged timeline could not be written to " + out,
               "name a file in a folder that is there, with space left");
}

// ---- for people ----

std::string number_text(double value, const char* format) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

double sum_of(const Totals& totals) {
  double sum = 0;
  for (const auto& [name, total] : totals) sum += total.microseconds;
  return sum;
}

std::vector<std::pair<std::string, Total>> longest_first(const Totals& totals) {
  std::vector<std::pair<std::string, Total>> sorted(totals.begin(), totals.end());
  std::ranges::stable_sort(
      sorted, [](const auto& a, const auto& b) { return a.second.microseconds > b.second.microseconds; });
  return sorted;
}

/// "compute 92 %, push 4 %, read 3 %, pull 1 %"
std::string shares_text(const Totals& totals) {
  const double sum = sum_of(totals);
  std::string text;
  for (const auto& [name, total] : longest_first(totals)) {
    const double share = sum > 0 ? 100 * total.microseconds / sum : 0;
    if (share < 0.5) continue;
    text += (text.empty() ? "" : ", ") + name + number_text(share, " %.0f %%");
  }
  return text;
}

std::string padded(std::string text, std::size_t width) {
  text.resize(std::max(width, text.size()), ' ');
  return text;
}

std::string operators_text(const Totals& operators) {
  constexpr std::size_t kMax = 10;
  std::size_t widest = std::string_view("operator").size();
  const auto sorted = longest_first(operators);
  for (const auto& [name, total] : sorted) widest = std::max(widest, name.size());
  std::string text = "\n" + padded("operator", widest) + "       calls  milliseconds   share\n";
  const double sum = sum_of(operators);
  for (std::size_t i = 0; i < std::min(kMax, sorted.size()); ++i) {
    const auto& [name, total] = sorted[i];
    text += padded(name, widest) + number_text(static_cast<double>(total.spans), "%12.0f") +
            number_text(total.microseconds / 1e3, "%14.1f") +
            number_text(sum > 0 ? 100 * total.microseconds / sum : 0, "%6.1f %%") + "\n";
  }
  if (sorted.size() > kMax) text += "and " + std::to_string(sorted.size() - kMax) + " more\n";
  return text;
}

}  // namespace

std::vector<std::string> find_timelines(const std::string& folder) {
  std::error_code error;
  std::vector<std::string> found;
  std::filesystem::directory_iterator entries(folder, error);
  if (error)
    throw Error(ErrorKind::usage, "the folder " + printable(folder) + " cannot be read: " + error.message(),
                "name the folder that FLEETRUN_TRACE named");
  for (const auto& entry : entries) {
    if (entry.path().extension() != ".json") continue;
    std::ifstream file(entry.path());
    std::string line;
    if (std::getline(file, line) && is_timeline(header_of(line))) found.push_back(entry.path().string());
  }
  if (found.empty()) throw Error(ErrorKind::data, "no timeline is in " + printable(folder), kOfWhom);
  return found;
}

Summary merge(const std::vector<std::string>& files, const std::string& out) {
  std::vector<Source> sources;
  for (const std::string& file : files) sources.push_back(open_source(file));
  std::ranges::stable_sort(sources, [](const Source& a, const Source& b) {
    return std::tuple(place_of(a.process), a.start_us) < std::tuple(place_of(b.process), b.start_us);
  });
  const std::string unfinished = out + ".unfinished";
  const UniqueFd opened(open_own(unfinished, O_WRONLY | O_CREAT | O_TRUNC, Readers::by_directory));
  std::ofstream file("/proc/self/fd/" + std::to_string(opened.value()));
  if (!opened || !file) throw not_written(out);
  Summary summary = Merger(std::move(sources), file).run();
  file.close();
  std::error_code error;
  if (!file.fail()) std::filesystem::rename(unfinished, out, error);
  if (!file.fail() && !error) return summary;
  std::filesystem::remove(unfinished, error);
  throw not_written(out);
}

std::string summary_text(const Summary& summary) {
  constexpr std::array<std::pair<const char*, const char*>, 3> kRows{
      {{"stage", "threads"}, {"reader", "readers"}, {"request", "requests"}}};
  std::size_t widest = 0;
  for (const ProcessSummary& process : summary.processes) widest = std::max(widest, process.name.size());
  std::string text = std::to_string(summary.processes.size()) +
                     (summary.processes.size() == 1 ? " process" : " processes") + ", " +
                     std::to_string(summary.spans) + " bars over " + number_text(summary.seconds, "%.2f s\n");
  Totals operators;
  for (const ProcessSummary& process : summary.processes) {
    std::string name = process.name;
    for (const auto& [category, what] : kRows) {
      const auto found = process.totals.find(category);
      if (found == process.totals.end()) continue;
      text += padded(std::exchange(name, ""), widest) + "  " + padded(what, 8) +
              number_text(sum_of(found->second) / 1e6, " %9.2f s: ") + shares_text(found->second) + "\n";
    }
    if (process.cut_off > 0)
      text += padded(name, widest) + "  it was killed: its last spans may be missing\n";
    const auto found = process.totals.find("operator");
    if (found == process.totals.end()) continue;
    for (const auto& [type, total] : found->second) {
      operators[type].spans += total.spans;
      operators[type].microseconds += total.microseconds;
    }
  }
  return operators.empty() ? text : text + operators_text(operators);
}

}  // namespace fleetrun::trace
