// A parameter server in a process of its own (tests/integration/ps/server/server_process.cc),
// which a test may stop and kill.
#pragma once

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <vector>

namespace fleetrun::tests {

class ServerProcess {
 public:
  /// What server_process.cc takes: trainers, mode, rank, servers, milliseconds for trainers to come back …
  ServerProcess(std::initializer_list<std::string> arguments) {
    std::array<int, 2> out{};
    if (::pipe(out.data()) != 0) throw std::runtime_error("pipe");
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, out[1], 1);
    posix_spawn_file_actions_addclose(&actions, out[0]);
    posix_spawn_file_actions_addclose(&actions, out[1]);
    std::vector<std::string> words{SERVER_PROCESS};
    words.insert(words.end(), arguments);
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    const int failure = ::posix_spawn(&pid_, SERVER_PROCESS, &actions, nullptr, argv.data(), ::environ);
    posix_spawn_file_actions_destroy(&actions);
    ::close(out[1]);
    for (char c = 0; failure == 0 && ::read(out[0], &c, 1) == 1 && c != '\n';) endpoint_ += c;
    ::close(out[0]);
    if (endpoint_.empty()) throw std::runtime_error("no server process");
  }
  ~ServerProcess() { kill(); }
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  void kill() {
    if (pid_ == -1) return;
    ::kill(pid_, SIGKILL);
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = -1;
  }
  /// Returns when it has stopped.
  void stop() const {
    ::kill(pid_, SIGSTOP);
    int status = 0;
    ::waitpid(pid_, &status, WUNTRACED);
  }
  void go_on() const { ::kill(pid_, SIGCONT); }
  const std::string& endpoint() const { return endpoint_; }

 private:
  pid_t pid_ = -1;
  std::string endpoint_;
};

}  // namespace fleetrun::tests
