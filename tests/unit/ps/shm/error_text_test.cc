#include "ps/shm/error_text.h"

#include <doctest/doctest.h>

using fleetrun::Error;
using fleetrun::ErrorKind;
using namespace fleetrun::ps;

TEST_CASE("an error's text travels whole") {
  Error error(ErrorKind::config, "two\nlines", "do this");
  error.while_doing("pulling").while_doing("");
  Message bytes(encoded_size(error));
  encode_error(error, bytes);
  const Error back = decode_error(bytes.bytes());
  CHECK(back.kind() == ErrorKind::config);
  CHECK(std::string(back.what()) == "two\nlines");
  CHECK(back.hint() == "do this");
  CHECK(back.context() == error.context());
}

TEST_CASE("an error's text: bytes that are none") {
  const Error error(ErrorKind::network, "text");
  Message bytes(encoded_size(error));
  encode_error(error, bytes);
  for (std::size_t size = 0; size < bytes.size(); ++size)
    CHECK_THROWS_AS(decode_error(bytes.bytes().first(size)), Error);
  bytes.data()[0] = std::byte{99};
  CHECK_THROWS_AS(decode_error(bytes.bytes()), Error);
}
