// A program that a test starts, talks to through pipes, and ends.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "runtime/base/unique_fd.h"

namespace fleetrun::tests {

class ChildProcess {
 public:
  /// Its standard error goes to the file `log`.
  ChildProcess(std::vector<std::string> command, const std::string& log) {
    int in[2], out[2];
    if (::pipe2(in, O_CLOEXEC) != 0 || ::pipe2(out, O_CLOEXEC) != 0) throw std::runtime_error("pipe2");
    input_ = UniqueFd(in[1]);
    output_ = UniqueFd(out[0]);
    const UniqueFd theirs_in(in[0]), theirs_out(out[1]);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, in[0], 0);
    ::posix_spawn_file_actions_adddup2(&actions, out[1], 1);
    ::posix_spawn_file_actions_addopen(&actions, 2, log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    std::vector<char*> words;
    for (std::string& word : command) words.push_back(word.data());
    words.push_back(nullptr);
    const int failure = ::posix_spawnp(&pid_, words[0], &actions, nullptr, words.data(), ::environ);
    ::posix_spawn_file_actions_destroy(&actions);
    if (failure != 0) throw std::runtime_error("no " + command[0]);
  }

  /// Runs `body` in a child of this process, with a descriptor for its output. The test has no threads then.
  explicit ChildProcess(const std::function<void(int output)>& body) {
    int out[2];
    if (::pipe2(out, O_CLOEXEC) != 0) throw std::runtime_error("pipe2");
    output_ = UniqueFd(out[0]);
    const UniqueFd theirs(out[1]);
    pid_ = ::fork();
    if (pid_ < 0) throw std::runtime_error("fork");
    if (pid_ == 0) {
      body(out[1]);
      ::_exit(0);
    }
  }

  ~ChildProcess() { end(SIGKILL); }
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  void signal(int number) const {
    if (pid_ > 0) ::kill(pid_, number);
  }
  void end(int number) {
    if (pid_ <= 0) return;
    ::kill(pid_, number);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  void say(const std::string& line) const {
    const std::string text = line + "\n";
    if (::write(input_.value(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
      throw std::runtime_error("write to a child");
  }
  /// The next line of its output; nullopt: none came in time.
  std::optional<std::string> line(std::chrono::milliseconds patience) {
    const auto deadline = std::chrono::steady_clock::now() + patience;
    for (;;) {
      if (const std::size_t end = text_.find('\n'); end != text_.npos) {
        const std::string line = text_.substr(0, end);
        text_.erase(0, end + 1);
        return line;
      }
      const auto left =
          std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
      pollfd ready{output_.value(), POLLIN, 0};
      char bytes[4096];
      if (left.count() <= 0 || ::poll(&ready, 1, static_cast<int>(left.count())) <= 0) return std::nullopt;
      const ssize_t size = ::read(output_.value(), bytes, sizeof bytes);
      if (size <= 0) return std::nullopt;
      text_.append(bytes, static_cast<std::size_t>(size));
    }
  }

 private:
  pid_t pid_ = -1;
  UniqueFd input_, output_;
  std::string text_;
};

}  // namespace fleetrun::tests
