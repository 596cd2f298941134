#include "runtime/secure/record_layer.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "runtime/base/error.h"
#include "tests/support/sealed_ends.h"

using namespace fleetrun;
using fleetrun::tests::established_ends;
using fleetrun::tests::kTestKey;
using fleetrun::tests::RecordEnds;

namespace {

constexpr std::size_t kWholePiece = 100'000;

std::string sealed(RecordLayer& from, std::string_view plain) {
  std::string bytes;
  from.seal(std::as_bytes(std::span(plain)), bytes);
  return bytes;
}

/// What `to` takes of the bytes; `refused` where it finds that they are not the other end's.
std::string opened(RecordLayer& to, std::string_view bytes, bool& refused, std::size_t piece = kWholePiece) {
  std::string plain;
  std::array<std::byte, 7000> into;
  try {
    while (!bytes.empty()) {
      std::string_view part = bytes.substr(0, piece);
      bytes.remove_prefix(part.size());
      while (const std::size_t count = to.open(part, into))
        plain.append(reinterpret_cast<const char*>(into.data()), count);
    }
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::data);
    refused = true;
  }
  return plain;
}

std::string opened(RecordLayer& to, std::string_view bytes, std::size_t piece = kWholePiece) {
  bool refused = false;
  const std::string plain = opened(to, bytes, refused, piece);
  CHECK_FALSE(refused);
  return plain;
}

}  // namespace

TEST_CASE("ends with one key hear each other, however the bytes are cut, and nobody reads along") {
  for (const std::size_t piece : {std::size_t{1}, std::size_t{7}, std::size_t{1000}, kWholePiece}) {
    RecordEnds ends{RecordLayer(Side::client, kTestKey), RecordLayer(Side::server, kTestKey)};
    establish(ends, piece);
    REQUIRE(ends.client.established());
    REQUIRE(ends.server.established());
    const std::string message(50'000, 'm');
    const std::string there = sealed(ends.client, message), back = sealed(ends.server, "to the client");
    CHECK(there.find("mmmm") == std::string::npos);
    CHECK(there.size() == message.size() + 4 * 22);
    CHECK(opened(ends.server, there, piece) == message);
    CHECK(opened(ends.client, back, piece) == "to the client");
    CHECK_FALSE(ends.server.has_opened());
  }
}

TEST_CASE("ends with different keys find that out before anything is said") {
  RecordEnds ends{RecordLayer(Side::client, kTestKey), RecordLayer(Side::server, std::string(32, 'x'))};
  CHECK_THROWS_AS(establish(ends), Error);
  CHECK_FALSE(ends.server.established());
  CHECK_FALSE(ends.client.established());
}

TEST_CASE("what is not records is refused") {
  for (const std::string& bytes : {std::string("GET / HTTP/1.1\r\n\r\n"), std::string(5000, '\xff'),
                                   std::string("\x17\x03\x03\xff\xff", 5) + std::string(70'000, 'x')}) {
    RecordLayer server(Side::server, kTestKey);
    std::string_view rest = bytes;
    std::string answer;
    CHECK_THROWS_AS(server.establish(rest, answer), Error);
  }
}

TEST_CASE(
    "a flip, an insertion, a repetition or an end at any byte: nothing but the beginning of what was sent") {
  const std::string first = "the first message", second = "the second one";
  const auto tamper = [](std::string bytes, std::size_t at, int how) {
    if (how == 0) bytes[at] = static_cast<char>(bytes[at] ^ 1);
    if (how == 1) bytes.insert(at, 1, '\x17');
    if (how == 2) bytes.insert(at, bytes.substr(0, at + 1));
    if (how == 3) bytes.resize(at);
    return bytes;
  };
  for (int how = 0; how < 4; ++how) {
    for (std::size_t at = 0;; ++at) {
      RecordEnds ends = established_ends();
      const std::string one = sealed(ends.client, first), all = one + sealed(ends.client, second);
      if (at == all.size()) break;
      bool refused = false;
      const std::string plain = opened(ends.server, tamper(all, at, how), refused);
      CAPTURE(how);
      CAPTURE(at);
      // Of a repetition and an insertion right behind a record nothing is left out.
      CHECK(plain == (at < one.size() ? "" : first));
      CHECK((refused || ends.server.is_within_record() || (how == 3 && (at == 0 || at == one.size()))));
    }
  }
}

TEST_CASE("a record that comes twice, is left out or moved is refused") {
  for (int how = 0; how < 3; ++how) {
    RecordEnds ends = established_ends();
    const std::string one = sealed(ends.client, "one"), two = sealed(ends.client, "two");
    bool refused = false;
    const std::string plain = opened(ends.server, how == 0 ? one + one : how == 1 ? two : two + one, refused);
    CHECK(refused);
    CHECK(plain == (how == 0 ? "one" : ""));
  }
}

TEST_CASE("bytes that were sent elsewhere, also by the same end, are worth nothing") {
  RecordEnds ends = established_ends(), others = established_ends();
  bool refused = false;
  CHECK(opened(ends.server, sealed(others.client, "one"), refused).empty());
  CHECK(refused);
  refused = false;
  CHECK(opened(ends.client, sealed(ends.client, "one"), refused).empty());
  CHECK(refused);
}

TEST_CASE("keys change on the way, and nothing is lost") {
  RecordEnds ends = established_ends(3);
  std::string sent, heard;
  for (int i = 0; i < 500; ++i) {
    const std::string message =
        "message " + std::to_string(i) + std::string(static_cast<std::size_t>(i), '.');
    sent += message;
    heard += opened(ends.server, sealed(ends.client, message));
  }
  CHECK(heard == sent);
}

TEST_CASE("an end within a record is known") {
  RecordEnds ends = established_ends();
  const std::string bytes = sealed(ends.client, "a message");
  CHECK_FALSE(ends.server.is_within_record());
  CHECK(opened(ends.server, bytes.substr(0, 10)).empty());
  CHECK(ends.server.is_within_record());
  CHECK(opened(ends.server, bytes.substr(10)) == "a message");
  CHECK_FALSE(ends.server.is_within_record());
}
