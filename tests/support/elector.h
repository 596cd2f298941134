// A launcher's part in an election, for tests: what its discovery tells, as lines.
#pragma once

#include <string>
#include <vector>

#include "launcher/etcd/etcd_discovery.h"
#include "tests/support/etcd_server.h"

namespace fleetrun::tests {

class Elector final : public launcher::DiscoveryListener {
 public:
  /// `port`: where it would coordinate.
  Elector(boost::asio::io_context& loop, launcher::EtcdDiscoverySettings settings, std::uint16_t port)
      : discovery(launcher::make_etcd_discovery(loop, std::move(settings))) {
    discovery->start({"127.0.0.1", port}, *this);
  }

  void lead(std::uint64_t number, const std::optional<std::string>& found) override {
    fence = number;
    state = found;
    add("lead " + found.value_or("-"));
  }
  void leads_until(std::chrono::nanoseconds when) override { leads.push_back(when); }
  void follow(const Endpoint& coordinator) override { add("follow " + std::to_string(coordinator.port)); }
  void lost_lead(const std::string& why) override { add("lost: " + why); }
  void in_doubt(const std::string& why) override { add("doubt: " + why); }
  void on_published(bool stored) override { add(stored ? "stored" : "not stored"); }
  void failed(const Error& error) override {
    add("failed: " + std::string(error.what()) + " | " + error.hint());
  }

  const std::string& last() const noexcept { return lines.back(); }
  bool told(const std::string& begin) const {
    return std::any_of(lines.begin(), lines.end(),
                       [&](const std::string& line) { return line.starts_with(begin); });
  }

  std::vector<std::string> lines{""};
  std::vector<std::chrono::nanoseconds> leads;  // until when
  std::uint64_t fence = 0;
  std::optional<std::string> state;
  std::function<void(const std::string&)> on_line;
  std::unique_ptr<launcher::Discovery> discovery;

 private:
  void add(const std::string& line) {
    lines.push_back(line);
    if (on_line) on_line(line);
  }
};

inline launcher::EtcdDiscoverySettings job_at(const launcher::EtcdAddress& address) {
  return {.address = address, .job_id = "job"};
}

/// An elector in a process of its own, which says each line, and publishes "state PORT" when it leads.
inline std::unique_ptr<ChildProcess> elector_process(const launcher::EtcdAddress& address,
                                                     std::uint16_t port) {
  return std::make_unique<ChildProcess>([&](int output) {
    boost::asio::io_context loop;
    Elector elector(loop, job_at(address), port);
    elector.on_line = [&](const std::string& line) {
      const std::string text = line + "\n";
      if (::write(output, text.data(), text.size()) < 0) ::_exit(1);
      if (line.starts_with("lead")) elector.discovery->publish("state " + std::to_string(port));
    };
    loop.run();
  });
}

}  // namespace fleetrun::tests
