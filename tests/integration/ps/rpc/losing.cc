// Servers that stand by for each other (--ps_replicas=1) while hosts are lost one after the other, with all
// that was kept there, and processes are killed, some with their directories: random sequences, in which all
// hosts but one go. Who takes over is what the launcher would say (launcher/cluster/ranks). Each trainer adds
// 1 to rows that follow from the number of the push, and goes and comes again; one saves now and then. In the
// end every row must be what the pushes say, exactly. The hosts are addresses of the loopback.
// ARGV: seed, sequences; or, for the processes that it starts: "serve", rank, directory, endpoints, standby
// endpoints, the run in which one before it has served.
//
// Prints "Q sequences, L hosts lost, K processes killed (D with their directories), P pushes, S saves, W rows
// wrong", and how long a trainer's step (a pull and a push) took at most; ends with 0 when no row was wrong.
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <random>
#include <sstream>
#include <thread>

#include "launcher/cluster/ranks.h"
#include "ps/rpc/hosted_servers.h"
#include "ps/rpc/standby_link.h"
#include "runtime/base/endpoint.h"
#include "runtime/base/error.h"
#include "runtime/base/text.h"
#include "runtime/base/unique_fd.h"
#include "tests/support/port_lease.h"
#include "tests/support/ps_connect.h"
#include "tests/support/ps_tables.h"
#include "tests/support/temp_dir.h"

namespace {

using namespace fleetrun::ps;
using fleetrun::Error;
using fleetrun::launcher::Candidate;
using fleetrun::launcher::Member;
using fleetrun::launcher::World;
using Clock = std::chrono::steady_clock;

constexpr std::uint32_t kTrainers = 2;
constexpr std::uint64_t kKeys = 499, kKeysOfPush = 16;
constexpr std::chrono::seconds kLongest{60};
constexpr const char *kRun = "run-0", *kWhole = "\"whole\":true";

// Rows have statistics, which saves of mode 3 change.
std::vector<TableConfig> tables() {
  std::vector<TableConfig> out{fleetrun::tests::sparse_table(0, "count", 2)};
  out[0].accessor.kind = Accessor::Kind::sparse;
  out[0].accessor.nonclk_coeff = 1.0f;
  return out;
}

/// "0=127.0.0.1:5001 …": where the servers are.
std::map<std::uint32_t, std::string> servers_in(const std::string& line) {
  std::map<std::uint32_t, std::string> out;
  std::istringstream words(line);
  for (std::string word; words >> word;) {
    const std::size_t middle = word.find('=');
    out[static_cast<std::uint32_t>(std::stoul(word.substr(0, middle)))] = word.substr(middle + 1);
  }
  return out;
}

MembershipUpdate update_of(std::uint64_t generation) {
  return {generation, true, {{0, "a launcher"}, {1, "a launcher"}}};
}

// The worlds come as lines on standard input, the first before anything is served.
int serve(const std::vector<std::string>& words) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const auto rank = static_cast<std::uint32_t>(std::stoul(words[0]));
  const std::vector<std::string> endpoints = fleetrun::split(words[2], ',');
  const auto addresses = std::make_shared<ServerAddresses>(endpoints);
  std::string line;
  std::getline(std::cin, line);
  addresses->move(servers_in(line));
  HostedServersOptions options{rank, {endpoints[rank]}, "", fleetrun::split(words[3], ','), addresses, {},
                               {}};
  options.server = [&](std::uint32_t server) {
    ServerOptions mine;
    mine.rank = server;
    mine.servers = static_cast<std::uint32_t>(endpoints.size());
    mine.trainers = kTrainers;
    mine.tables = tables();
    mine.durability.directory = words[1];
    mine.durability.run = kRun;
    mine.durability.served = words[4];
    mine.durability.interval = std::chrono::milliseconds(200);
    mine.recover_within = kLongest;
    mine.standby = standby_at(server, addresses, {}, Transport::automatic);
    mine.standby.idle = std::chrono::milliseconds(50);
    return mine;
  };
  options.rpc = [](std::uint32_t) { return RpcServerOptions{.held_by_launcher = true}; };
  HostedServers servers(options);
  std::uint64_t generation = 1;
  servers.update(update_of(generation), servers_in(line));
  std::thread listens([&] {
    while (std::getline(std::cin, line)) servers.update(update_of(++generation), servers_in(line));
  });
  listens.detach();
  servers.wait();
  return 0;
}

std::array<std::uint64_t, kKeysOfPush> keys_of(std::uint32_t trainer, std::uint64_t number) {
  std::array<std::uint64_t, kKeysOfPush> keys;
  for (std::uint64_t i = 0; i < keys.size(); ++i)
    keys[i] = (trainer * 31 + number * number + i * (number % 61 + 1)) % kKeys;
  return keys;
}

