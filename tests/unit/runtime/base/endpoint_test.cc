#include "runtime/base/endpoint.h"

#include <doctest/doctest.h>

#include "runtime/base/error.h"

using namespace fleetrun;

TEST_CASE("an endpoint is a host and a port, and reads back as it was written") {
  for (const char* text :
       {"127.0.0.1:8000", "[::1]:1", "node_1.example.com:65535", "[fe80::1%eth0]:80", "LOCALHOST:80"})
    CHECK(to_string(parse_endpoint(text)) == text);
  CHECK(parse_endpoint("[::1]:80").host == "::1");
}

TEST_CASE("what is not an endpoint is refused with its reason and a hint") {
  struct Row {
    std::string text, reason;
  };
  const Row rows[] = {
      {"", "it is empty"},
      {"127.0.0.1", "it has no port"},
      {"127.0.0.1:", "it has no port"},
      {":80", "it has no host"},
      {"a:0", "'0' is not a number from 1 to 65535"},
      {"a:65536", "'65536' is not a number"},
      {"a:-1", "'-1' is not a number"},
      {"a: 80", "' 80' is not a number"},
      {"a:80:80", "an IPv6 address needs brackets"},
      {"::1:80", "an IPv6 address needs brackets"},
      {"[::1:80", "its bracket is not closed"},
      {"[::1]", "it has no port"},
      {"[abc]:80", "is not an IPv6 address"},
      {"http://a:80", "it has a scheme"},
      {"-oProxyCommand:80", "is not a host name"},
      {"a b:80", "is not a host name"},
      {"$(id):80", "is not a host name"},
      {std::string(254, 'a') + ":80", "too long"},
  };
  for (const Row& row : rows) {
    try {
      parse_endpoint(row.text);
      FAIL_CHECK("accepted: " << row.text);
    } catch (const Error& error) {
      CHECK_MESSAGE(std::string(error.what()).find(row.reason) != std::string::npos, error.what());
      CHECK(error.kind() == ErrorKind::config);
      CHECK(error.hint().find("HOST:PORT") != std::string::npos);
    }
  }
}

TEST_CASE("a list of endpoints names each once") {
  CHECK(parse_endpoint_list("").empty());
  CHECK(to_string(parse_endpoint_list("a:1,b:2")) == "a:1,b:2");
  CHECK_THROWS_WITH_AS(parse_endpoint_list("a:1,b:2,a:1"), "endpoint a:1 is in the list twice", Error);
  CHECK_THROWS_AS(parse_endpoint_list("a:1,,b:2"), Error);
  CHECK_THROWS_AS(parse_endpoint_list("a:1,"), Error);
}
