#include "launcher/cluster/messages.h"

#include <array>
#include <utility>

#include "launcher/cluster/fields.h"

namespace fleetrun::launcher {

// One function per message: the fields in the order of their bytes. `m` is const for a Writer.
template <class A, class M>
void fields(A& a, M& m, const Hello*) {
  a(m.protocol, m.version);
  if constexpr (A::reads) {
    if (m.protocol != kClusterProtocol) return a.skip_rest();  // only its version is known to mean the same
  }
  a(m.job_id);
  a.id(m.node);
  a(m.name, m.pod, m.connection, m.requested_rank, m.successor, m.offer, m.wants_list);
  a.id(m.run);
  a(m.promised, m.formed, m.world, m.rank, m.fenced, m.nodes.min, m.nodes.max, m.nodes.multiple, m.program);
}
template <class A, class M>
void fields(A& a, M& m, const Ready*) {
  a(m.generation, m.offer);
}
template <class A, class M>
void fields(A& a, M& m, const Running*) {
  a(m.generation);
}
template <class A, class M>
void fields(A& a, M& m, const Failing*) {
  a(m.generation, m.process);
}
template <class A, class M>
void fields(A& a, M& m, const Failed*) {
  a(m.generation, m.failure, m.died);
}
template <class A, class M>
void fields(A& a, M& m, const Done*) {
  a(m.generation);
}
template <class A, class M>
void fields(A& a, M& m, const Stop*) {
  a(m.signal);
}
template <class A, class M>
void fields(A&, M&, const TimeUp*) {}
template <class A, class M>
void fields(A& a, M& m, const Leave*) {
  a(m.why);
}
template <class A, class M>
void fields(A&, M&, const KnowsEnd*) {}
template <class A, class M>
void fields(A& a, M& m, const AskList*) {
  a(m.generation);
}
template <class A, class M>
void fields(A& a, M& m, const Standing*) {
  a(m.formed);
  list(a, m.promised, kMinConfiguration);
}
template <class A, class M>
void fields(A& a, M& m, const Welcome*) {
  a(m.version);
  a.id(m.run);
  a.id(m.coordinator);
  a(m.resumed, m.provisional, m.beat_ms, m.lost_after_ms);
}
template <class A, class M>
void fields(A& a, M& m, const Refused*) {
  a(m.text, m.hint, m.exit_status);
}
template <class A, class M>
void fields(A& a, M& m, const Waiting*) {
  a(m.text);
}
template <class A, class M>
void fields(A& a, M& m, const Parked*) {
  a(m.text);
}
template <class A, class M>
void fields(A& a, M& m, const Prepare*) {
  a(m.generation, m.why, m.in_place, m.proposed, m.base);
}
template <class A, class M>
void fields(A& a, M& m, const WorldNews*) {
  a(m.generation, m.attempt);
  a.id(m.run);
  a(m.rank, m.nodes, m.first_trainer, m.trainers, m.first_server, m.servers, m.rendezvous, m.hash, m.update);
}
template <class A, class M>
void fields(A& a, M& m, const WorldList*) {
  a(m.world);
  a.id(m.coordinator);
  list(a, m.past, kMinPast);
}
template <class A, class M>
void fields(A& a, M& m, const End*) {
  a(m.end, m.left);
}
template <class A, class M>
void fields(A& a, M& m, const Redirect*) {
  a(m.coordinator, m.why, m.heirs);
}
template <class A, class M>
void fields(A&, M&, const NotYet*) {}
template <class A, class M>
void fields(A&, M&, const AskStanding*) {}
template <class A, class M>
void fields(A& a, M& m, const Acting*) {
  a(m.job_id);
  a.id(m.run);
  a(m.generation, m.coordinator);
}
template <class A, class M>
void fields(A& a, M& m, const Beat*) {
  a(m.sent, m.echo, m.held);
}

std::string_view name_of(const Message& message) noexcept {
  constexpr std::array<std::string_view, std::variant_size_v<Message>> kNames = {
      "hello",   "ready",        "running",   "failing",    "failed",     "done",    "stop",
      "time up", "leave",        "knows end", "ask list",   "standing",   "welcome", "refused",
      "waiting", "parked",       "prepare",   "world news", "world list", "end",     "redirect",
      "not yet", "ask standing", "acting",    "beat"};
  return kNames[message.index()];
}

std::string encode(const Message& message) {
  codec::Writer writer(kMaxText);
  writer(message);
  return writer.take();
}

Message decode(std::string_view bytes) {
  codec::Reader reader(bytes, kMaxText);
  Message message;
  reader(message);
  reader.end();
  return message;
}

SharedMessage::SharedMessage(Message message) : shared_(std::make_shared<const Shared>(std::move(message))) {}

const std::string& SharedMessage::bytes() const {
  if (shared_->bytes.empty()) shared_->bytes = encode(shared_->message);
  return shared_->bytes;
}

}  // namespace fleetrun::launcher
