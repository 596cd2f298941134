// A port of a test's own on which nobody listens yet. A server may bind it beside the test: both say
// SO_REUSEADDR, or, as fleetrun holds its servers' ports, SO_REUSEPORT.
#pragma once

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <stdexcept>
#include <string>

namespace fleetrun::tests {

class PortLease {
 public:
  explicit PortLease(int option = SO_REUSEADDR) : file_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const int on = 1;
    if (::setsockopt(file_, SOL_SOCKET, option, &on, sizeof on) != 0) throw std::runtime_error("setsockopt");
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    if (::bind(file_, reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
        ::getsockname(file_, reinterpret_cast<sockaddr*>(&address), &size) != 0)
      throw std::runtime_error("no port");
    endpoint_ = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  }
  ~PortLease() { ::close(file_); }
  PortLease(const PortLease&) = delete;
  PortLease& operator=(const PortLease&) = delete;

  const std::string& endpoint() const { return endpoint_; }

 private:
  int file_;
  std::string endpoint_;
};

}  // namespace fleetrun::tests
