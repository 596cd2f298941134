#include "launcher/run/server_count.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <algorithm>
#include <cinttypes>
#include <fstream>
#include <optional>
#include <set>
#include <utility>

#include "runtime/base/clock.h"
#include "runtime/base/error.h"
#include "runtime/base/own_file.h"

namespace fleetrun::launcher {
namespace {

constexpr std::chrono::milliseconds kLook{20};
constexpr int kLooksPerStart = 25;  // after which a process that ended as it was wanted again is started
constexpr std::int64_t kNsPerMs = 1'000'000;

/// Replaced as a whole: servers read it at any time.
void write_count(const std::string& path, int processes) {
  make_own_directory(path.substr(0, path.rfind('/')));
  const std::string text = std::to_string(processes) + "\n", before = path + ".new";
  const UniqueFd file(
      check_errno(open_own(before, O_WRONLY | O_CREAT | O_TRUNC, Readers::owner), "open", before));
  const ssize_t size = ::write(file.value(), text.data(), text.size());
  check_errno(size == static_cast<ssize_t>(text.size()) ? 0 : -1, "write", before);
  check_errno(::rename(before.c_str(), path.c_str()), "rename", path);
}

/// The process that serves a server, as its note says.
std::optional<int> host_of(const std::string& directory, std::size_t server) {
  std::ifstream note(directory + "/host-" + std::to_string(server));
  int process = -1;
  if (!(note >> process)) return std::nullopt;
  return process;
}

class Counting final : public JobPart {
 public:
  Counting(JobControl& control, std::size_t role, std::shared_ptr<ServerCount> asked)
      : control_(control), role_(role), asked_(std::move(asked)), look_(control.loop()) {
    for (std::size_t i = 0; i < control.plan().processes.size(); ++i)
      if (control.plan().processes[i].role == role) processes_.push_back(i);
    file_ = control.plan().processes[processes_.front()].environment.value_or("FLEETRUN_PS_PROCESSES", "");
    count_ = static_cast<int>(*control.plan().roles[role].wanted);
    write_count(file_, count_);
    asked_->set([this](int processes, ServerCount::Done done) { resize(processes, std::move(done)); });
  }
  ~Counting() override { asked_->set({}); }
  Counting(const Counting&) = delete;
  Counting& operator=(const Counting&) = delete;

  void on_event(const JobEvent& event) override {
    if (const auto* ready = std::get_if<event::RoleReady>(&event))
      is_ready_ = is_ready_ || ready->role == role_;
    if (const auto* started = std::get_if<event::ProcessStarted>(&event)) running_.insert(started->index);
    if (const auto* exited = std::get_if<event::ProcessExited>(&event)) running_.erase(exited->index);
    const bool is_over =
        std::holds_alternative<event::StopBegan>(event) || std::holds_alternative<event::JobEnded>(event);
    if (is_over) end("the job ends");
  }

 private:
  void resize(int processes, ServerCount::Done done) {
    const int servers = static_cast<int>(processes_.size());
    if (processes < 1 || processes > servers)
      return done("1 to " + std::to_string(servers) + " processes can serve this job's " +
                  std::to_string(servers) + " servers, not " + std::to_string(processes));
    if (!is_ready_) return done("its servers are not ready yet; ask again when they are");
    if (done_)
      return done("its servers are moving between " + std::to_string(move_.from) + " and " +
                  std::to_string(move_.to) + " processes; ask again when they have");
    if (processes == count_) return done({});
    try {
      write_count(file_, processes);
    } catch (const Error& error) {
      return done(error.what());
    }
    move_ = {std::exchange(count_, processes), processes, 0, 0, false, 0};
    began_ = monotonic_ns();
    move_.of = left_to_move();
    done_ = std::move(done);
    looks_ = 0;
    control_.want({role_, static_cast<std::size_t>(processes)});
    control_.tell(move_);
    look_again();
  }

  int left_to_move() const {
    const std::string directory = file_.substr(0, file_.rfind('/'));
    int left = 0;
    for (std::size_t server = 0; server < processes_.size(); ++server)
      left += host_of(directory, server) == static_cast<int>(server) % count_ ? 0 : 1;
    return left;
  }

  /// Whether processes that are not wanted run.
  bool has_more_processes() const {
    const auto first = processes_.begin() + count_;
    return std::any_of(first, processes_.end(), [&](std::size_t index) { return running_.contains(index); });
  }

  void look_again() {
    look_.expires_after(kLook);
    look_.async_wait([this](const boost::system::error_code& error) {
      if (!error) look();
    });
  }

  void look() {
    const int left = left_to_move(), moved = move_.of - left;
    if (left == 0 && !has_more_processes()) {
      move_.moved = moved;
      move_.done = true;
      move_.took_ms = (monotonic_ns() - began_) / kNsPerMs;
      control_.tell(move_);
      return end({});
    }
    if (std::exchange(move_.moved, moved) != moved) control_.tell(move_);
    if (++looks_ % kLooksPerStart == 0) control_.want({role_, static_cast<std::size_t>(count_)});
    look_again();
  }

  void end(const std::string& why_not) {
    look_.cancel();
    if (const ServerCount::Done done = std::exchange(done_, nullptr)) done(why_not);
  }

  JobControl& control_;
  const std::size_t role_;
  std::shared_ptr<ServerCount> asked_;  // with the control socket
  boost::asio::steady_timer look_;
  std::vector<std::size_t> processes_;  // of the servers, in the plan
  std::set<std::size_t> running_;
  std::string file_;
  int count_ = 1;
  bool is_ready_ = false;
  ServerCount::Done done_;  // while servers move
  event::ServersMove move_;
  std::int64_t began_ = 0;
  int looks_ = 0;
};

}  // namespace

MakeJobPart server_count(std::shared_ptr<ServerCount> asked) {
  return [asked = std::move(asked)](JobControl& control) -> std::unique_ptr<JobPart> {
    const std::vector<RolePlan>& roles = control.plan().roles;
    for (std::size_t role = 0; role < roles.size(); ++role)
      if (roles[role].wanted) return std::make_unique<Counting>(control, role, asked);
    return nullptr;
  };
}

}  // namespace fleetrun::launcher
