#include "launcher/ui/gate.h"

#include <doctest/doctest.h>

#include "launcher/ui/page.h"

using namespace fleetrun;
using namespace fleetrun::launcher;

namespace {

const UiGate& gate() {
  static const UiGate one({"127.0.0.1", "localhost"}, 8080);
  return one;
}

UiRequest asked(const std::string& method) {
  UiRequest request;
  request.method = method;
  request.target = "/api/jobs";
  request.host = "127.0.0.1:8080";
  request.cookie = "other=1; fleetrun_ui_8080=" + gate().token();
  if (method == "POST") {
    request.origin = "http://127.0.0.1:8080";
    request.content_type = "application/json";
  }
  return request;
}

/// 0: it may pass.
int refusal_of(const UiRequest& request) {
  const auto refused = gate().turn_away(request);
  return refused ? refused->status : 0;
}

}  // namespace

TEST_CASE("the page itself may ask") {
  CHECK(refusal_of(asked("GET")) == 0);
  CHECK(refusal_of(asked("POST")) == 0);
  UiRequest request = asked("POST");
  request.fetch_site = "same-origin";
  CHECK(refusal_of(request) == 0);
  request = asked("GET");
  request.host = "LOCALHOST:8080";
  request.fetch_site = "none";
  CHECK(refusal_of(request) == 0);
}

TEST_CASE("the printed address gives a cookie that scripts and other sites have not") {
  CHECK(gate().url() == "http://127.0.0.1:8080/?token=" + gate().token());
  CHECK(gate().token().size() == 64);
  CHECK(UiGate({"127.0.0.1"}, 8080).token() != gate().token());
  UiRequest request = asked("GET");
  request.cookie.clear();
  request.target = "/?token=" + gate().token();
  const auto answer = gate().turn_away(request);
  REQUIRE(answer);
  CHECK(answer->status == 200);
  CHECK(answer->cookie == "fleetrun_ui_8080=" + gate().token());
  CHECK(answer->body.find(gate().token()) == std::string::npos);
}

TEST_CASE("without the token nothing is given") {
  UiRequest request = asked("GET");
  for (const std::string& cookie :
       {std::string(), std::string("fleetrun_ui_8080="), "fleetrun_ui_8080=" + std::string(64, '0'),
        "fleetrun_ui_80=" + gate().token(), "fleetrun_ui_8080=" + gate().token() + "0"}) {
    request.cookie = cookie;
    CHECK(refusal_of(request) == 403);
  }
  for (const std::string& target :
       {std::string("/?token="), "/?token=" + std::string(64, '0'), std::string("/")}) {
    request.target = target;
    CHECK(refusal_of(request) == 403);
  }
}

TEST_CASE("a name that was made to lead here is another host") {
  for (const char* host :
       {"evil.example:8080", "127.0.0.1:8081", "127.0.0.1", "127.0.0.1:8080.evil.example", ""}) {
    UiRequest request = asked("GET");
    request.host = host;
    CHECK(refusal_of(request) == 421);
    request.target = "/?token=" + gate().token();
    CHECK(refusal_of(request) == 421);
  }
}

TEST_CASE("what another site started is turned away") {
  for (const char* origin :
       {"", "null", "http://evil.example", "http://127.0.0.1:8081", "https://127.0.0.1:8080"}) {
    UiRequest request = asked("POST");
    request.origin = origin;
    CHECK(refusal_of(request) == 403);
  }
  for (const char* site : {"cross-site", "same-site"}) {
    for (const char* method : {"GET", "POST"}) {
      UiRequest request = asked(method);
      request.fetch_site = site;
      CHECK(refusal_of(request) == 403);
    }
  }
  UiRequest form = asked("POST");
  form.content_type = "text/plain";
  CHECK(refusal_of(form) == 415);
  CHECK(refusal_of(asked("DELETE")) == 405);
}

TEST_CASE("values of a query are decoded") {
  CHECK(query_value("/x?a=1&text=a%20b%2Bc+d", "text") == "a b+c d");
  CHECK(query_value("/x?a=1", "b") == std::nullopt);
  CHECK(query_value("/x", "a") == std::nullopt);
  CHECK(query_value("/x?a=%4", "a") == std::nullopt);
  CHECK(query_value("/x?a=%zz", "a") == std::nullopt);
}

TEST_CASE("the page has its files, and nothing in it that its policy forbids") {
  CHECK(page_file("/").text.starts_with("<!doctype html>"));
  for (const char* path : {"/page.js", "/logs.js", "/page.css", "/uplot.js", "/uplot.css", "/icon.svg"})
    CHECK_MESSAGE(page_file(path).text.size() > 50, path);
  CHECK(page_file("/page.html").text.empty());
  for (const char* word : {" style=", " onclick=", "<script>", "http://", "https://"})
    CHECK_MESSAGE(page_file("/").text.find(word) == std::string_view::npos, word);
  for (const char* path : {"/page.js", "/logs.js"}) {
    for (const char* word : {"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("})
      CHECK_MESSAGE(page_file(path).text.find(word) == std::string_view::npos, word);
  }
}
