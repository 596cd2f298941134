#include "launcher/ui/serve.h"

#include <signal.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>

#include "launcher/ui/http_server.h"
#include "runtime/base/error.h"
#include "runtime/base/text.h"

namespace fleetrun::launcher {

void run_ui(UniqueFd listener, const UiGate& gate, UiSettings settings, const std::function<void()>& ready) {
  boost::asio::io_context loop(1);
  const auto job = settings.job;
  const auto api = make_ui_api(loop, std::move(settings));
  if (job && !api->has_jobs())
    throw Error(ErrorKind::usage, "no job " + printable(*job) + " runs here, or has left logs",
                "fleetrun list shows the jobs that run, --log_dir names where logs are");
  const auto server = serve_ui(loop, std::move(listener), [&](const UiRequest& request, Respond respond) {
    if (auto refused = gate.turn_away(request)) return respond(std::move(*refused));
    api->answer(request, std::move(respond));
  });
  boost::asio::signal_set signals(loop, SIGINT, SIGTERM, SIGHUP);
  signals.async_wait([&](const auto&, int) { loop.stop(); });
  ready();
  loop.run();
}

}  // namespace fleetrun::launcher
