#include "launcher/logs/job_view.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include <algorithm>

namespace fleetrun::launcher {

JobView::JobView(boost::asio::io_context& loop, const std::vector<JobViewPart>& parts) : loop_(loop) {
  for (const JobViewPart& part : parts) {
    const bool shows = std::any_of(part.viewed.begin(), part.viewed.end(), [](const ViewedProcess& process) {
      return process.showing != Showing::never;
    });
    if (shows) parts_.push_back({part.side, view_logs(loop, part.viewed, part.settings)});
  }
}

void JobView::attach(std::size_t index, const LogFile& log) {
  for (const Part& part : parts_) {
    const std::string& path = part.side == LogSide::whole ? log.path
                              : part.side == LogSide::out ? log.out_path
                                                          : log.err_path;
    if (!path.empty()) part.view->attach(index, path, part.side == LogSide::whole ? log.start : 0);
  }
}

void JobView::ended(std::size_t index, bool failed) {
  for (const Part& part : parts_) part.view->ended(index, failed);
}

void JobView::drain(std::function<void()> on_done) {
  if (parts_.empty()) return boost::asio::post(loop_, std::move(on_done));
  on_drained_ = std::move(on_done);
  draining_ = parts_.size();
  for (const Part& part : parts_) {
    part.view->drain([this] {
      if (--draining_ == 0) on_drained_();
    });
  }
}

int JobView::problem() const noexcept {
  for (const Part& part : parts_)
    if (const int error = part.view->problem()) return error;
  return 0;
}

}  // namespace fleetrun::launcher
