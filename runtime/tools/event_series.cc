#include "runtime/tools/event_series.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/json_text.h"
#include "runtime/base/text.h"

namespace fleetrun::trace {
namespace {

using nlohmann::json;
using Values = std::vector<std::pair<std::string, double>>;

constexpr const char* kHint =
    "let FLEETRUN_EVENTS name a folder while the job runs, and name that here, or the log of a trainer whose "
    "train_from_dataset prints what it fetches";

/// What stands between `begin` and `end` in front of `text`, which then goes on behind it.
std::optional<std::string_view> take(std::string_view& text, std::string_view begin, std::string_view end) {
  if (!text.starts_with(begin)) return std::nullopt;
  const std::size_t stop = text.find(end, begin.size());
  if (stop == std::string_view::npos) return std::nullopt;
  const std::string_view found = text.substr(begin.size(), stop - begin.size());
  text.remove_prefix(stop + end.size());
  return found;
}

std::optional<double> number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

/// Puts values after those that the series has.
class Adder {
 public:
  Adder(const std::string& name, Curves& curves) : name_(name), curves_(curves) {}

  std::size_t lines() const noexcept { return lines_; }

  /// {"batches": 100, "values": {"loss": 0.53}, …}
  bool take_event(const std::string& line) {
    const json event = read_json<json>(line);
    if (!event.is_object() || !event.contains("batches") || !event.contains("values")) return false;
    if (!event["batches"].is_number() || !event["values"].is_object()) return false;
    now_ += event["batches"].get<double>();
    for (const auto& [name, value] : event["values"].items())
      if (value.is_number()) add(name, value.get<double>());
    ++lines_;
    return true;
  }

  /// time: [2022-05-18 11:27:27], batch: [100], loss[1]:[0.53], auc[1]:[0.64]
  void take_printed(std::string_view line) {
    if (!take(line, "time: [", "], ")) return;
    const auto batch = take(line, "batch: [", "]");
    const auto count = batch ? number(*batch) : std::nullopt;
    if (!count) return;
    // The count begins anew with each pass.
    now_ += *count > last_ ? *count - last_ : *count;
    last_ = *count;
    while (line.starts_with(", ")) {
      const auto name = take(line, ", ", "[");
      const auto size = name ? take(line, "", "]:[") : std::nullopt;
      const auto text = size ? take(line, "", "]") : std::nullopt;
      if (!text) break;
      if (const auto value = number(*text)) add(std::string(*name), *value);
    }
    ++lines_;
  }

 private:
  void add(const std::string& fetched, double value) {
    std::vector<Series>& all = curves_[fetched];
    if (all.empty() || all.back().name != name_) all.push_back({name_, {}});
    all.back().samples.push_back({now_, value});
  }

  const std::string& name_;
  Curves& curves_;
  double now_ = 0, last_ = 0;
  std::size_t lines_ = 0;
};

/// "trainer-0.jsonl" and "workerlog.0" → "trainer 0".
std::string series_name(const std::filesystem::path& path) {
  std::string name = path.filename().string();
  if (name.ends_with(".jsonl")) name.resize(name.size() - 6);
  for (const std::string_view prefix : {"trainer-", "workerlog."}) {
    if (name.starts_with(prefix) && parse_integer(std::string_view(name).substr(prefix.size())))
      return "trainer " + name.substr(prefix.size());
  }
  return name;
}

/// By length first, so that trainer 10 comes after trainer 9.
bool is_before(const std::string& a, const std::string& b) {
  return std::pair(a.size(), a) < std::pair(b.size(), b);
}

std::vector<std::string> files_of(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) return {path};
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(path, error))
    if (entry.path().extension() == ".jsonl") files.push_back(entry.path().string());
  std::ranges::sort(files, is_before);
  if (files.empty()) throw Error(ErrorKind::data, "no event file (*.jsonl) is in " + printable(path), kHint);
  return files;
}

}  // namespace

std::size_t add_series(std::istream& text, const std::string& name, Curves& curves) {
  Adder adder(name, curves);
  for (std::string line; std::getline(text, line);) {
    if (!adder.take_event(line)) adder.take_printed(line);
  }
  return adder.lines();
}

Curves read_curves(const std::vector<std::string>& paths) {
  Curves curves;
  for (const std::string& path : paths) {
    for (const std::string& name : files_of(path)) {
      std::ifstream file(name);
      if (!file)
        throw Error(ErrorKind::usage, printable(name) + " cannot be read: " + std::strerror(errno), kHint);
      if (add_series(file, series_name(name), curves) == 0)
        throw Error(ErrorKind::data, printable(name) + " has no fetched values", kHint);
    }
  }
  return curves;
}

std::string to_json(const Curves& curves) {
  auto all = nlohmann::ordered_json::object();
  for (const auto& [fetched, trainers] : curves) {
    for (const Series& series : trainers) {
      std::vector<double> batches, values;
      for (const Sample& sample : series.samples) {
        batches.push_back(sample.batches);
        values.push_back(sample.value);
      }
      all[fetched].push_back({{"name", series.name}, {"batches", batches}, {"values", values}});
    }
  }
  return json_text(all);
}

}  // namespace fleetrun::trace
