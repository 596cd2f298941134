#include "launcher/remote/agent_channel.h"

#include "launcher/ship/start_script.h"

#include "runtime/base/codec.h"
#include "runtime/base/error.h"

namespace fleetrun::launcher::remote {
namespace {

constexpr std::size_t kHeader = 5;    // host and type
constexpr std::size_t kMinHost = 10;  // two texts and a port

}  // namespace

// One function per message: the fields in the order of their bytes. `m` is const for a Writer.
template <class A, class M>
void fields(A& a, M& m, const Hello*) {
  a(m.protocol, m.version, m.connection, m.host);
}
template <class A, class M>
void fields(A& a, M& m, const Order*) {
  a(m.bytes);
}
template <class A, class M>
void fields(A& a, M& m, const Start*) {
  a(m.numbers);
  a.list(m.hosts, codec::kNoLimit, kMinHost, [&a](auto& host) { a(host.user, host.name, host.port); });
  a(m.ssh, m.program, m.window, m.ships, m.ship_root);
  if (m.numbers.size() != m.hosts.size()) codec::refuse("hosts without numbers");
}
template <class A, class M>
void fields(A& a, M& m, const Verdict*) {
  a(m.reason, m.hint);
}
template <class A, class M>
void fields(A& a, M& m, const Gone*) {
  a(m.why);
}
template <class A, class M>
void fields(A& a, M& m, const Signal*) {
  a(m.number);
}
template <class A, class M>
void fields(A& a, M& m, const Output*) {
  a(m.bytes);
}
template <class A, class M>
void fields(A& a, M& m, const Log*) {
  a(m.level, m.text);
}
template <class A, class M>
void fields(A& a, M& m, const Ended*) {
  a(m.status, m.screen);
}
template <class A, class M>
void fields(A& a, M& m, const Collect*) {
  a(m.marker);
}
template <class A, class M>
void fields(A& a, M& m, const File*) {
  a(m.path, m.bytes, m.first);
}
template <class A, class M>
void fields(A& a, M& m, const FilesEnd*) {
  a(m.error);
}
template <class A, class M>
void fields(A&, M&, const Bye*) {}
template <class A, class M>
void fields(A& a, M& m, const Offer*) {
  a(m.list);
}
template <class A, class M>
void fields(A& a, M& m, const Wanted*) {
  a(m.items);
}
template <class A, class M>
void fields(A& a, M& m, const Shipped*) {
  a(m.error, m.hint);
}
template <class A, class M>
void fields(A& a, M& m, const Progress*) {
  a(m.sent, m.total);
}
template <class A, class M>
void fields(A& a, M& m, const Hold*) {
  a(m.held);
}
template <class A, class M>
void fields(A& a, M& m, const Dial*) {
  a(m.stream);
}
template <class A, class M>
void fields(A& a, M& m, const Bytes*) {
  a(m.stream, m.bytes);
}
template <class A, class M>
void fields(A& a, M& m, const Hangup*) {
  a(m.stream);
}

std::string encode(const Addressed& frame) {
  codec::Writer body;
  body(frame.host, frame.message);
  return codec::framed(body.take());
}

bool ChannelDecoder::take_wish() {
  const std::size_t found = marked_ ? std::string::npos : buffer_.find(ship::kWish);
  if (found == std::string::npos) return false;
  buffer_.erase(0, found + ship::kWish.size());
  return true;
}

bool ChannelDecoder::find_marker() {
  const std::size_t found = buffer_.find(kMarker);
  if (found != std::string::npos) {
    buffer_.erase(0, found + kMarker.size());
    return marked_ = true;
  }
  if (buffer_.size() > kLongestNoise)
    throw Error(ErrorKind::data, "the host prints without end before fleetrun is started there");
  return false;
}

std::optional<Addressed> ChannelDecoder::next() {
  if (!marked_ && !find_marker()) return std::nullopt;
  const std::optional<std::string_view> body = codec::first_frame(buffer_, kHeader, longest_);
  if (!body) return std::nullopt;
  codec::Reader reader(*body);
  Addressed frame;
  reader(frame.host, frame.message);
  reader.end();
  buffer_.erase(0, static_cast<std::size_t>(body->data() + body->size() - buffer_.data()));
  return frame;
}

}  // namespace fleetrun::launcher::remote
