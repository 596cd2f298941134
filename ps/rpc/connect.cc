// One channel per server, which all find each other first; where a server may come back
// (ConnectOptions::recover_within), what it did not answer is sent again (ps/client/recovering_channel.h).
#include "ps/rpc/connect.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <optional>
#include <utility>

#include <grpc/support/log.h>

#include "ps/client/channel_client.h"
#include "ps/client/recovering_channel.h"
#include "ps/rpc/dial.h"
#include "ps/rpc/rpc_channel.h"
#include "runtime/base/error.h"
#include "runtime/log/log.h"

namespace fleetrun::ps {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kSayWhoIsMissing{3};
constexpr std::chrono::milliseconds kTryAgain{200};
// One that was there, at first: where it has moved to another process (ps/rpc/hosted_servers.h), that one is
// about to listen.
constexpr std::chrono::milliseconds kTryAgainSoon{2}, kSoon{500};
constexpr std::chrono::milliseconds kLookAtHellos{20};  // while connections are still being made
constexpr std::chrono::milliseconds kLookAtMoves{20};   // whether servers are somewhere else by now

// The servers that are being connected to are somewhere else by now.
struct ServersMoved {};

// A participant of a step in sync mode waits, with its push, for all others:
// there can be no limit to their bytes together.
InFlight::Limits limits_of(const ClientOptions& client) {
  InFlight::Limits limits;
  limits.patience = client.deadlines.data;
  if (client.mode == Mode::sync) limits.bytes = std::numeric_limits<std::uint64_t>::max();
  return limits;
}

RpcChannelOptions channel_options(const ClientOptions& client, const ConnectOptions& options) {
  return {limits_of(client), options.silence};
}

// Connects to all servers at once, says hello to each, and again to those that are
// not there yet or went away in between.
class Introduction {
 public:
  // Which servers the channels lead to, by rank.
  struct Among {
    std::uint32_t first = 0, servers = 0;
    std::uint64_t moves = 0;  // ServerAddresses::moves() before their endpoints were read
  };

  Introduction(const ClientOptions& client, std::uint64_t incarnation,
               const std::vector<std::unique_ptr<RpcChannel>>& channels, const ConnectOptions& options,
               Among among, const std::atomic<bool>* give_up = nullptr)
      : client_(client),
        incarnation_(incarnation),
        channels_(channels),
        options_(options),
        among_(among),
        give_up_(give_up),
        transport_kinds_(transport_kinds_of(options.transport)),
        started_(Clock::now()),
        rpc_deadline_(std::chrono::system_clock::now() + options.connect_timeout),
        endings_(std::make_shared<Endings>()),
        servers_(channels.size()) {}

  /// Throws: ServersMoved; Error.
  Welcome run() {
    const auto deadline = started_ + options_.connect_timeout;
    bool said = false;
    for (;;) {
      for (std::uint32_t s = 0; s < channels_.size(); ++s) go_on(s);
      if (missing().empty()) return welcome_;
      if (options_.addresses && options_.addresses->moves() != among_.moves) throw ServersMoved();
      if (Clock::now() >= deadline || (give_up_ && *give_up_) || nobody_answers()) fail();
      if (!said && Clock::now() >= started_ + kSayWhoIsMissing) {
        const bool looks_on = client_.trainer == wire::kObserver;
        log::warning((looks_on ? "an observer" : "trainer " + std::to_string(client_.trainer)) +
                     " waits for " + missing());
        said = true;
      }
      wait(said ? deadline : std::min(deadline, started_ + kSayWhoIsMissing));
    }
  }

 private:
  struct Server {
    std::optional<Dial> dial;
    std::unique_ptr<Call> hello;
    bool known = false;
    std::size_t attempts = 0;
    std::size_t transport_kind = 0;  // of transport_kinds_, the one to try
    Clock::time_point again, begun;
    Silence silence;
  };

