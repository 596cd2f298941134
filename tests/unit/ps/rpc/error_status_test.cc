#include "ps/rpc/error_status.h"

#include <doctest/doctest.h>

using namespace fleetrun::ps;
using fleetrun::Error;
using fleetrun::ErrorKind;

TEST_CASE("an error comes out as it went in, of every kind") {
  for (const ErrorKind kind : {ErrorKind::usage, ErrorKind::config, ErrorKind::host, ErrorKind::spawn,
                               ErrorKind::network, ErrorKind::timeout, ErrorKind::data}) {
    Error error(kind, "what went wrong", "what to do");
    error.while_doing("inner");
    error.while_doing("outer");
    const auto again = error_from(to_texts(error));
    REQUIRE(again);
    CHECK(again->kind() == kind);
    CHECK(std::string(again->what()) == "what went wrong");
    CHECK(again->hint() == "what to do");
    CHECK(again->context() == std::vector<std::string>{"inner", "outer"});
  }
}

TEST_CASE("an error without a hint has none afterwards") {
  const auto again = error_from(to_texts(Error(ErrorKind::data, "x")));
  REQUIRE(again);
  CHECK(again->hint().empty());
  CHECK(again->context().empty());
}

TEST_CASE("a status that gRPC made is not one of ours") {
  CHECK(!error_from({"failed to connect to all addresses", ""}));
  CHECK(!error_from({"x", "fleetrun error\nno such kind\n"}));
  CHECK(!error_from({"x", "fleetrun error"}));
}

TEST_CASE("long texts and lines are cut to what a header takes") {
  Error error(ErrorKind::data, std::string(100000, 'x') + "\n", std::string(100000, 'y'));
  error.while_doing("a\nb");
  const ErrorTexts texts = to_texts(error);
  CHECK(texts.message.size() + texts.details.size() < 8000);
  CHECK(error_from(texts)->context() == std::vector<std::string>{"a b"});
}
