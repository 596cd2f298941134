// A request of a browser and its answer, as values.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace fleetrun::launcher {

/// A header that is not there is "". One of these that is there twice makes the request a bad one.
struct UiRequest {
  std::string method, target;  // "GET", "/api/jobs?x=1"
  std::string host, origin, fetch_site, cookie, content_type;
  std::string body;
};

struct UiAnswer {
  int status = 200;
  std::string_view type = "application/json";
  std::string body;
  std::string cookie{};  // set, where it is not empty: "NAME=VALUE"
};

/// Called once, now or later; from the loop.
using Respond = std::function<void(UiAnswer)>;
using UiHandler = std::function<void(const UiRequest&, Respond)>;

/// {"error": WHAT, "hint": HINT}
UiAnswer ui_refusal(int status, const std::string& what, const std::string& hint = {});

}  // namespace fleetrun::launcher
