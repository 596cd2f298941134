// The Client over any kind of Channel: finds distinct keys, splits requests by server, joins the answers.
#pragma once

#include <memory>
#include <vector>

#include "ps/base/fast_forward.h"
#include "ps/base/greeting.h"
#include "ps/base/server_channel.h"
#include "ps/client/client.h"

namespace fleetrun::ps {

/// What makes one client different from another of the same trainer; see wire::Header.
std::uint64_t make_incarnation();

/// The hello of `client` to the server `rank` of `servers`.
/// `connection`: another number for each connection of an incarnation; 0 where there is only one.
Message make_hello(const ClientOptions& client, std::uint64_t incarnation, std::uint32_t rank,
                   std::uint32_t servers, std::uint64_t connection = 0);

/// What all servers together have answered to a client's hellos: where it goes on.
struct Welcome {
  bool is_late = false;
  bool is_forgotten = false;  // wire::kForgotten
  bool is_cut = false;        // wire::kCut
  std::uint64_t next_change = UINT64_MAX;
  std::uint64_t barriers = 0, sums = 0, epochs = UINT64_MAX;
  std::vector<FastForward::Done::Epoch> last_epochs = {};  // by server
  std::vector<wire::EpochMark> marks = {};                 // of the server that knows most
  std::vector<std::uint64_t> servers = {};                 // their numbers
  std::uint64_t started_from = 0;                          // the save that they were started from, 0 for none
  std::optional<std::uint32_t> resumed = {}, empty = {};   // a server with wire::kResumed, wire::kBeganEmpty

  /// Throws: Error(data) when it was started from another save than those before it, or goes on from a
  /// checkpoint where another has none.
  void add(std::uint32_t rank, const wire::Greeting& answer);
};

/// Throws: Error(data) naming the server that has come back without a change that it had answered.
void check_has(const Welcome& welcome, std::uint64_t answered, const std::string& name);

/// `channels` in rank order; every server has accepted a hello with this incarnation, and answered `welcome`.
std::unique_ptr<Client> make_channel_client(const ClientOptions& options, std::uint64_t incarnation,
                                            std::vector<std::unique_ptr<Channel>> channels,
                                            const Welcome& welcome);

}  // namespace fleetrun::ps
