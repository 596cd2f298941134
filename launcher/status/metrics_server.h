// Serves a job's metrics over HTTP: `--metrics HOST:PORT`, `PORT` (on 127.0.0.1), `/PATH` or `unix:PATH`.
//
// GET /metrics gives what launcher/status/metrics writes; every answer ends its connection. The request's
// head may have 8 KiB and take 5 s, the answer 5 s more; 16 connections at a time, later ones are closed.
// There is no password: whoever reaches the address may read it, so the default host is this one. Everything
// happens in the loop, without blocking.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace boost::asio {
class io_context;
}

namespace fleetrun::launcher {

struct MetricsAddress {
  std::string unix_path;  // absolute or relative; or, where it is empty,
  std::string host;
  std::uint16_t port = 0;  // 0: any free one
  bool operator==(const MetricsAddress&) const = default;
};

/// Pure. Throws: Error(usage) for what is not an address.
MetricsAddress parse_metrics_address(std::string_view text);

class MetricsServer {
 public:
  virtual ~MetricsServer() = default;
  /// "127.0.0.1:9090", "unix:/run/user/0/job.metrics"
  virtual const std::string& address() const noexcept = 0;
};

/// Listens; `text` gives the metrics. A socket that is left at a unix path is replaced, any other file is
/// not; the path is removed with the server.
/// Throws: Error(host) when nothing can be served at `address`.
std::unique_ptr<MetricsServer> start_metrics(boost::asio::io_context& loop, const MetricsAddress& address,
                                             std::function<std::string()> text,
                                             std::chrono::milliseconds patience = std::chrono::seconds(5));

/// What an HTTP client gets whose request begins with `head`.
/// `text` is called for GET /metrics alone. Pure but for it.
std::string answer_http(std::string_view head, const std::function<std::string()>& text);

}  // namespace fleetrun::launcher
