#include "runtime/base/frames.h"

#include <doctest/doctest.h>

#include <vector>

#include "runtime/base/error.h"

using namespace fleetrun;

namespace {

constexpr std::size_t kMax = 1000;

std::string framed(const std::vector<std::string>& bodies) {
  std::string bytes;
  for (const std::string& body : bodies) append_frame(body, bytes);
  return bytes;
}

/// What arrives; "!" and the reason as the last, should the bytes be refused.
std::vector<std::string> read(std::string_view bytes, std::size_t piece = 1'000'000) {
  FrameReader reader(kMax);
  std::vector<std::string> bodies;
  try {
    while (!bytes.empty()) {
      reader.receive(bytes.substr(0, piece));
      bytes.remove_prefix(std::min(piece, bytes.size()));
      while (const auto body = reader.next()) bodies.emplace_back(*body);
    }
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::data);
    bodies.push_back("!" + std::string(error.what()));
  }
  return bodies;
}

}  // namespace

TEST_CASE("messages arrive as they were sent, however the bytes are cut") {
  const std::vector<std::string> bodies = {"", "a", std::string(kMax, 'b'), std::string("\0\1\2", 3)};
  for (const std::size_t piece : {1, 2, 5, 19, 21, 4096}) CHECK(read(framed(bodies), piece) == bodies);
}

TEST_CASE("many messages at once are taken without moving what is left each time") {
  std::vector<std::string> bodies;
  for (int i = 0; i < 20'000; ++i) bodies.push_back("message " + std::to_string(i));
  CHECK(read(framed(bodies)) == bodies);
}

TEST_CASE("a message that is too long is refused by its length, before it comes") {
  CHECK(read(std::string("\0\0\0\x40", 4)) ==
        std::vector<std::string>{"!a message of 1073741824 bytes: at most 1000 are taken"});
  CHECK(read(framed({std::string(kMax + 1, 'x')}))[0].starts_with("!a message of 1001 bytes"));
}

TEST_CASE("an end within a message is known") {
  const std::string frame = framed({"a message"});
  FrameReader reader(kMax);
  CHECK_FALSE(reader.is_within_frame());
  reader.receive(frame.substr(0, 10));
  CHECK_FALSE(reader.next());
  CHECK(reader.is_within_frame());
  reader.receive(frame.substr(10));
  CHECK(reader.next() == "a message");
  CHECK_FALSE(reader.is_within_frame());
}