  // One server, as far as it gets without waiting. Throws when it has refused for good.
  void go_on(std::uint32_t s) {
    Server& server = servers_[s];
    if (server.known) return;
    if (server.hello && server.hello->has_ended()) settle(server);
    if (server.known || server.hello) return;
    do {
      if (server.dial) continue;
      if (server.transport_kind == 0 && Clock::now() < server.again) return;
      const bool is_soon = give_up_ && Clock::now() < started_ + kSoon;
      server.again = Clock::now() + (is_soon ? kTryAgainSoon : kTryAgain);
      server.begun = Clock::now();
      server.dial.emplace(channels_[s]->endpoint(), channels_[s]->name(), options_.access, server.attempts,
                          transport_kinds_[server.transport_kind]);
    } while (!has_advanced(server));
    if (server.dial->has_failed()) {
      reason_ = server.dial->reason();
      server.silence.after(server.dial->was_cut_off(), server.begun);
      server.dial.reset();
      ++server.attempts;
      server.transport_kind = 0;
    } else if (server.dial->is_connected()) {
      channels_[s]->use(*server.dial);
      server.dial.reset();
      server.transport_kind = 0;
      server.hello = channels_[s]->start_hello(
          make_hello(client_, incarnation_, among_.first + s, among_.servers, channels_[s]->connection()),
          endings_, rpc_deadline_);
    }
  }

  // False: that way is none, and the next one is to be tried, at once. Only the last way's errors count.
  bool has_advanced(Server& server) {
    const bool is_last = server.transport_kind + 1 == transport_kinds_.size();
    try {
      server.dial->advance();
      if (is_last || !server.dial->has_failed()) return true;
    } catch (const Error&) {
      if (is_last) throw;
    }
    server.dial.reset();
    ++server.transport_kind;
    return false;
  }

  // From here on: whom the server knows it has to lose as well, also while others are still waited for.
  void attend(RpcChannel& channel) const {
    if (client_.trainer == wire::kObserver) return;
    const wire::Header header{wire::Method::attend, client_.trainer,    0,
                              incarnation_,         client_.generation, channel.connection()};
    channel.attend(wire::draft(header, 0).message);
  }

  static bool is_over(const Error& error) { return error.kind() != ErrorKind::network; }

  void settle(Server& server) {
    try {
      welcome_.add(static_cast<std::uint32_t>(&server - servers_.data()),
                   wire::read_greeting(server.hello->result()));
      server.known = true;
      attend(*channels_[static_cast<std::size_t>(&server - servers_.data())]);
    } catch (const Error& error) {
      if (is_over(error)) throw;
      reason_ = error.what();
    }
    server.hello.reset();
  }

  // Until a connection gets on, a hello has ended, somebody is to be tried again, or `until`.
  void wait(Clock::time_point until) {
    if (options_.addresses) until = std::min(until, Clock::now() + kLookAtMoves);
    std::vector<pollfd> dials;
    bool hellos = false;
    for (const Server& server : servers_) {
      if (server.known) continue;
      hellos = hellos || server.hello;
      if (server.dial) {
        dials.push_back(server.dial->wanted());
        until = std::min(until, server.dial->deadline());
      } else if (!server.hello) {
        until = std::min(until, server.again);
      }
    }
    if (dials.empty()) {
      seen_ = endings_->wait_for_more(seen_, until);
      return;
    }
    if (hellos) until = std::min(until, Clock::now() + kLookAtHellos);
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
    ::poll(dials.data(), dials.size(), static_cast<int>(std::max<std::int64_t>(left, 0)));
  }

  std::string missing() const {
    std::string names;
    for (std::size_t s = 0; s < channels_.size(); ++s) {
      if (!servers_[s].known) names += (names.empty() ? "" : ", ") + channels_[s]->name();
    }
    return names;
  }

  // Where nobody waits for servers that are to come back.
  bool nobody_answers() const {
    return !give_up_ && std::any_of(servers_.begin(), servers_.end(),
                                    [](const Server& server) { return server.silence.is_hopeless(); });
  }

