#include "launcher/net/etcd_address.h"

#include <doctest/doctest.h>

#include <string>

#include "runtime/base/error.h"

using namespace fleetrun;
using namespace fleetrun::launcher;

namespace {

std::string refusal(std::string_view text) {
  try {
    parse_etcd_address(text);
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::config);
    CHECK(error.hint().find("etcd://HOST:2379") != std::string::npos);
    return error.what();
  }
  return "none";
}

}  // namespace

TEST_CASE("an etcd's members are separated by commas, and port 2379 need not be written") {
  CHECK(parse_etcd_address("h1").endpoints == std::vector<Endpoint>{{"h1", 2379}});
  CHECK(parse_etcd_address("h1:4001,h2,[::1],[fe80::1%eth0]:7").endpoints ==
        std::vector<Endpoint>{{"h1", 4001}, {"h2", 2379}, {"::1", 2379}, {"fe80::1%eth0", 7}});
  // A host whose first letters are those of the scheme keeps them.
  CHECK(parse_etcd_address("tcde:1").endpoints == std::vector<Endpoint>{{"tcde", 1}});
}

TEST_CASE("an etcd's login comes before an @, and is never shown") {
  const EtcdAddress address = parse_etcd_address("root:a%3Ab%40c:d@h1:1,h2:2");
  CHECK(address.user == "root");
  CHECK(address.password == "a:b@c:d");
  CHECK(address.endpoints.size() == 2);
  CHECK(to_string(address) == "etcd://h1:1,h2:2");
  // What follows the last @ is the host.
  CHECK(parse_etcd_address("u:p@q@h").password == "p@q");
}

TEST_CASE("what is no address of an etcd is refused by name") {
  CHECK(refusal("") == "'etcd://' is not the address of an etcd: it has no host");
  CHECK(refusal(":2379") == "'etcd://:2379' is not the address of an etcd: it has no host");
  CHECK(refusal("h:") == "'etcd://h:' is not the address of an etcd: it has no port");
  CHECK(refusal("h:0") ==
        "'etcd://h:0' is not the address of an etcd: its port '0' is not a number from 1 to 65535");
  CHECK(refusal("h:65536").find("is not a number from 1 to 65535") != std::string::npos);
  CHECK(refusal("h:80:80").find("an IPv6 address needs brackets") != std::string::npos);
  CHECK(refusal("::1").find("an IPv6 address needs brackets") != std::string::npos);
  CHECK(refusal("[::1").find("its bracket is not closed") != std::string::npos);
  CHECK(refusal("h:2379/v3").find("it has a path") != std::string::npos);
  CHECK(refusal("h/").find("it has a path") != std::string::npos);
  CHECK(refusal("http://h:2379").find("it has a second scheme") != std::string::npos);
  CHECK(refusal("h?x=1").find("it has options") != std::string::npos);
  CHECK(refusal("h1,,h2").find("one of its members is empty") != std::string::npos);
  CHECK(refusal("h1,").find("one of its members is empty") != std::string::npos);
  CHECK(refusal("h1,h1:2379").find("h1:2379 is in it twice") != std::string::npos);
  CHECK(refusal("h 1").find("is not a host name") != std::string::npos);
  CHECK(refusal("-h").find("is not a host name") != std::string::npos);
  std::string many = "h0";
  for (int i = 1; i < 65; ++i) many += ",h" + std::to_string(i);
  CHECK(refusal(many).find("more than 64 members") != std::string::npos);
}

TEST_CASE("a refusal does not show the password") {
  for (const char* text :
       {"root:hidden@", "root:hidden@h/v3", "root:hidden%zz@h", ":hidden@h", "root:hidden@h:0"}) {
    CAPTURE(text);
    const std::string what = refusal(text);
    CHECK(what != "none");
    CHECK(what.find("hidden") == std::string::npos);
  }
  CHECK(refusal("root@h").find("its user has no password") != std::string::npos);
  CHECK(refusal("root:@h").find("its user has no password") != std::string::npos);
  CHECK(refusal(":p@h").find("its login has no user") != std::string::npos);
  CHECK(refusal("u:%4@h").find("two hexadecimal digits") != std::string::npos);
}

TEST_CASE("an address is shown without its login") {
  CHECK(without_login("etcd://root:a@b@h1,h2") == "etcd://h1,h2");
  CHECK(without_login("root:x@h1") == "h1");
  CHECK(without_login("etcd://h:2379") == "etcd://h:2379");
  CHECK(without_login("10.0.0.1:6768") == "10.0.0.1:6768");
  CHECK(without_login("") == "");
}
