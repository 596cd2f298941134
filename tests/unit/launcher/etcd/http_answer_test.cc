// The answers are those of an etcd 3.4.23.
#include "launcher/etcd/http_answer.h"

#include <doctest/doctest.h>

#include <string>

#include "runtime/base/error.h"

using namespace fleetrun;
using namespace fleetrun::launcher;

namespace {

const std::string kRange =
    "HTTP/1.1 200 OK\r\nAccess-Control-Allow-Headers: accept, content-type, authorization\r\n"
    "Content-Type: application/json\r\nGrpc-Metadata-Content-Type: application/grpc\r\n"
    "Date: Sat, 21 Nov 2026 11:39:54 GMT\r\nContent-Length: 9\r\n\r\n{\"ID\":\"4\"";
const std::string kMissing =
    "HTTP/1.1 404 Not Found\r\nContent-Type: application/json\r\nTrailer: Grpc-Trailer-Content-Type\r\n"
    "Date: Sat, 21 Nov 2026 11:39:54 GMT\r\nTransfer-Encoding: chunked\r\n\r\n"
    "6\r\n{\"erro\r\nd\r\nr\":\"no such\"}\r\n0\r\nGrpc-Trailer-Content-Type: application/grpc\r\n\r\n";
const std::string kWatch =
    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    "1b\r\n{\"result\":{\"created\":true}}\r\n1\r\n\n\r\n";
const std::string kUntilTheEnd = "HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\nall of it";

struct Heard {
  int status = 0;
  std::string body;
  bool whole = false;
};

Heard hear(std::string_view first, std::string_view second, bool ends) {
  HttpAnswer answer(1000);
  Heard heard;
  for (const std::string_view piece : {first, second}) {
    answer.take(piece);
    heard.body += answer.take_body();
  }
  if (ends) answer.end();
  heard.body += answer.take_body();
  heard.status = answer.status();
  heard.whole = answer.is_whole();
  return heard;
}

void check_every_split(const std::string& text, int status, const std::string& body, bool ends = false) {
  for (std::size_t at = 0; at <= text.size(); ++at) {
    CAPTURE(at);
    const Heard heard = hear(std::string_view(text).substr(0, at), std::string_view(text).substr(at), ends);
    CHECK(heard.status == status);
    CHECK(heard.body == body);
    CHECK(heard.whole);
  }
}

std::string failure(const std::string& text, std::size_t max_bytes = 1000) {
  HttpAnswer answer(max_bytes);
  try {
    answer.take(text);
    answer.end();
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::network);
    return error.what();
  }
  return "none";
}

}  // namespace

TEST_CASE("an HTTP answer is the same however it is cut in two") {
  check_every_split(kRange, 200, "{\"ID\":\"4\"");
  check_every_split(kMissing, 404, "{\"error\":\"no such\"}");
  check_every_split(kUntilTheEnd, 200, "all of it", true);
}

TEST_CASE("an HTTP answer that comes byte by byte is the same") {
  for (const std::string& text : {kRange, kMissing}) {
    HttpAnswer answer(1000);
    std::string body;
    for (const char& byte : text) {
      CHECK_FALSE(answer.is_whole());
      answer.take({&byte, 1});
      body += answer.take_body();
    }
    CHECK(answer.is_whole());
    CHECK(body == (text == kRange ? "{\"ID\":\"4\"" : "{\"error\":\"no such\"}"));
  }
}

TEST_CASE("a stream's pieces are there as they come") {
  HttpAnswer answer(0);
  answer.take(kWatch);
  CHECK(answer.status() == 200);
  CHECK(answer.take_body() == "{\"result\":{\"created\":true}}\n");
  CHECK_FALSE(answer.is_whole());
  answer.take("3\r\nab");
  CHECK(answer.take_body() == "ab");
  answer.take("c\r\n");
  CHECK(answer.take_body() == "c");
}

TEST_CASE("an answer that is cut off is no answer, wherever it is cut") {
  for (const std::string& text : {kRange, kMissing, kWatch}) {
    for (std::size_t size = 0; size < text.size(); ++size) {
      CAPTURE(size);
      HttpAnswer answer(1000);
      answer.take(std::string_view(text).substr(0, size));
      CHECK_THROWS_AS(answer.end(), Error);
    }
  }
  CHECK(failure("") == "the connection ended before the answer");
  CHECK(failure(kRange.substr(0, kRange.size() - 1)) == "the connection ended within the answer");
}

TEST_CASE("what is no HTTP answer is refused, and so is one that is too large") {
  CHECK(failure("220 mail.example.org ESMTP\r\n\r\n").starts_with("the answer is not HTTP: "));
  CHECK(failure("HTTP/1.1 2000 OK\r\n\r\n").starts_with("the answer is not HTTP: "));
  CHECK(failure("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n")
            .starts_with("the answer is not HTTP"));
  CHECK(failure("HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n", 10).starts_with("the answer is not HTTP"));
  CHECK(failure("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nb\r\n12345678901\r\n0\r\n\r\n", 10)
            .starts_with("the answer is not HTTP"));
  CHECK(failure("HTTP/1.1 200 OK\r\nX: " + std::string(20'000, 'x')).starts_with("the answer is not HTTP"));
}
