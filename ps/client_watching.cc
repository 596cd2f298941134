// Looking inside the servers.
#include "ps/channel_client_state.h"

namespace fleetrun::ps {

std::vector<std::string> ChannelClient::stat() {
  std::vector<std::string> texts(servers());
  const wire::Header head = header(wire::Method::stat);
  ask_all(
      head, [&](std::uint32_t) { return wire::draft(head, 0).message; },
      [&](std::uint32_t server, Reader answer) {
        for (auto left = answer.value<std::uint32_t>(); left > 0; --left) {
          static_cast<void>(answer.value<std::uint64_t>());  // id and kind
          static_cast<void>(answer.value<std::uint64_t>());
          static_cast<void>(wire::read_text(answer));
        }
        texts[server] = wire::read_text(answer);
        wire::expect_end(answer);
      });
  return texts;
}

}  // namespace fleetrun::ps
