// Beast's parser, fed by hand: the only file that sees Beast. What the parser leaves of a piece (half a line
// of the head or of a chunk) waits here for the next one.
#include "launcher/etcd/http_answer.h"

#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

#include <algorithm>
#include <utility>

#include "runtime/base/error.h"

namespace fleetrun::launcher {
namespace {

namespace http = boost::beast::http;
using boost::system::error_code;

constexpr std::uint32_t kMaxHead = 16 * 1024;

[[noreturn]] void refuse(const std::string& reason) {
  throw Error(ErrorKind::network, "the answer is not HTTP: " + reason);
}

}  // namespace

struct HttpAnswer::Parser {
  http::response_parser<http::string_body> parser;
  std::string rest;
};

HttpAnswer::HttpAnswer(std::size_t max_bytes) : parser_(std::make_unique<Parser>()) {
  parser_->parser.eager(true);
  parser_->parser.header_limit(kMaxHead);
  if (max_bytes == 0)
    parser_->parser.body_limit(boost::none);
  else
    parser_->parser.body_limit(max_bytes);
}

HttpAnswer::~HttpAnswer() = default;

void HttpAnswer::take(std::string_view bytes) {
  auto& [parser, rest] = *parser_;
  rest.append(bytes);
  std::string_view left = rest;
  while (!left.empty() && !parser.is_done()) {
    error_code error;
    const std::size_t used = parser.put(boost::asio::const_buffer(left.data(), left.size()), error);
    left.remove_prefix(std::min(used, left.size()));
    if (error == http::error::need_more || (!error && used == 0)) break;
    if (error) refuse(error.message());
  }
  rest.erase(0, rest.size() - left.size());
}

void HttpAnswer::end() {
  if (parser_->parser.is_done()) return;
  if (!parser_->parser.is_header_done())
    throw Error(ErrorKind::network, "the connection ended before the answer");
  error_code error;
  parser_->parser.put_eof(error);
  if (error || !parser_->parser.is_done())
    throw Error(ErrorKind::network, "the connection ended within the answer");
}

int HttpAnswer::status() const noexcept {
  return parser_->parser.is_header_done() ? static_cast<int>(parser_->parser.get().result_int()) : 0;
}

bool HttpAnswer::is_whole() const noexcept {
  return parser_->parser.is_done();
}

std::string HttpAnswer::take_body() {
  return std::exchange(parser_->parser.get().body(), {});
}

}  // namespace fleetrun::launcher