struct Process {
  pid_t pid = -1;
  fleetrun::UniqueFd tell;
  bool has_served = false;
};

class Job {
 public:
  Job(std::string program, std::uint64_t seed) : program_(std::move(program)), random_(seed) {
    const std::uint32_t hosts = pick(2, 4), each = pick(1, 2);
    std::uint16_t place = 0;
    const auto lease = [&] {
      ports_.push_back(std::make_unique<fleetrun::tests::PortLease>(SO_REUSEPORT));
      const std::string& endpoint = ports_.back()->endpoint();
      place = static_cast<std::uint16_t>(std::stoul(endpoint.substr(endpoint.rfind(':') + 1)));
      return place;
    };
    world_.generation = 1;
    for (std::uint32_t host = 0; host < hosts; ++host) {
      Member& member = world_.members.emplace_back();
      member.node = std::string(1, static_cast<char>('a' + host));
      member.offer.host = "127.0.0." + std::to_string(host + 1);
      member.first_server = static_cast<int>(host * each);
      for (std::uint32_t i = 0; i < each; ++i) member.offer.servers.push_back(lease());
      for (std::uint32_t i = 0; i < each * (hosts - 1); ++i) member.offer.standbys.push_back(lease());
    }
    first_ = endpoints();
    addresses_ = std::make_shared<ServerAddresses>(first_);
    processes_.resize(first_.size());
    for (std::uint32_t rank = 0; rank < first_.size(); ++rank) start(rank);
  }
  ~Job() {
    for (Process& process : processes_) end(process);
  }

  bool run();

  std::uint64_t lost = 0, killed = 0, with_directory = 0, pushes = 0, saves = 0, wrong = 0;
  std::atomic<std::int64_t> longest_us{0};

 private:
  std::uint32_t pick(std::uint32_t from, std::uint32_t to) {
    return std::uniform_int_distribution<std::uint32_t>(from, to)(random_);
  }
  std::vector<std::string> endpoints() const {
    std::vector<std::string> out;
    for (const auto& endpoint : world_.server_endpoints()) out.push_back(to_string(endpoint));
    return out;
  }
  std::string directory_of(const std::string& node) const { return directory_.file("host-" + node); }
  const Member& member_of(std::uint32_t rank) const {
    const auto is_its = [&](const Member& member) {
      const int local_rank = static_cast<int>(rank) - member.first_server;
      return local_rank >= 0 && local_rank < static_cast<int>(member.offer.servers.size());
    };
    return *std::ranges::find_if(world_.members, is_its);
  }
  std::string world_line() const {
    std::string line;
    for (std::uint32_t rank = 0; const std::string& endpoint : endpoints())
      line += std::to_string(rank++) + "=" + endpoint + " ";
    return line + "\n";
  }
  void tell(const Process& process) const {
    const std::string line = world_line();
    static_cast<void>(::write(process.tell.value(), line.data(), line.size()));
  }
  void start(std::uint32_t rank) {
    const Member& member = member_of(rank);
    std::vector<std::string> standbys;
    const auto local_rank = rank - static_cast<std::uint32_t>(member.first_server);
    for (std::size_t i = local_rank; i < member.offer.standbys.size(); i += member.offer.servers.size())
      standbys.push_back(member.offer.host + ":" + std::to_string(member.offer.standbys[i]));
    const std::string where = directory_of(member.node);
    std::filesystem::create_directories(where);
    std::array<int, 2> ends{};
    fleetrun::check_errno(::pipe2(ends.data(), O_CLOEXEC), "pipe2", "start a server");
    Process& process = processes_[rank];
    const fleetrun::UniqueFd theirs(ends[0]);
    process.tell.reset(ends[1]);
    const std::string number = std::to_string(rank), list = fleetrun::join(first_, ","),
                      others = fleetrun::join(standbys, ","), served = process.has_served ? kRun : "";
    process.pid = ::fork();
    if (process.pid == 0) {
      ::dup2(theirs.value(), STDIN_FILENO);
      ::execl(program_.c_str(), program_.c_str(), "serve", number.c_str(), where.c_str(), list.c_str(),
              others.c_str(), served.c_str(), nullptr);
      ::_exit(127);
    }
    process.has_served = true;
    tell(process);
  }
  static void end(Process& process) {
    if (process.pid < 0) return;
    ::kill(process.pid, SIGKILL);
    ::waitpid(process.pid, nullptr, 0);
    process.pid = -1;
  }
  // Who is not to be started again has been taken out of processes_ first; whoever else has ended is.
  void reap() {
    for (std::uint32_t rank = 0; rank < processes_.size(); ++rank) {
      Process& process = processes_[rank];
      int status = 0;
      if (process.pid < 0 || ::waitpid(process.pid, &status, WNOHANG) != process.pid) continue;
      process.pid = -1;
      if (ends_) continue;
      std::printf("server %u ended by itself\n", rank);
      start(rank);
    }
  }
  bool have_standbys() const;
  bool wait_for_standbys();
  bool lose_host();
  void kill_one();
  void train(std::uint32_t trainer, std::uint64_t seed);
  std::unique_ptr<Client> connect_trainer(std::uint32_t trainer) const {
    ClientOptions options{.trainer = trainer, .trainers = kTrainers, .tables = tables()};
    options.identity = 1000 + trainer;
    options.generation = 1;
    ConnectOptions patient;
    patient.recover_within = kLongest;
    patient.addresses = addresses_;
    return connect_as_told(first_, options, patient);
  }
  std::uint64_t count_wrong();

