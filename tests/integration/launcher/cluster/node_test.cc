// Nodes that meet through join_job(), all of them in one loop, on addresses of the loopback.
#include <sys/stat.h>

#include <deque>

#include "launcher/cluster/join.h"
#include "launcher/cluster/node_settings.h"
#include "launcher/model/job_config.h"
#include "launcher/model/membership.h"
#include "launcher/model/world.h"
#include "runtime/base/environ.h"
#include "runtime/base/error.h"
#include "runtime/secure/job_secret_file.h"
#include "tests/support/cluster_loop.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

using namespace fleetrun;
using namespace fleetrun::launcher;
using namespace fleetrun::tests;
using namespace std::chrono_literals;

namespace {

/// A node and its supervisor, which is ready at once and runs nothing.
struct TestNode final : MembershipListener {
  boost::asio::io_context& loop;
  NodeSelf self;
  std::unique_ptr<Membership> membership;
  std::optional<World> world;
  std::size_t rank = 99;
  std::optional<JobEnd> end;
  std::vector<std::string> news;
  std::vector<std::uint64_t> prepared;
  int worlds = 0, fenced = 0;
  bool closed = false;

  TestNode(boost::asio::io_context& its_loop, const JobConfig& config, const Environ& environ)
      : loop(its_loop) {
    static_cast<void>(loop);
    const std::string number = config.host.substr(config.host.rfind('.') + 1);
    self.node = std::string(32 - number.size(), '0') + number;
    self.name = "h" + number;
    self.pod = "pod" + std::string(3 - number.size() % 3, 'x');
    self.offer = {config.host, {static_cast<std::uint16_t>(7000 + std::stoi(number))}, {}, 9000};
    membership = join_job(loop, config, environ, self, *this);
  }

  void on_news(NewsLevel, const std::string& text) override { news.push_back(text); }
  void on_prepare(std::uint64_t generation, const std::string&) override {
    prepared.push_back(generation);
    membership->ready(generation, self.offer);
  }
  void on_world(const World& its_world, std::size_t node_rank) override {
    world = its_world;
    rank = node_rank;
    ++worlds;
    membership->running(world->generation);
  }
  void on_update(const World& its_world, std::size_t node_rank) override { on_world(its_world, node_rank); }
  void on_lease(const PodLease&) override {}
  void on_fenced(const std::string&) override { ++fenced; }
  void on_job_over(const JobEnd& its_end) override { end = its_end; }
  void close() {
    membership->close([this] { closed = true; });
  }
  bool told(const std::string& part) const {
    for (const std::string& text : news)
      if (text.find(part) != std::string::npos) return true;
    return false;
  }
};

/// A port that was free a moment ago, and that nothing else on this host is given meanwhile
/// (below the kernel's range).
Endpoint free_master(const std::string& host) {
  for (std::uint16_t port = 20'000 + static_cast<std::uint16_t>(::getpid() % 5'000); port < 32'000; ++port) {
    if (listen_at(host, port)) return {host, port};
  }
  FAIL("no port is free");
  return {};
}

struct Job {
  boost::asio::io_context loop{1};
  TempDir home;
  Environ environ{{"HOME", home.path().string()}};
  Endpoint master = free_master("127.0.0.1");
  std::deque<TestNode> nodes;  // they stay where they are

  JobConfig config(int number, NodeCount count) const {
    JobConfig config;
    config.job_id = "job";
    config.host = "127.0.0." + std::to_string(number);
    config.host_chosen = true;
    config.rendezvous.kind = Rendezvous::Kind::master;
    config.rendezvous.master = master;
    config.rendezvous.nodes = count;
    config.rendezvous.elastic = count.min < count.max;
    config.rendezvous.join_timeout = 20s;
    config.rendezvous.elastic_timeout = 20s;
    return config;
  }
  TestNode& add(const JobConfig& config) { return nodes.emplace_back(loop, config, environ); }
  TestNode& add(int number, NodeCount count) { return add(config(number, count)); }
  template <class Done>
  void until(Done done) {
    turn_until(loop, done);
  }
  bool all_in_world(std::uint64_t generation) const {
    for (const TestNode& node : nodes) {
      if (!node.world || node.world->generation < generation) return false;
    }
    return true;
  }
};

}  // namespace

