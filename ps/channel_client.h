// The Client over any kind of Channel: finds distinct keys, splits requests by server, joins the answers.
#pragma once

#include <memory>
#include <vector>

#include "ps/channel.h"
#include "ps/client.h"

namespace fleetrun::ps {

/// What makes one client different from another of the same trainer; see wire::Header.
std::uint64_t make_incarnation();

/// The hello of `client` to the server `rank` of `servers`.
Message make_hello(const ClientOptions& client, std::uint64_t incarnation, std::uint32_t rank,
                   std::uint32_t servers);

/// Whether the answer to a hello says that the trainer came late. Throws: Error(data).
bool read_hello_answer(Reader answer);

/// `channels` in rank order; every server has accepted a hello with this incarnation.
std::unique_ptr<Client> make_channel_client(const ClientOptions& options, std::uint64_t incarnation,
                                            std::vector<std::unique_ptr<Channel>> channels,
                                            bool is_late = false);

}  // namespace fleetrun::ps