  std::string program_;
  std::mt19937_64 random_;
  fleetrun::tests::TempDir directory_;
  std::vector<std::unique_ptr<fleetrun::tests::PortLease>> ports_;
  World world_;
  std::vector<std::string> first_;
  std::shared_ptr<ServerAddresses> addresses_;  // shared with the clients
  std::vector<Process> processes_;              // by rank
  std::atomic<bool> ends_{false}, failed_{false};
  std::array<std::atomic<std::uint64_t>, kTrainers> done_{};  // the number of the last push
  std::atomic<std::uint64_t> saves_{0};
};

// All servers are served, and have standbys where there is another host.
bool Job::have_standbys() const {
  try {
    ConnectOptions options;
    options.connect_timeout = std::chrono::seconds(2);
    std::size_t held = 0;
    for (const std::string& stat : observe(endpoints(), options).client->stat()) {
      if (world_.members.size() > 1 && stat.find("\"follows\":true") == std::string::npos) return false;
      for (std::size_t at = stat.find(kWhole); at != std::string::npos; at = stat.find(kWhole, at + 1))
        ++held;
    }
    return world_.members.size() == 1 || held == first_.size();
  } catch (const Error&) {
    return false;  // one is on its way
  }
}

bool Job::wait_for_standbys() {
  for (const auto deadline = Clock::now() + kLongest; !have_standbys();) {
    if (Clock::now() > deadline || failed_) return false;
    reap();
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

// Half of the hosts stand still first, as one does that is cut off.
bool Job::lose_host() {
  const Member gone = world_.members[pick(0, static_cast<std::uint32_t>(world_.members.size()) - 1)];
  std::vector<Candidate> here;
  for (const Member& member : world_.members)
    if (member.node != gone.node) here.push_back({member, -1, -1});
  const auto each_of_it = [&](const std::function<void(Process&)>& act) {
    for (std::size_t i = 0; i < gone.offer.servers.size(); ++i)
      act(processes_[static_cast<std::size_t>(gone.first_server) + i]);
  };
  if (pick(0, 1) == 1) {
    each_of_it([](Process& process) { ::kill(process.pid, SIGSTOP); });
    std::this_thread::sleep_for(std::chrono::milliseconds(pick(1, 50)));
  }
  each_of_it([](Process& process) { end(process); });
  std::filesystem::remove_all(directory_of(gone.node));
  ++lost;
  auto taken_over = fleetrun::launcher::take_over_servers(world_, here);
  if (!taken_over) {
    std::printf("nobody takes over\n");
    return false;
  }
  world_.taken_over = std::move(*taken_over);
  std::erase_if(world_.members, [&](const Member& member) { return member.node == gone.node; });
  ++world_.generation;
  for (const Process& process : processes_)
    if (process.pid >= 0) tell(process);
  addresses_->move(servers_in(world_line()));
  return true;
}

void Job::kill_one() {
  std::vector<std::uint32_t> living;
  for (std::uint32_t rank = 0; rank < processes_.size(); ++rank)
    if (processes_[rank].pid >= 0) living.push_back(rank);
  const std::uint32_t rank = living[pick(0, static_cast<std::uint32_t>(living.size()) - 1)];
  const Member& member = member_of(rank);
  end(processes_[rank]);
  ++killed;
  // Its disk may go with it, where others have all that it had: of the host's other processes nothing goes.
  if (world_.members.size() > 1 && member.offer.servers.size() == 1 && pick(0, 1) == 1) {
    std::filesystem::remove_all(directory_of(member.node));
    ++with_directory;
  }
  start(rank);
}

void Job::train(std::uint32_t trainer, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const std::vector<float> ones(kKeysOfPush * 2, 1.0f);
  std::vector<float> rows(kKeysOfPush * 2);
  while (!ends_) {
    const auto client = connect_trainer(trainer);
    for (int life = std::uniform_int_distribution<int>(50, 400)(random); life > 0 && !ends_; --life) {
      const auto began = Clock::now();
      const std::uint64_t number = client->next_change();
      client->pull({.sparse = {{0, keys_of(trainer, number), rows}}, .dense = {}});
      client->push({.sparse = {{0, keys_of(trainer, number), ones}}, .dense = {}});
      done_[trainer] = number;
      const auto took = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - began).count();
      longest_us = std::max(longest_us.load(), std::int64_t{took});
      if (trainer == 0 && life % 40 == 0) {
        client->save(directory_.file("saved"), static_cast<SaveMode>(random() % 4));
        ++saves_;
      }
    }
  }
}

std::uint64_t Job::count_wrong() {
  std::vector<float> expected(kKeys), rows(kKeys * 2);
  std::vector<std::uint64_t> keys(kKeys);
  for (std::uint64_t key = 0; key < kKeys; ++key) keys[key] = key;
  for (std::uint32_t trainer = 0; trainer < kTrainers; ++trainer) {
    for (std::uint64_t number = 1; number <= done_[trainer]; ++number)
      for (const std::uint64_t key : keys_of(trainer, number)) expected[key] += 1.0f;
    pushes += done_[trainer];
  }
  connect_trainer(0)->pull({.sparse = {{0, keys, rows}}, .dense = {}});
  std::uint64_t out = 0;
  for (std::uint64_t key = 0; key < kKeys; ++key)
    for (int column = 0; column < 2; ++column) out += rows[key * 2 + column] != expected[key] ? 1 : 0;
  return out;
}

bool Job::run() {
  std::vector<std::thread> trainers;
  for (std::uint32_t trainer = 0; trainer < kTrainers; ++trainer)
    trainers.emplace_back([this, trainer, seed = random_()] {
      try {
        train(trainer, seed);
      } catch (const Error& error) {
        std::printf("trainer %u: %s\n", trainer, error.what());
        failed_ = true;
      }
    });
  bool goes_on = true;
  while (goes_on && world_.members.size() > 1) {
    goes_on = wait_for_standbys();
    std::this_thread::sleep_for(std::chrono::milliseconds(pick(0, 60)));
    if (!goes_on) {
      std::printf("no standbys\n");
    } else if (pick(0, 2) == 0) {
      goes_on = lose_host();
    } else {
      kill_one();
    }
  }
  goes_on = goes_on && wait_for_standbys();
  if (goes_on && pick(0, 1) == 1) kill_one();
  ends_ = true;
  for (std::thread& trainer : trainers) trainer.join();
  if (!goes_on || failed_) return false;
  saves = saves_;
  wrong = count_wrong();
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 7 && std::string(argv[1]) == "serve") return serve({argv + 2, argv + argc});
  if (argc != 3) return 2;
  ::signal(SIGPIPE, SIG_IGN);
  const std::uint64_t seed = std::stoull(argv[1]), sequences = std::stoull(argv[2]);
  std::uint64_t lost = 0, killed = 0, with_directory = 0, pushes = 0, saves = 0, wrong = 0;
  std::vector<std::int64_t> pauses;
  for (std::uint64_t sequence = seed; sequence < seed + sequences; ++sequence) {
    Job job(argv[0], sequence);
    const bool is_whole = job.run();
    if (!is_whole || job.wrong != 0)
      std::printf("sequence %llu: %llu rows wrong%s\n", (unsigned long long)sequence,
                  (unsigned long long)job.wrong, is_whole ? "" : ", and it did not come to its end");
    if (!is_whole) return 1;
    lost += job.lost;
    killed += job.killed;
    with_directory += job.with_directory;
    pushes += job.pushes;
    saves += job.saves;
    wrong += job.wrong;
    pauses.push_back(job.longest_us);
  }
  std::ranges::sort(pauses);
  std::printf(
      "%llu sequences, %llu hosts lost, %llu processes killed (%llu with their directories), %llu pushes, "
      "%llu "
      "saves, %llu rows wrong\nlongest step of a trainer: median %.1f ms, longest %.1f ms\n",
      (unsigned long long)sequences, (unsigned long long)lost, (unsigned long long)killed,
      (unsigned long long)with_directory, (unsigned long long)pushes, (unsigned long long)saves,
      (unsigned long long)wrong, static_cast<double>(pauses[pauses.size() / 2]) / 1000,
      static_cast<double>(pauses.back()) / 1000);
  return wrong == 0 ? 0 : 1;
}