TEST_CASE("two launchers meet at --master, and know the same world") {
  Job job;
  job.add(1, {2, 2, 1});
  job.add(2, {2, 2, 1});
  job.until([&] { return job.all_in_world(1); });
  TestNode &first = job.nodes[0], &second = job.nodes[1];
  CHECK(*first.world == *second.world);
  CHECK(first.rank + second.rank == 1);
  CHECK(first.world->members.size() == 2);
  CHECK(first.world->trainer_endpoints().size() == 2);
  CHECK(first.world->run.size() == 32);
  first.membership->done(first.world->generation);
  second.membership->done(second.world->generation);
  job.until([&] { return first.end && second.end; });
  CHECK(first.end->exit_status == 0);
  CHECK(second.end->exit_status == 0);
  first.close();
  second.close();
  job.until([&] { return first.closed && second.closed; });
}

TEST_CASE(
    "it does not matter who is there first: who can listen at the address coordinates, the others wait") {
  Job job;
  JobConfig early = job.config(2, {3, 3, 1});
  job.add(early);
  job.add(3, {3, 3, 1});
  job.add(1, {3, 3, 1});
  job.until([&] { return job.all_in_world(1); });
  for (TestNode& node : job.nodes) CHECK(node.world->hash() == job.nodes[0].world->hash());
}

TEST_CASE("with another secret the newcomer ends, and both sides say why") {
  Job job;
  TempDir elsewhere;
  job.add(1, {2, 2, 1});
  job.until([&] { return !listen_at("127.0.0.1", job.master.port); });
  job.environ.set("HOME", elsewhere.path().string());
  TestNode& stranger = job.add(2, {2, 2, 1});
  job.until([&] { return stranger.end && job.nodes[0].told("has another secret than this host"); });
  CHECK(stranger.end->exit_status == 125);
  CHECK(stranger.end->why.find(to_string(job.master) + " has another secret than this host (" +
                               elsewhere.file(".config/fleetrun/secret") + ")") == 0);
  CHECK(stranger.end->why.find("--secret-file") != std::string::npos);
  CHECK(job.nodes[0].told("(" + job.home.file(".config/fleetrun/secret") + ")"));
}

TEST_CASE("a host that was given one job's secret joins that job, and no other") {
  Job job;
  TempDir elsewhere;
  std::string where;
  const Secret own = user_secret(job.environ, where);
  const auto file_of = [&](const std::string& name) {
    const std::string path = elsewhere.write(name, job_secret_text(secret_of_job(own, name), name));
    REQUIRE(::chmod(path.c_str(), 0600) == 0);
    return path;
  };
  job.environ.set("HOME", elsewhere.path().string());
  JobConfig another = job.config(2, {2, 2, 1}), member = another;
  another.rendezvous.secret_file = file_of("another");
  member.rendezvous.secret_file = file_of("job");
  const std::string said = error_of([&] { job.add(another); }).what();
  CHECK(said.find("has the secret of job another alone, and this is job job") != std::string::npos);
  another.rendezvous.secret_file =  // its line says so, but what follows is not
      elsewhere.write("forged", job_secret_text(secret_of_job(own, "another"), "job"));
  REQUIRE(::chmod(another.rendezvous.secret_file->c_str(), 0600) == 0);
  job.environ.set("HOME", job.home.path().string());
  job.add(1, {2, 2, 1});
  job.until([&] { return !listen_at("127.0.0.1", job.master.port); });
  TestNode& stranger = job.add(another);
  job.until([&] { return stranger.end && job.nodes[0].told("has another secret than this host"); });
  CHECK(stranger.end->exit_status == 125);
  TestNode& welcome = job.add(member);
  job.until([&] { return job.nodes[0].world && welcome.world; });
  CHECK(*job.nodes[0].world == *welcome.world);
}

