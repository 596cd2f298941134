// Any bytes, as what a member of etcd sends: no crash, nothing but an Error, and the same whatever the pieces
// in which they arrive.
//
// The first byte is the size of the pieces.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>

#include "launcher/etcd/etcd_messages.h"
#include "launcher/etcd/http_answer.h"
#include "runtime/base/error.h"

using namespace fleetrun;
using namespace fleetrun::launcher;

namespace {

constexpr std::size_t kMaxBody = 1 << 16;

struct Came {
  int status = 0;
  std::string body;

  bool operator==(const Came&) const = default;
};

/// The whole answer; nullopt: it was refused, sooner or later, or is cut off.
std::optional<Came> receive(std::string_view bytes, std::size_t piece) {
  HttpAnswer answer(kMaxBody);
  try {
    for (; !bytes.empty(); bytes.remove_prefix(std::min(piece, bytes.size())))
      answer.take(bytes.substr(0, piece));
    answer.end();
    return Came{answer.status(), answer.take_body()};
  } catch (const Error&) {
    return std::nullopt;
  }
}

template <class Read>
void read(Read read) {
  try {
    read();
  } catch (const Error&) {
  }
}

void read_all(std::string_view body) {
  read([&] { answer_in(body); });
  read([&] { time_to_live_in(body); });
  read([&] { token_in(body); });
  read([&] { watch_news_in(body); });
  read([&] { failure_in(503, body); });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::optional<Came> at_once = receive(bytes, bytes.size() + 1);
  if (at_once != receive(bytes, 1u + data[0])) {
    std::fprintf(stderr, "etcd_answer_fuzz: the pieces make a difference\n");
    std::abort();
  }
  if (at_once && at_once->body.size() > kMaxBody) std::abort();
  read_all(at_once ? std::string_view(at_once->body) : bytes);
  return 0;
}
