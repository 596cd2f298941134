// How long hosts take to meet: from the start of the first agent until the last one knows its rank, the size
// of the world, its master and its hash. Coordinator and agents are those of a real job, authentication
// included, on the loopback; the coordinator has one thread, all agents share another.
//
//   rendezvous_bench [--lists] [AGENTS…]     default: 2 64 1024 4000
//
// --lists: until the last one has the full list of members, too.

#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "launcher/cluster/coordinator.h"
#include "launcher/cluster/deadline_timer.h"
#include "launcher/cluster/member_core.h"
#include "runtime/base/error.h"

using namespace fleetrun;
using namespace fleetrun::launcher;
using Clock = std::chrono::steady_clock;

namespace {

ChannelSettings channel_settings(const Secret& secret) {
  ChannelSettings settings;
  settings.secret = secret;
  settings.version = "bench";
  settings.handshake_timeout = std::chrono::seconds(60);
  return settings;
}

constexpr std::size_t kLongMessage = 2048;  // more than any other has

double thread_seconds() {
  timespec used = {};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
}

/// What the agents have come to.
struct Tally {
  std::size_t agents = 0, met = 0;
  std::string hash;  // that all have to agree on
  std::string list;  // likewise, as it came
  Clock::time_point last{};
  std::vector<bool> ranks;
};

/// A node without a supervisor: a MemberCore and its connection.
class Agent final : public ChannelListener {
 public:
  Agent(boost::asio::io_context& loop, std::size_t number, const Endpoint& coordinator,
        const ChannelSettings& channel, bool lists, Tally& tally)
      : loop_(loop),
        channel_settings_(channel),
        tally_(tally),
        lists_(lists),
        core_(settings(number, coordinator, lists)),
        timer_(loop, [this] { perform(core_.on_tick(cluster_now())); }) {}

  void start() { perform(core_.start(cluster_now())); }

  void on_open() override { perform(core_.on_connected(uplink_, cluster_now())); }
  void on_message(std::string_view bytes) override {
    if (lists_ && bytes.size() > kLongMessage) return on_list(bytes);
    perform(core_.on(uplink_, decode(bytes), cluster_now()));
  }
  void on_closed(const ChannelClosed& closed) override {
    std::fprintf(stderr, "rendezvous_bench: %s\n", closed.why.c_str());
    std::exit(1);
  }

