// What the terminal shows of a job's processes: one view of all their logs, or one for each of the two
// standard streams where these have files of their own.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "launcher/logs/log_files.h"
#include "launcher/logs/log_view.h"

namespace fleetrun::launcher {

enum class LogSide { whole, out, err };

/// One view: of which files, how, and of whose.
struct JobViewPart {
  LogSide side = LogSide::whole;
  ViewSettings settings;
  std::vector<ViewedProcess> viewed;  // by index
};

class JobView {
 public:
  /// Parts that show nobody are left out.
  JobView(boost::asio::io_context& loop, const std::vector<JobViewPart>& parts);

  // As LogView, for all parts.
  void attach(std::size_t index, const LogFile& log);
  void ended(std::size_t index, bool failed);
  void drain(std::function<void()> on_done);
  /// The first that is not 0.
  int problem() const noexcept;

 private:
  struct Part {
    LogSide side;
    std::unique_ptr<LogView> view;
  };
  boost::asio::io_context& loop_;
  std::vector<Part> parts_;
  std::size_t draining_ = 0;
  std::function<void()> on_drained_;
};

}  // namespace fleetrun::launcher
