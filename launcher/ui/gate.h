// Who may ask the page's server: the one who has its token, from the page itself. Pure.
//
//   token      random, in the URL that is printed; the first request turns it into a cookie that no script
//              reads (HttpOnly) and no other site makes the browser send (SameSite=Strict). The
//              browser sends it to other ports of the host, too: THREAT_MODEL.md, T24
//   Host       one of the names under which the server was bound: a stranger's name that is made to lead here
//              (DNS rebinding) is another one
//   Origin     of a POST: the page's own; a form or script of another site (CSRF) has that site's
//   Sec-Fetch-Site   where a browser sends it, what another site started is turned away
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launcher/ui/http.h"

namespace fleetrun::launcher {

class UiGate {
 public:
  /// `hosts`: "127.0.0.1", "localhost", "[::1]", as a Host header has them before its port.
  UiGate(std::vector<std::string> hosts, int port);

  const std::string& token() const noexcept { return token_; }
  /// The first of the hosts: "http://127.0.0.1:8080/?token=…"
  std::string url() const;

  /// What a request gets that may not pass; nullopt: it may. The printed URL, which carries the token, gets
  /// the cookie and a page that leads on to "/".
  std::optional<UiAnswer> turn_away(const UiRequest& request) const;

 private:
  bool is_own_host(const std::string& host) const;
  bool has_cookie(std::string_view header) const;

  std::vector<std::string> hosts_;
  int port_;
  std::string token_, cookie_name_;
};

/// The value of `name` in the query of `target`, decoded; nullopt: it is not there, or its %XX are wrong.
std::optional<std::string> query_value(std::string_view target, std::string_view name);

}  // namespace fleetrun::launcher
