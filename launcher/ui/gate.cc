#include "launcher/ui/gate.h"

#include <algorithm>

#include "runtime/base/defences.h"
#include "runtime/base/hex.h"
#include "runtime/base/random_bytes.h"
#include "runtime/base/text.h"
#include "runtime/secure/crypto.h"

namespace fleetrun::launcher {
namespace {

constexpr std::size_t kTokenBytes = 32;
constexpr const char* kClosedHint = "open the address that fleetrun ui has printed";

// No redirect: after one that another site's link began, the browser would not send the cookie.
constexpr const char* kLeadsOn =
    "<!doctype html><html lang=\"en\"><meta http-equiv=\"refresh\" content=\"0;url=/\">"
    "<title>fleetrun</title><a href=\"/\">fleetrun</a></html>\n";

std::string lower(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return text;
}

/// "a%20b+c" → "a b c"
std::optional<std::string> decoded(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      result.push_back(text[i] == '+' ? ' ' : text[i]);
      continue;
    }
    const auto byte = from_hex(lower(std::string(text.substr(i + 1, 2))));
    if (!byte || byte->size() != 1) return std::nullopt;
    result.append(*byte);
    i += 2;
  }
  return result;
}

}  // namespace

std::optional<std::string> query_value(std::string_view target, std::string_view name) {
  const std::size_t mark = target.find('?');
  if (mark == target.npos) return std::nullopt;
  for (const std::string& part : split(target.substr(mark + 1), '&')) {
    const std::size_t equals = part.find('=');
    if (equals != part.npos && std::string_view(part).substr(0, equals) == name)
      return decoded(std::string_view(part).substr(equals + 1));
  }
  return std::nullopt;
}

// Cookies know no ports: two servers of one user would take each other's without the port in the name.
UiGate::UiGate(std::vector<std::string> hosts, int port)
    : hosts_(std::move(hosts)),
      port_(port),
      token_(hex(random_bytes(kTokenBytes))),
      cookie_name_("fleetrun_ui_" + std::to_string(port)) {}

std::string UiGate::url() const {
  return "http://" + hosts_.front() + ":" + std::to_string(port_) + "/?token=" + token_;
}

bool UiGate::is_own_host(const std::string& host) const {
  return std::any_of(hosts_.begin(), hosts_.end(), [&](const std::string& own) {
    return lower(host) == lower(own) + ":" + std::to_string(port_) ||
           (port_ == 80 && lower(host) == lower(own));
  });
}

bool UiGate::has_cookie(std::string_view header) const {
  for (std::string part : split(header, ';')) {
    part.erase(0, part.find_first_not_of(' '));
    const std::string name = cookie_name_ + "=";
    if (part.starts_with(name) && equal_in_constant_time(std::string_view(part).substr(name.size()), token_))
      return true;
  }
  return false;
}

std::optional<UiAnswer> UiGate::turn_away(const UiRequest& request) const {
  if (!is_own_host(request.host))
    return ui_refusal(421, "this server is not " + printable(request.host), kClosedHint);
  const bool is_read = request.method == "GET" || request.method == "HEAD";
  if (!is_read && request.method != "POST") return ui_refusal(405, "there are GET and POST alone");
  if (is_read && request.target.starts_with("/?")) {
    const auto token = query_value(request.target, "token");
    if (token && equal_in_constant_time(*token, token_))
      return UiAnswer{200, "text/html; charset=utf-8", kLeadsOn, cookie_name_ + "=" + token_};
  }
  if (!has_cookie(request.cookie) && defends("the page's token"))
    return ui_refusal(403, "the token is missing or wrong", kClosedHint);
  if (!defends("requests of the page")) return std::nullopt;
  if (!request.fetch_site.empty() && request.fetch_site != "same-origin" &&
      !(is_read && request.fetch_site == "none"))
    return ui_refusal(403, "another site has asked for this");
  if (!is_read && lower(request.origin) != "http://" + lower(request.host))
    return ui_refusal(403, "a POST has to come from the page itself");
  if (!is_read && !request.content_type.starts_with("application/json"))
    return ui_refusal(415, "a POST has JSON: Content-Type: application/json");
  return std::nullopt;
}

}  // namespace fleetrun::launcher
