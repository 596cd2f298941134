// Who asks the page of `fleetrun ui` without being its user: T24.
#include <doctest/doctest.h>

#include "launcher/ui/gate.h"
#include "tests/attack/attack.h"

using namespace fleetrun::launcher;
using fleetrun::tests::stopped_only_by;

namespace {

constexpr int kPort = 8080;

UiGate gate() {
  return {{"127.0.0.1", "localhost"}, kPort};
}

/// What stops a job, without what tells who asks.
UiRequest order() {
  UiRequest request;
  request.method = "POST";
  request.target = "/api/stop";
  request.host = "127.0.0.1:8080";
  request.content_type = "application/json";
  request.body = "{}";
  return request;
}

}  // namespace

TEST_CASE("T24: a program of another user of the host stops a job through the page's server") {
  stopped_only_by("the page's token", [] {
    const UiGate page = gate();
    UiRequest request = order();
    request.origin = "http://127.0.0.1:8080";  // a program writes what it likes
    request.fetch_site = "same-origin";
    request.cookie = "fleetrun_ui_8080=" + gate().token();  // of another server of that kind
    return !page.turn_away(request);
  });
}

TEST_CASE("T24: a form that another user's server at the host gives to the browser stops a job") {
  stopped_only_by("requests of the page", [] {
    const UiGate page = gate();
    UiRequest request = order();
    request.cookie = "fleetrun_ui_8080=" + page.token();  // the browser sends it to all ports of the host
    request.origin = "http://127.0.0.1:9000";
    request.fetch_site = "same-site";
    request.content_type = "text/plain";  // all that a form may say unasked
    return !page.turn_away(request);
  });
}
