#include "runtime/secure/sealed_frames.h"

#include <doctest/doctest.h>

#include <vector>

#include "runtime/base/error.h"

using namespace fleetrun;

namespace {

constexpr std::size_t kMax = 1000;

Digest key(unsigned char first) {
  Digest key = {};
  key[0] = first;
  return key;
}

std::vector<std::string> sealed(const std::vector<std::string>& bodies) {
  FrameSealer sealer(key(1));
  std::vector<std::string> frames;
  for (const std::string& body : bodies) sealer.seal(body, frames.emplace_back());
  return frames;
}

/// What arrives; "!" and the reason as the last, should the bytes be refused.
std::vector<std::string> opened(std::string_view bytes, std::size_t piece = 1'000'000,
                                unsigned char first = 1) {
  FrameOpener opener(key(first), kMax);
  std::vector<std::string> bodies;
  try {
    while (!bytes.empty()) {
      opener.receive(bytes.substr(0, piece));
      bytes.remove_prefix(std::min(piece, bytes.size()));
      while (const auto body = opener.next()) bodies.emplace_back(*body);
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
  std::string bytes;
  for (const std::string& frame : sealed(bodies)) bytes += frame;
  CHECK(bytes.size() == kFrameOverhead * bodies.size() + kMax + 4);
  for (const std::size_t piece : {1, 2, 5, 19, 21, 4096}) CHECK(opened(bytes, piece) == bodies);
}

TEST_CASE("many messages at once are taken without moving what is left each time") {
  std::vector<std::string> bodies;
  for (int i = 0; i < 20'000; ++i) bodies.push_back("message " + std::to_string(i));
  std::string bytes;
  for (const std::string& frame : sealed(bodies)) bytes += frame;
  CHECK(opened(bytes) == bodies);
}

TEST_CASE("a message that is repeated, left out or moved is refused") {
  const auto frames = sealed({"one", "two", "three"});
  const std::string refusal =
      "!message 1 of the connection was changed on the way, or is from another sender";
  CHECK(opened(frames[0] + frames[0]) == std::vector<std::string>{"one", refusal});
  CHECK(opened(frames[0] + frames[2]) == std::vector<std::string>{"one", refusal});
  CHECK(opened(frames[1] + frames[0]).size() == 1);
  CHECK(opened(frames[0], 100, 2).front().starts_with("!message 0"));
}

TEST_CASE("no bit of a message can be changed unnoticed") {
  const std::string frame = sealed({"a message"})[0];
  for (std::size_t bit = 0; bit < frame.size() * 8; ++bit) {
    std::string changed = frame;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << bit % 8));
    const auto bodies = opened(changed);
    CHECK_MESSAGE((bodies.empty() || bodies[0].starts_with("!")), "bit " << bit);
  }
}

TEST_CASE("a message that is too long is refused by its length, before it comes") {
  CHECK(opened(std::string("\0\0\0\x40", 4)) ==
        std::vector<std::string>{"!a message of 1073741824 bytes: at most 1000 are taken"});
  CHECK(opened(sealed({std::string(kMax + 1, 'x')})[0])[0].starts_with("!a message of 1001 bytes"));
}

TEST_CASE("an end within a message is known") {
  const std::string frame = sealed({"a message"})[0];
  FrameOpener opener(key(1), kMax);
  CHECK_FALSE(opener.is_within_frame());
  opener.receive(frame.substr(0, 10));
  CHECK_FALSE(opener.next());
  CHECK(opener.is_within_frame());
  opener.receive(frame.substr(10));
  CHECK(opener.next() == "a message");
  CHECK_FALSE(opener.is_within_frame());
}