  [[noreturn]] void fail() const {
    const auto waited = std::chrono::round<std::chrono::milliseconds>(Clock::now() - started_);
    std::string hint = "check that the servers run and that their endpoints can be reached from here";
    for (const Server& server : servers_) hint = server.known ? hint : server.silence.hint(hint);
    throw Error(ErrorKind::network,
                "no answer within " + std::to_string(std::min(waited, options_.connect_timeout).count()) +
                    " ms from " + missing() + (reason_.empty() ? "" : " (" + reason_ + ")"),
                hint);
  }

  const ClientOptions& client_;
  std::uint64_t incarnation_;
  const std::vector<std::unique_ptr<RpcChannel>>& channels_;
  const ConnectOptions& options_;
  Among among_;
  const std::atomic<bool>* give_up_;
  std::vector<TransportKind> transport_kinds_;
  Clock::time_point started_;
  std::chrono::system_clock::time_point rpc_deadline_;
  std::shared_ptr<Endings> endings_;  // shared with the hellos
  std::size_t seen_ = 0;
  Welcome welcome_;
  std::vector<Server> servers_;
  std::string reason_;
};

// Channels to all servers that have accepted a hello of `client`.
struct Introduced {
  std::uint64_t incarnation;
  std::shared_ptr<Answers> answers;  // shared by the channels
  std::vector<std::string> endpoints;
  std::vector<std::unique_ptr<RpcChannel>> channels;
  Welcome welcome;

  Introduced(const std::vector<std::string>& given, const ClientOptions& client,
             const ConnectOptions& options)
      : incarnation(client.identity != 0 ? client.identity : make_incarnation()) {
    if (given.empty()) throw Error(ErrorKind::config, "no parameter servers to connect to");
    // gRPC's own lines would repeat, in other words, what our errors say.
    gpr_set_log_verbosity(static_cast<gpr_log_severity>(GPR_LOG_SEVERITY_ERROR + 1));
    answers = make_answers();
    while (!connect_to_all(client, options, given)) {
    }
  }

  // False: servers have moved meanwhile.
  bool connect_to_all(const ClientOptions& client, const ConnectOptions& options,
                      const std::vector<std::string>& given) {
    const std::uint64_t moves = options.addresses ? options.addresses->moves() : 0;
    endpoints = options.addresses ? options.addresses->all() : given;
    const auto servers = static_cast<std::uint32_t>(endpoints.size());
    channels.clear();
    for (std::uint32_t rank = 0; rank < servers; ++rank)
      channels.push_back(
          std::make_unique<RpcChannel>(rank, endpoints[rank], answers, channel_options(client, options)));
    try {
      welcome = Introduction(client, incarnation, channels, options, {0, servers, moves}).run();
      return true;
    } catch (const ServersMoved&) {
      return false;
    }
  }

  std::vector<std::unique_ptr<Channel>> take_channels() {
    std::vector<std::unique_ptr<Channel>> taken;
    for (auto& channel : channels) taken.push_back(std::move(channel));
    return taken;
  }
};

// One of a client's servers, to be connected to again.
struct Known {
  std::uint32_t rank;
  std::uint32_t servers;
  std::string endpoint;
  ClientOptions client;
  ConnectOptions options;
  std::uint64_t incarnation;
  std::shared_ptr<Answers> answers;  // shared by the client's channels
  std::uint64_t server;              // wire::HelloAnswer::server
  std::uint64_t next_change;         // likewise, the least of all servers