TEST_CASE("a secret that is not safe keeps a launcher from joining") {
  Job job;
  JobConfig config = job.config(1, {2, 2, 1});
  config.rendezvous.secret_file = job.home.write("open", "0123456789abcdefghijklmnopqrstuv");
  CHECK_THROWS_AS(job.add(config), Error);
}

TEST_CASE("the port of a chosen master can be left to this host") {
  Job job;
  job.master = {"127.0.0.1", 0};
  job.add(1, {1, 2, 1});
  job.until([&] { return job.all_in_world(1); });
  CHECK(job.nodes[0].world->members.size() == 1);
}

TEST_CASE("a member that vanishes is lost at once, and the others go on without it") {
  Job job;
  for (int i = 1; i <= 3; ++i) job.add(i, {2, 3, 1});
  job.until([&] { return job.all_in_world(1); });
  job.nodes.pop_back();  // its connections end without a goodbye
  job.until([&] { return job.all_in_world(2); });
  CHECK(job.nodes[0].world->members.size() == 2);
}

TEST_CASE("when the coordinator vanishes, another member takes its place") {
  Job job;
  for (int i = 1; i <= 3; ++i) job.add(i, {2, 3, 1});
  job.until([&] { return job.all_in_world(1); });
  job.nodes.pop_front();
  job.until([&] { return job.all_in_world(2); });
  CHECK(job.nodes[0].world->members.size() == 2);
  CHECK(job.nodes[0].world->hash() == job.nodes[1].world->hash());
}

TEST_CASE("a master whose name is not known is waited for, and named when the time is up") {
  Job job;
  job.master = {"no-such-host.invalid", 7777};
  JobConfig config = job.config(1, {2, 2, 1});
  config.rendezvous.join_timeout = 0ms;
  TestNode& node = job.add(config);
  job.until([&] { return node.end.has_value(); });
  CHECK(node.end->exit_status == 125);
  CHECK(node.end->why.find("the name no-such-host.invalid is not known here: ") == 0);
}

TEST_CASE("torchrun's hosts wait for more than the least as long as torchrun has it") {
  JobConfig config;
  const auto own = coordinator_settings(config).last_call;
  config.torchrun.emplace();
  CHECK(coordinator_settings(config).last_call == 30s);
  config.torchrun->last_call = 1s;
  CHECK(coordinator_settings(config).last_call == 1s);
  CHECK(own == 2s);
}

TEST_CASE("whoever may take the coordinator's place is found at a port of the user's range") {
  Job job;
  const Endpoint place = free_master("127.0.0.2");
  job.add(1, {2, 2, 1});
  JobConfig config = job.config(2, {2, 2, 1});
  config.port_range = {place.port, place.port};
  job.add(config);
  job.until([&] { return job.all_in_world(1); });
  const World& world = *job.nodes[0].world;
  CHECK(world.members[job.nodes[1].rank].successor == place);
}

TEST_CASE("launchers that no coordinator answers listen again: the port was another program's for a while") {
  Job job;
  UniqueFd other(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const SocketAddress place = numeric_address(job.master).value();
  REQUIRE(::bind(other.value(), place.raw(), place.length) == 0);  // it does not listen
  job.add(1, {2, 2, 1});
  job.add(2, {2, 2, 1});
  job.until(
      [&] { return job.nodes[0].told("is held by another program") && job.nodes[1].told("is held by"); });
  other.reset();
  job.until([&] { return job.all_in_world(1); });
  CHECK(*job.nodes[0].world == *job.nodes[1].world);
}

TEST_CASE("where the coordinator goes before the job has begun, one that waited takes its place") {
  Job job;
  job.add(1, {3, 3, 1});
  job.until([&] { return !listen_at("127.0.0.1", job.master.port); });
  job.add(2, {3, 3, 1});
  job.until([&] { return job.nodes[0].told("h2"); });
  job.nodes.pop_front();
  job.add(3, {3, 3, 1});
  job.add(4, {3, 3, 1});
  job.until([&] { return job.all_in_world(1); });
  CHECK(job.nodes[0].world->members.size() == 3);
}
