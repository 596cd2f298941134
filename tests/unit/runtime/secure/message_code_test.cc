#include "runtime/secure/message_code.h"

#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "runtime/base/error.h"

using namespace fleetrun;

namespace {

const std::string kKey = "0123456789abcdef0123456789abcdef";

std::span<const std::byte> bytes(std::string_view text) {
  return std::as_bytes(std::span(text));
}

std::string code_of(const MessageCoder& coder, std::uint32_t purpose, std::uint64_t number,
                    const std::vector<std::string>& parts) {
  std::vector<std::span<const std::byte>> spans;
  for (const std::string& part : parts) spans.push_back(bytes(part));
  const auto code = coder.of(purpose, number, spans);
  return {reinterpret_cast<const char*>(code.data()), code.size()};
}

}  // namespace

TEST_CASE("a code depends on key, purpose, number and every byte, and not on where the parts end") {
  const MessageCoder coder(kKey);
  const std::string code = code_of(coder, 1, 7, {"abc", "", "def"});
  CHECK(code == code_of(coder, 1, 7, {"abcdef"}));
  CHECK(code == code_of(MessageCoder(kKey), 1, 7, {"abcdef"}));
  CHECK(code != code_of(coder, 2, 7, {"abcdef"}));
  CHECK(code != code_of(coder, 1, 8, {"abcdef"}));
  CHECK(code != code_of(coder, 1, 7, {"abcdeF"}));
  CHECK(code != code_of(coder, 1, 7, {"abcdef", std::string(1, '\0')}));
  CHECK(code != code_of(MessageCoder("x123456789abcdef0123456789abcdef"), 1, 7, {"abcdef"}));
  CHECK(code_of(coder, 1, 7, {}) == code_of(coder, 1, 7, {""}));
}

TEST_CASE("a code is GMAC with AES-256, as others compute it") {
  // openssl mac -cipher AES-256-GCM -macopt hexkey:00..00 -macopt hexiv:00..00 -in <16 zero bytes> GMAC
  const MessageCoder coder(std::string(32, '\0'));
  const std::string zeros(16, '\0');
  const auto part = bytes(zeros);
  const MessageCoder::Code code = coder.of(0, 0, std::span(&part, 1));
  const MessageCoder::Code expected = {0x2d, 0x45, 0x55, 0x2d, 0x85, 0x75, 0x92, 0x2b,
                                       0x3c, 0xa3, 0xcc, 0x53, 0x84, 0x42, 0xfa, 0x26};
  CHECK(code == expected);
}

TEST_CASE("a code that is cut short or changed belongs to nothing") {
  const MessageCoder coder(kKey);
  const auto part = bytes("a message");
  const std::span one(&part, 1);
  std::string code = code_of(coder, 1, 1, {"a message"});
  CHECK(coder.is_of(code, 1, 1, one));
  CHECK(!coder.is_of(code, 1, 2, one));
  CHECK(!coder.is_of(code.substr(0, 15), 1, 1, one));
  CHECK(!coder.is_of("", 1, 1, one));
  for (std::size_t i = 0; i < code.size(); ++i) {
    std::string changed = code;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    CHECK(!coder.is_of(changed, 1, 1, one));
  }
}

TEST_CASE("a key of another length is refused") {
  try {
    const MessageCoder coder("short");
    FAIL("it was taken");
  } catch (const Error& error) {
    CHECK(std::string(error.what()) == "a key of 5 bytes for message codes; 32 are needed");
  }
}
