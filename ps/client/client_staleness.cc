// How stale this trainer's pushes are, and waiting for slower threads where that is bounded.
// Waiting is server 0's.
#include "ps/client/channel_client_state.h"

namespace fleetrun::ps {

StalenessCounts ChannelClient::take_staleness() {
  const wire::Header head = header(wire::Method::take_staleness);
  StalenessCounts counts;
  ask_all(
      head, [&](std::uint32_t) { return wire::draft(head, 0).message; },
      [&](std::uint32_t, Reader answer) {
        StalenessCounts of_server;
        of_server.pushes = answer.value<std::uint64_t>();
        of_server.total = answer.value<std::uint64_t>();
        of_server.highest = answer.value<std::uint64_t>();
        counts.add(of_server);
        wire::expect_end(answer);
      });
  return counts;
}

void ChannelClient::keep_pace(std::uint32_t thread, std::uint64_t step, std::uint64_t bound) {
  const wire::Header head = header(wire::Method::keep_pace, thread);
  wire::Draft draft = wire::draft(head, sizeof step + sizeof bound);
  draft.writer.value(step);
  draft.writer.value(bound);
  PendingCalls pending;
  pending.start(*channels_[0], 0, head, std::move(draft.message));
  pending.wait();
}

}  // namespace fleetrun::ps
