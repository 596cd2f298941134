#include "runtime/trainer/event_file.h"

#include <fcntl.h>

#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/own_file.h"

namespace fleetrun::runtime {

namespace {

Error not_written(const std::string& path) {
  return Error(ErrorKind::host, "the events could not be written to " + path + ": " + std::strerror(errno),
               "let FLEETRUN_EVENTS name a folder that is there, with space left");
}

std::string json_text(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return quoted + "\"";
}

template <class... Values>
std::string formatted(const char* format, Values... values) {
  char text[160];
  std::snprintf(text, sizeof text, format, values...);
  return text;
}

}  // namespace

std::string event_line(const TrainingEvent& event, double time) {
  const auto whole = [](std::uint64_t value) { return static_cast<unsigned long long>(value); };
  std::string line =
      formatted(R"({"time": %.3f, "batch": %llu, "batches": %llu, "examples": %llu, "values": {)", time,
                whole(event.batch), whole(event.batches), whole(event.examples));
  bool is_first = true;
  for (const auto& [name, value] : event.values) {
    line += (std::exchange(is_first, false) ? "" : ", ") + json_text(name) + ": " +
            (std::isfinite(value) ? formatted("%.9g", value) : "null");
  }
  return line + "}}\n";
}

EventFile::EventFile(const std::string& folder, std::int64_t rank)
    : path_(folder + "/trainer-" + std::to_string(rank) + ".jsonl") {
  std::error_code ignored;  // opening says more
  std::filesystem::create_directories(folder, ignored);
  file_.reset(open_own(path_, O_WRONLY | O_CREAT | O_APPEND, Readers::by_directory));
  if (!file_) throw not_written(path_);
}

void EventFile::add(const TrainingEvent& event) const {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const std::string line = event_line(event, std::chrono::duration<double>(now).count());
  const ssize_t written = ::write(file_.value(), line.data(), line.size());
  if (written != static_cast<ssize_t>(line.size())) throw not_written(path_);
}

}  // namespace fleetrun::runtime
