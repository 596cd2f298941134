// How many processes serve a job's parameter servers, where that may change while it runs (--server_num=2:5).
//
// The servers' processes read the number from a file and move the servers themselves
// (ps/rpc/hosted_servers.h); each server's note `host` says which process serves it. Here the file is
// written, processes that are wanted are started, and the notes are read until all servers are where they
// belong: server s with process s mod N. Processes that are not wanted end by themselves.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "launcher/run/job_control.h"

namespace fleetrun::launcher {

/// What the control socket asks.
class ServerCount {
 public:
  /// Called with nothing once it is so, or with why not.
  using Done = std::function<void(std::string why_not)>;

  /// `done` is called once: at once, or later, on the job's loop.
  void resize(int processes, Done done) {
    if (resize_) return resize_(processes, std::move(done));
    done(
        "the number of this job's server processes is fixed: start it with --server_num=N:MOST, for "
        "example --server_num=2:5");
  }
  /// Of the part that does it.
  void set(std::function<void(int, Done)> resize) { resize_ = std::move(resize); }

 private:
  std::function<void(int, Done)> resize_;
};

/// Nothing where the number is fixed. Making it throws Error(host) when the file cannot be written.
MakeJobPart server_count(std::shared_ptr<ServerCount> asked);

}  // namespace fleetrun::launcher
