// A server's metrics in a file, for the launcher beside it: written once a second as a whole (by rename),
// removed in the end. fleetrun names the file in FLEETRUN_SERVER_FIGURES.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace fleetrun::ps {

class MetricsFile {
 public:
  /// `text` is called on a thread of its own, and so is `warn`, once, when the file cannot be written: the
  /// file is given up then, and nothing else.
  MetricsFile(std::string path, std::function<std::string()> text, std::function<void(std::string)> warn,
              std::chrono::milliseconds period = std::chrono::seconds(1));
  ~MetricsFile();
  MetricsFile(const MetricsFile&) = delete;
  MetricsFile& operator=(const MetricsFile&) = delete;

 private:
  void run();

  const std::string path_;
  const std::function<std::string()> text_;
  const std::function<void(std::string)> warn_;
  const std::chrono::milliseconds period_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace fleetrun::ps
