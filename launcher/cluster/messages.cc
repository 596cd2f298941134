#include "launcher/cluster/messages.h"

#include <array>
#include <utility>

#include "launcher/cluster/fields.h"

namespace fleetrun::launcher {
namespace {

using codec::Reader;
using codec::Writer;

// One function per message: the fields in the order of their bytes. `m` is const for a Writer.
template <class A, class M>
void fields(A& a, M& m, const Hello*) {
  a.number(m.protocol);
  a.text(m.version);
  if constexpr (A::reads) {
    if (m.protocol != kClusterProtocol) return a.skip_rest();  // only its version is known to mean the same
  }
  a.text(m.job_id);
  a.id(m.node);
  a.text(m.name);
  a.text(m.pod);
  a.number(m.connection);
  a.number(m.requested_rank);
  codec::endpoint(a, m.successor);
  codec::offer(a, m.offer);
  a.flag(m.wants_list);
  a.id(m.run);
  a.number(m.promised);
  a.number(m.formed);
  a.number(m.world);
  a.number(m.rank);
  a.flag(m.fenced);
}
template <class A, class M>
void fields(A& a, M& m, const Ready*) {
  a.number(m.generation);
  codec::offer(a, m.offer);
}
template <class A, class M>
void fields(A& a, M& m, const Running*) {
  a.number(m.generation);
}
template <class A, class M>
void fields(A& a, M& m, const Failing*) {
  a.number(m.generation);
  a.text(m.process);
}
template <class A, class M>
void fields(A& a, M& m, const Failed*) {
  a.number(m.generation);
  codec::node_failure(a, m.failure);
  codec::time(a, m.died);
}
template <class A, class M>
void fields(A& a, M& m, const Done*) {
  a.number(m.generation);
}
template <class A, class M>
void fields(A& a, M& m, const Stop*) {
  a.number(m.signal);
}
template <class A, class M>
void fields(A&, M&, const TimeUp*) {}
template <class A, class M>
void fields(A& a, M& m, const Leave*) {
  a.text(m.why);
}
template <class A, class M>
void fields(A&, M&, const KnowsEnd*) {}
template <class A, class M>
void fields(A& a, M& m, const AskList*) {
  a.number(m.generation);
}
template <class A, class M>
void fields(A& a, M& m, const Standing*) {
  codec::configuration(a, m.formed);
  a.list(m.promised, kMaxMembers, codec::kMinConfiguration,
         [&a](auto& each) { codec::configuration(a, each); });
}
template <class A, class M>
void fields(A& a, M& m, const Welcome*) {
  a.text(m.version);
  a.id(m.run);
  a.id(m.coordinator);
  a.flag(m.resumed);
  a.flag(m.provisional);
  a.number(m.beat_ms);
  a.number(m.lease_ms);
}
template <class A, class M>
void fields(A& a, M& m, const Refused*) {
  a.text(m.text);
  a.text(m.hint);
  a.number(m.exit_status);
}
template <class A, class M>
void fields(A& a, M& m, const Waiting*) {
  a.text(m.text);
}
template <class A, class M>
void fields(A& a, M& m, const Parked*) {
  a.text(m.text);
}
template <class A, class M>
void fields(A& a, M& m, const Prepare*) {
  a.number(m.generation);
  a.text(m.why);
  a.flag(m.in_place);
  codec::configuration(a, m.proposed);
  codec::configuration(a, m.base);
}
template <class A, class M>
void fields(A& a, M& m, const WorldNews*) {
  a.number(m.generation);
  a.number(m.attempt);
  a.id(m.run);
  a.number(m.rank);
  a.number(m.nodes);
  a.number(m.first_trainer);
  a.number(m.trainers);
  a.number(m.first_server);
  a.number(m.servers);
  codec::endpoint(a, m.rendezvous);
  a.text(m.hash);
  a.flag(m.update);
}
template <class A, class M>
void fields(A& a, M& m, const WorldList*) {
  if constexpr (A::reads) {
    auto world = std::make_shared<World>();
    codec::world(a, *world);
    m.world = std::move(world);
  } else {
    codec::world(a, *m.world);
  }
  a.id(m.coordinator);
  a.list(m.past, kMaxMembers, codec::kMinPast, [&a](auto& each) { codec::past(a, each); });
}
template <class A, class M>
void fields(A& a, M& m, const End*) {
  codec::job_end(a, m.end);
  a.flag(m.left);
}
template <class A, class M>
void fields(A& a, M& m, const Redirect*) {
  codec::endpoint(a, m.coordinator);
  a.text(m.why);
}
template <class A, class M>
void fields(A&, M&, const NotYet*) {}
template <class A, class M>
void fields(A&, M&, const AskStanding*) {}
template <class A, class M>
void fields(A& a, M& m, const Acting*) {
  a.text(m.job_id);
  a.id(m.run);
  a.number(m.generation);
  codec::endpoint(a, m.coordinator);
}
template <class A, class M>
void fields(A& a, M& m, const Beat*) {
  codec::time(a, m.sent);
  codec::time(a, m.echo);
  codec::time(a, m.held);
}

constexpr std::size_t kTypes = std::variant_size_v<Message>;

template <std::size_t Index>
Message read(Reader& reader) {
  std::variant_alternative_t<Index, Message> message;
  fields(reader, message, static_cast<const decltype(message)*>(nullptr));
  return message;
}

template <std::size_t... Index>
constexpr std::array<Message (*)(Reader&), kTypes> readers(std::index_sequence<Index...>) {
  return {&read<Index>...};
}

}  // namespace

std::string_view name_of(const Message& message) noexcept {
  constexpr std::array<std::string_view, kTypes> kNames = {
      "hello",   "ready",        "running",   "failing",    "failed",     "done",    "stop",
      "time up", "leave",        "knows end", "ask list",   "standing",   "welcome", "refused",
      "waiting", "parked",       "prepare",   "world news", "world list", "end",     "redirect",
      "not yet", "ask standing", "acting",    "beat"};
  return kNames[message.index()];
}

std::string encode(const Message& message) {
  Writer writer;
  writer.number(static_cast<std::uint8_t>(message.index()));
  std::visit([&writer](const auto& m) { fields(writer, m, &m); }, message);
  return writer.take();
}

Message decode(std::string_view bytes) {
  constexpr auto kReaders = readers(std::make_index_sequence<kTypes>());
  Reader reader(bytes);
  std::uint8_t type = 0;
  reader.number(type);
  if (type >= kTypes) codec::refuse("it is of an unknown type");
  Message message = kReaders[type](reader);
  reader.end();
  return message;
}

SharedMessage::SharedMessage(Message message) : shared_(std::make_shared<const Shared>(std::move(message))) {}

const std::string& SharedMessage::bytes() const {
  if (shared_->bytes.empty()) shared_->bytes = encode(shared_->message);
  return shared_->bytes;
}

}  // namespace fleetrun::launcher