  std::unique_ptr<Channel> connect_again(std::function<void()> on_lost, const std::atomic<bool>& give_up,
                                         std::uint64_t answered) const {
    ConnectOptions patient = options;
    patient.connect_timeout = options.recover_within;
    std::vector<std::unique_ptr<RpcChannel>> one(1);
    std::optional<Welcome> found;
    while (!found) {
      const std::uint64_t moves = options.addresses ? options.addresses->moves() : 0;
      const std::string at = options.addresses ? options.addresses->at(rank) : endpoint;
      one[0] = std::make_unique<RpcChannel>(rank, at, answers, channel_options(client, options));
      log::warning("trainer " + std::to_string(client.trainer) +
                   (at == endpoint ? " has lost " + one[0]->name() + ", and waits for it to come back"
                                   : " looks for " + one[0]->name()));
      try {
        found = Introduction(client, incarnation, one, patient, {rank, servers, moves}, &give_up).run();
      } catch (const ServersMoved&) {
      }
    }
    const Welcome& welcome = *found;
    const std::string name = one[0]->name();
    if (welcome.servers.at(0) != server) {
      throw Error(ErrorKind::data, name + " was restarted without its data",
                  "start the job again; --ps_checkpoint DIR keeps it");
    }
    check_has(welcome, answered, name);
    if (options.addresses) options.addresses->watch(rank, one[0]->endpoint(), on_lost);
    one[0]->when_lost(std::move(on_lost));
    log::info("trainer " + std::to_string(client.trainer) + " goes on with " + name);
    return std::move(one[0]);
  }
};

std::unique_ptr<Channel> recovering(Known known, std::unique_ptr<RpcChannel> channel) {
  const std::string name = channel->name();
  const auto first = [&channel, addresses = known.options.addresses,
                      rank = known.rank](std::function<void()> on_lost) -> std::unique_ptr<Channel> {
    if (addresses) addresses->watch(rank, channel->endpoint(), on_lost);
    channel->when_lost(std::move(on_lost));
    return std::move(channel);
  };
  const InFlight::Limits limits = limits_of(known.client);
  const std::uint64_t answered = known.next_change - 1;
  return std::make_unique<RecoveringChannel>(
      name, first,
      [known = std::move(known)](std::function<void()> on_lost, const std::atomic<bool>& give_up,
                                 std::uint64_t answered) {
        return known.connect_again(std::move(on_lost), give_up, answered);
      },
      limits, answered);
}

}  // namespace

std::unique_ptr<Client> connect(const std::vector<std::string>& endpoints, const ClientOptions& client,
                                const ConnectOptions& options) {
  check_tables(client.tables);
  Introduced introduced(endpoints, client, options);
  if (introduced.welcome.is_forgotten) {
    log::warning("trainer " + std::to_string(client.trainer) +
                 " was started again, and the servers do not know how far the process before it was: what "
                 "that one pushed stays, and what is read again counts twice (RESTARTED TRAINERS in "
                 "fleetrun-ps(7))");
  }
  const auto servers = static_cast<std::uint32_t>(introduced.endpoints.size());
  std::vector<std::unique_ptr<Channel>> channels;
  for (std::uint32_t rank = 0; rank < servers; ++rank) {
    Known known{rank,
                servers,
                introduced.endpoints[rank],
                client,
                options,
                introduced.incarnation,
                introduced.answers,
                introduced.welcome.servers[rank],
                introduced.welcome.next_change};
    std::unique_ptr<RpcChannel> channel = std::move(introduced.channels[rank]);
    if (options.recover_within.count() > 0) {
      channels.push_back(recovering(std::move(known), std::move(channel)));
    } else {
      channels.push_back(std::move(channel));
    }
  }
  ClientOptions telling = client;
  telling.warn = [trainer = client.trainer](const std::string& text) {
    log::warning("trainer " + std::to_string(trainer) + ": " + text);
  };
  return make_channel_client(telling, introduced.incarnation, std::move(channels), introduced.welcome);
}

Observer observe(const std::vector<std::string>& endpoints, const ConnectOptions& options) {
  ClientOptions observer = observer_options();
  observer.deadlines.data = options.connect_timeout;  // who looks on has nobody to wait for
  Introduced introduced(endpoints, observer, options);
  return make_observer(observer, introduced.incarnation, introduced.take_channels());
}

}  // namespace fleetrun::ps
