#include "launcher/ui/serve.h"

#include <signal.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <optional>
#include <utility>

#include "launcher/ui/http_server.h"
#include "runtime/base/error.h"
#include "runtime/base/text.h"

namespace fleetrun::launcher {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using Clock = std::chrono::steady_clock;

// A page that is looked at asks once a second; after the verdict it asks for nothing that it needs.
constexpr std::chrono::milliseconds kLooked{2'500}, kLongestEnd{2'000}, kAfterVerdict{300};

/// Ends the loop with the job that the page belongs to.
class End {
 public:
  End(asio::io_context& loop, UniqueFd job) : loop_(loop), timer_(loop), job_(loop, job.release()) {
    job_.async_read_some(asio::buffer(byte_), [this](const error_code& error, std::size_t) {
      if (error != asio::error::operation_aborted) on_job_over();
    });
  }

  void on_request(const UiRequest& request) {
    asked_ = Clock::now();
    if (is_over_ && request.target.ends_with("/verdict")) stop_after(kAfterVerdict);
  }

 private:
  void on_job_over() {
    is_over_ = true;
    const bool is_looked_at = asked_ && Clock::now() - *asked_ < kLooked;
    stop_after(is_looked_at ? kLongestEnd : std::chrono::milliseconds(0));
  }

  void stop_after(std::chrono::milliseconds time) {
    timer_.expires_after(time);
    timer_.async_wait([this](const error_code& error) {
      if (!error) loop_.stop();
    });
  }

  asio::io_context& loop_;
  asio::steady_timer timer_;
  asio::posix::stream_descriptor job_;
  std::optional<Clock::time_point> asked_;
  bool is_over_ = false;
  char byte_[1];
};

}  // namespace

void run_ui(UniqueFd listener, const UiGate& gate, UiSettings settings, const std::function<void()>& ready) {
  asio::io_context loop(1);
  std::optional<End> end;
  if (settings.ends_with) end.emplace(loop, std::move(settings.ends_with));
  const auto job = settings.job;
  const auto api = make_ui_api(loop, std::move(settings));
  if (job && !end && !api->has_jobs())
    throw Error(ErrorKind::usage, "no job " + printable(*job) + " runs here, or has left logs",
                "fleetrun list shows the jobs that run, --log_dir names where logs are");
  const auto server = serve_ui(loop, std::move(listener), [&](const UiRequest& request, Respond respond) {
    if (auto refused = gate.turn_away(request)) return respond(std::move(*refused));
    if (end) end->on_request(request);
    api->answer(request, std::move(respond));
  });
  asio::signal_set signals(loop, SIGINT, SIGTERM, SIGHUP);
  signals.async_wait([&](const auto&, int) { loop.stop(); });
  ready();
  loop.run();
}

}  // namespace fleetrun::launcher