 private:
  static MemberSettings settings(std::size_t number, const Endpoint& coordinator, bool lists) {
    char node[33];
    std::snprintf(node, sizeof node, "%032zx", number);
    MemberSettings settings;
    settings.job_id = "bench";
    settings.version = "bench";
    settings.node = node;
    settings.name = "node" + std::to_string(number);
    settings.pod = "abcdef";
    settings.offer = {"10.0." + std::to_string(number / 250) + "." + std::to_string(number % 250),
                      {20'000, 20'001, 20'002, 20'003, 20'004, 20'005, 20'006, 20'007},
                      {},
                      20'008};
    settings.wants_list = lists;
    settings.coordinator = coordinator;
    settings.lost_after = std::chrono::seconds(60);
    return settings;
  }

  void perform(joining::Outputs outputs) {
    for (auto& output : outputs) std::visit([this](auto& one) { act(one); }, output);
    timer_.set(core_.next_deadline());
  }
  void act(joining::Dial& order) {
    uplink_ = order.uplink;
    channel_ = dial(loop_, order.to, channel_settings_, *this);
  }
  void act(joining::Send& send) { channel_->send(send.message.bytes()); }
  void act(joining::TellPrepare& prepare) {
    boost::asio::post(loop_, [this, generation = prepare.generation] {
      perform(core_.ready(generation, settings(0, {}, false).offer, cluster_now()));
    });
  }
  /// Hosts read their lists at the same time; here one thread would read thousands.
  /// The first reads, the others compare.
  void on_list(std::string_view bytes) {
    if (tally_.list.empty()) {
      const auto list = std::get<WorldList>(decode(bytes));
      if (list.world->members.size() != tally_.agents) std::abort();
      tally_.list = bytes;
    }
    if (tally_.list != bytes) std::abort();
    count();
  }
  void count() {
    if (++tally_.met == tally_.agents) tally_.last = Clock::now();
  }
  void act(joining::TellWorld& told) {
    if (tally_.hash.empty()) tally_.hash = told.news.hash;
    if (told.news.hash != tally_.hash || told.news.nodes != static_cast<int>(tally_.agents) ||
        told.news.rendezvous.port == 0 || tally_.ranks.at(static_cast<std::size_t>(told.news.rank)))
      std::abort();
    tally_.ranks[static_cast<std::size_t>(told.news.rank)] = true;
    count();
  }
  void act(joining::TellJobOver& over) {
    std::fprintf(stderr, "rendezvous_bench: %s\n", over.end.why.c_str());
    std::exit(1);
  }
  template <class Other>
  void act(Other&) {}

  boost::asio::io_context& loop_;
  const ChannelSettings& channel_settings_;
  Tally& tally_;
  bool lists_;
  std::uint64_t uplink_ = 0;
  std::unique_ptr<Channel> channel_;
  MemberCore core_;
  DeadlineTimer timer_;
};

/// Listens in a thread of its own.
class Controller final : public CoordinatorObserver {
 public:
  Controller(std::size_t agents, const ChannelSettings& channel) {
    CoordinatorSettings settings;
    settings.job_id = settings.version = "bench";
    settings.nodes = {static_cast<int>(agents), static_cast<int>(agents), 1};
    settings.lost_after = std::chrono::seconds(60);
    CoordinatorPlace place;
    place.listen = {{"127.0.0.1", 0}};
    place.channel = channel;
    place.limits.unproven = 8192;
    coordinator_ = start_coordinator(loop_, settings, place, *this);
    endpoint = coordinator_->endpoints().front();
    thread_ = std::thread([this] {
      loop_.run();
      seconds = thread_seconds();
    });
  }
  /// Returns what its thread has used.
  double finish() {
    loop_.stop();
    thread_.join();
    return seconds;
  }

  void on_event(const ClusterEvent&) override {}
  void on_warning(const std::string& text, const std::string&) override {
    std::fprintf(stderr, "rendezvous_bench: %s\n", text.c_str());
  }
  void on_over(const JobEnd&) override {}

  Endpoint endpoint;

 private:
  boost::asio::io_context loop_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_ =
      boost::asio::make_work_guard(loop_);
  std::unique_ptr<Coordinator> coordinator_;
  double seconds = 0;
  std::thread thread_;
};

void measure(std::size_t agents, bool lists) {
  const ChannelSettings channel = channel_settings(Secret::random());
  Controller controller(agents, channel);
  boost::asio::io_context loop{1};
  Tally tally;
  tally.agents = agents;
  tally.ranks.resize(agents);
  std::vector<std::unique_ptr<Agent>> all;
  const double before = thread_seconds();
  const auto start = Clock::now();
  for (std::size_t i = 0; i < agents; ++i) {
    all.push_back(std::make_unique<Agent>(loop, i, controller.endpoint, channel, lists, tally));
    all.back()->start();
  }
  while (tally.met < agents) loop.run_one();
  const double agents_seconds = thread_seconds() - before;
  const double controller_seconds = controller.finish();
  std::printf("%6zu agents  %9.1f ms   coordinator %8.1f ms CPU, agents %8.1f ms CPU%s\n", agents,
              std::chrono::duration<double, std::milli>(tally.last - start).count(), 1e3 * controller_seconds,
              1e3 * agents_seconds, lists ? ", with lists" : "");
  if (lists) std::printf("               each list has %zu bytes\n", tally.list.size());
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  rlimit files = {};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
  bool lists = false;
  std::vector<std::size_t> counts;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--lists") == 0)
      lists = true;
    else
      counts.push_back(std::strtoul(argv[i], nullptr, 10));
  }
  if (counts.empty()) counts = {2, 64, 1024, 4000};
  try {
    for (const std::size_t count : counts) measure(count, lists);
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", render(error, "rendezvous_bench").c_str());
    return 1;
  }
  return 0;
}
