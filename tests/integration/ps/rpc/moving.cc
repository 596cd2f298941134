// Servers that move between processes while trainers train, and processes that are killed meanwhile: random
// sequences of numbers of processes, of kills, and of trainers that come again. Each trainer adds 1 to rows
// that follow from the number of the push, and to all of a dense table; in the end every row must be what the
// pushes say, exactly. Half of the processes stand still before they are killed, and a trainer is killed with
// them: its last pushes are done by some of the servers, and the trainer that comes again sends them to all.
// In every other sequence the servers have standbys, and a process that is killed loses the directories of
// those whose standbys are whole in other processes; nothing else happens until it has them back.
// ARGV: seed, sequences; or, for the processes that it starts: "serve", rank, directory,
// endpoints, standbys, whether it served before; "push", trainer, endpoints.
//
// Prints "Q sequences, R resizes (M of them with a kill), K processes killed, D directories lost, T trainers
// come again, P pushes, W rows wrong", and how long a trainer's step (a pull and a push) took at most in
// resizes without a kill; ends with 0 when no row was wrong, with 1 otherwise.
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
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <thread>

#include "ps/client/channel_client.h"
#include "ps/durable/checkpoint.h"
#include "ps/durable/move_note.h"
#include "ps/rpc/hosted_servers.h"
#include "ps/rpc/standby_link.h"
#include "runtime/base/error.h"
#include "runtime/base/text.h"
#include "runtime/base/unique_fd.h"
#include "tests/support/port_lease.h"
#include "tests/support/ps_connect.h"
#include "tests/support/ps_tables.h"
#include "tests/support/temp_dir.h"
#include "tests/support/unreliable_link.h"

namespace {

using namespace fleetrun::ps;
using fleetrun::Error;
using Clock = std::chrono::steady_clock;

constexpr std::uint32_t kServers = 5, kTrainers = 2;
constexpr std::uint64_t kKeys = 997, kKeysOfPush = 16, kWidth = 7;
constexpr int kSteps = 5;  // of a sequence
constexpr std::chrono::seconds kLongest{60};
constexpr std::chrono::milliseconds kOnTheWay{20};  // for pushes to come to servers that hear

std::vector<TableConfig> tables() {
  std::vector<TableConfig> out{fleetrun::tests::sparse_table(0, "count", 4),
                               fleetrun::tests::dense_table(1, "dense", kWidth)};
  out[1].min_block = 1;
  return out;
}

std::string count_file(const std::string& directory) {
  return directory + "/processes";
}

int serve(const std::vector<std::string>& words) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const auto rank = static_cast<std::uint32_t>(std::stoul(words[0]));
  const std::string &directory = words[1], &endpoints = words[2];
  const auto addresses = std::make_shared<ServerAddresses>(fleetrun::split(endpoints, ','));
  HostedServersOptions options{rank, fleetrun::split(endpoints, ','), count_file(directory), {}, {}, {}, {}};
  options.server = [&](std::uint32_t server) {
    ServerOptions mine;
    mine.rank = server;
    mine.servers = kServers;
    mine.trainers = kTrainers;
    mine.tables = tables();
    mine.durability.directory = directory;
    mine.durability.run = "run-0";
    mine.durability.interval = std::chrono::milliseconds(200);
    mine.durability.served = words[4];
    mine.recover_within = std::chrono::seconds(60);
    if (words[3] != "standbys") return mine;
    mine.standby = standby_beside_at(server, addresses, {}, Transport::automatic);
    mine.standby.idle = std::chrono::milliseconds(50);
    return mine;
  };
  options.rpc = [](std::uint32_t) { return RpcServerOptions{.held_by_launcher = true}; };
  HostedServers servers(options);
  servers.wait();
  return 0;
}

std::unique_ptr<Client> connect_patiently(const std::vector<std::string>& endpoints, std::uint32_t trainer) {
  ClientOptions options{.trainer = trainer, .trainers = kTrainers, .tables = tables()};
  options.identity = 1000 + trainer;
  ConnectOptions patient;
  patient.recover_within = kLongest;
  return connect_as_told(endpoints, options, patient);
}

std::array<std::uint64_t, kKeysOfPush> keys_of(std::uint32_t trainer, std::uint64_t number) {
  std::array<std::uint64_t, kKeysOfPush> keys;
  for (std::uint64_t i = 0; i < keys.size(); ++i)
    keys[i] = (trainer * 31 + number * number + i * (number % 61 + 1)) % kKeys;
  return keys;
}

/// Says on its standard input how far the trainer is, pushes when it is answered, says it again, and stays.
int push(std::uint32_t trainer, const std::string& endpoints) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const auto client = connect_patiently(fleetrun::split(endpoints, ','), trainer);
  const std::vector<float> ones(kKeysOfPush * 4, 1.0f), dense(kWidth, 1.0f);
  std::vector<std::unique_ptr<Pending>> pending;
  std::uint64_t last = client->next_change() - 1;
  if (::write(STDIN_FILENO, &last, sizeof last) != sizeof last || ::read(STDIN_FILENO, &last, 1) != 1)
    return 1;
  for (int i = 0; i < 3; ++i)
    pending.push_back(client->push_async(
        {.sparse = {{0, keys_of(trainer, client->next_change()), ones}}, .dense = {{1, dense}}}));
  std::this_thread::sleep_for(kOnTheWay);
  last = client->next_change() - 1;
  if (::write(STDIN_FILENO, &last, sizeof last) != sizeof last) return 1;
  ::pause();
  return 1;
}

/// A job of servers and trainers.
class Job {
 public:
  Job(std::string program, std::uint64_t seed)
      : program_(std::move(program)), random_(seed), has_standbys_(seed % 2 == 0) {
    for (std::uint32_t server = 0; server < kServers; ++server) {
      // Held as fleetrun holds them: nobody else gets them, and nothing listens here.
      ports_.push_back(std::make_unique<fleetrun::tests::PortLease>(SO_REUSEPORT));
      endpoints_.push_back(ports_.back()->endpoint());
    }
    processes_ = pick(1, kServers);
    write_count();
    start_wanted();
  }
  ~Job() {
    for (const auto& [rank, pid] : pids_) ::kill(pid, SIGKILL);
    for (const auto& [rank, pid] : pids_) ::waitpid(pid, nullptr, 0);
  }

  bool run();

  std::uint64_t resizes = 0, with_kill = 0, killed = 0, lost = 0, come_again = 0, pushes = 0, wrong = 0;
  std::vector<std::int64_t> pauses_us;  // the longest step of each trainer in a resize without a kill

 private:
  std::uint32_t pick(std::uint32_t from, std::uint32_t to) {
    return std::uniform_int_distribution<std::uint32_t>(from, to)(random_);
  }
  void write_count() {
    std::ofstream(count_file(directory_.path()) + ".new") << processes_ << "\n";
    ::rename((count_file(directory_.path()) + ".new").c_str(), count_file(directory_.path()).c_str());
  }
  void start(std::uint32_t rank) {
    const std::string number = std::to_string(rank), where = directory_.path().string();
    const std::string list = fleetrun::join(endpoints_, ",");
    const char *standbys = has_standbys_ ? "standbys" : "", *served = served_.contains(rank) ? "run-0" : "";
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::execl(program_.c_str(), program_.c_str(), "serve", number.c_str(), where.c_str(), list.c_str(),
              standbys, served, nullptr);
      ::_exit(127);
    }
    pids_[rank] = pid;
  }
  // Of whom each server is now; nobody's while that is being decided.
  std::optional<std::uint32_t> process_of(std::uint32_t server) const {
    const auto host = MoveNotes(directory_.path(), server).read(kHostNote, "run-0");
    return host ? std::optional(host->process) : std::nullopt;
  }
  void start_wanted() {
    for (std::uint32_t rank = 0; rank < processes_; ++rank)
      if (!pids_.contains(rank)) start(rank);
  }
  // As fleetrun does: one that was killed is started again, one that ended by itself is not.
  void reap() {
    for (auto at = pids_.begin(); at != pids_.end();) {
      int status = 0;
      const auto [rank, pid] = *at;
      if (::waitpid(pid, &status, WNOHANG) != pid) {
        ++at;
        continue;
      }
      at = pids_.erase(at);
      if (status == 0) continue;
      if (!WIFSIGNALED(status)) throw Error(fleetrun::ErrorKind::host, "a server process has failed");
      start(rank);
    }
  }
  bool has_moved() const {
    for (std::uint32_t server = 0; server < kServers; ++server) {
      const bool is_back =
          std::filesystem::exists(directory_of_server(directory_.path(), server) + "/manifest");
      if (process_of(server) != server % processes_ || !is_back) return false;
    }
    return pids_.size() == processes_;
  }
  bool wait_until_moved(std::optional<Clock::time_point> kill_at);
  bool could_be_handed_back(std::uint32_t server, std::uint32_t by) const;
  void lose_directories(std::uint32_t process);
  void kill(std::uint32_t process, pid_t victim);
  void die_pushing(std::uint32_t trainer);
  void train(std::uint32_t trainer, std::uint64_t seed);
  std::uint64_t count_wrong();

  std::string program_;
  std::mt19937_64 random_;
  const bool has_standbys_;
  std::set<std::uint32_t> served_;  // processes that have served: of which the launcher says so
  fleetrun::tests::TempDir directory_;
  std::vector<std::unique_ptr<fleetrun::tests::PortLease>> ports_;
  std::vector<std::string> endpoints_;
  std::uint32_t processes_ = 1;
  std::map<std::uint32_t, pid_t> pids_;
  std::atomic<bool> ends_{false}, failed_{false};
  std::atomic<bool> has_values_{false};  // the dense table
  std::array<std::atomic<std::int64_t>, kTrainers> longest_us_{};
  std::array<std::atomic<std::uint64_t>, kTrainers> done_{};  // the number of the last push
  std::array<std::atomic<std::uint64_t>, kTrainers> lives_{};
  // How a trainer comes to be killed with a process that stands still.
  enum class Fate { lives, is_asked, is_ready, pushes };
  std::array<std::atomic<Fate>, kTrainers> fates_{};
  /// Also returns when a trainer has failed.
  void wait_while(std::uint32_t trainer, Fate fate) const {
    while (fates_[trainer] == fate && !failed_) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
};

/// A life of a trainer in a process of its own, which is killed: pushes that are under way end with it.
void Job::die_pushing(std::uint32_t trainer) {
  std::array<int, 2> ends{};
  fleetrun::check_errno(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), "socketpair",
                        "start a trainer");
  const fleetrun::UniqueFd ours(ends[0]), theirs(ends[1]);
  const std::string number = std::to_string(trainer), list = fleetrun::join(endpoints_, ",");
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::dup2(theirs.value(), STDIN_FILENO);
    ::execl(program_.c_str(), program_.c_str(), "push", number.c_str(), list.c_str(), nullptr);
    ::_exit(127);
  }
  std::uint64_t last = 0;
  const bool connects = ::read(ours.value(), &last, sizeof last) == sizeof last;
  fates_[trainer] = Fate::is_ready;
  wait_while(trainer, Fate::is_ready);
  const bool pushes = connects && ::write(ours.value(), &last, 1) == 1 &&
                      ::read(ours.value(), &last, sizeof last) == sizeof last;
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
  if (!pushes) throw Error(fleetrun::ErrorKind::host, "a trainer's process has failed");
  done_[trainer] = last;
}

void Job::train(std::uint32_t trainer, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const std::vector<float> ones(kKeysOfPush * 4, 1.0f), dense(kWidth, 1.0f);
  std::vector<float> rows(kKeysOfPush * 4);
  for (;;) {
    auto client = connect_patiently(endpoints_, trainer);
    ++lives_[trainer];
    if (trainer == 0) {
      if (client->next_change() == 1) client->set_dense(1, std::vector<float>(kWidth, 0.0f));
      has_values_ = true;
      has_values_.notify_all();
    }
    has_values_.wait(false);
    if (trainer == 1 && client->next_change() == 1)
      client->push({.sparse = {{0, keys_of(1, 1), ones}}, .dense = {}});
    std::uint64_t life = std::uniform_int_distribution<std::uint64_t>(10, 200)(random);
    std::vector<std::unique_ptr<Pending>> pending;
    const auto push = [&] {
      const std::uint64_t number = client->next_change();
      pending.push_back(
          client->push_async({.sparse = {{0, keys_of(trainer, number), ones}}, .dense = {{1, dense}}}));
      done_[trainer] = std::max(done_[trainer].load(), number);
    };
    // What the life before it has sent to some servers has to come to all of them.
    const auto goes_on = [&] {
      return ends_ ? client->next_change() <= done_[trainer] : life > 0 || lives_[trainer] > 9;
    };
    auto& fate = fates_[trainer];
    for (; goes_on() && fate != Fate::is_asked; life -= life > 0) {
      const auto began = Clock::now();
      client->pull({.sparse = {{0, keys_of(trainer, client->next_change()), rows}}, .dense = {}});
      push();
      if (pending.size() > 2) {
        pending.front()->wait();
        pending.erase(pending.begin());
      }
      const auto took = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - began).count();
      if (took > longest_us_[trainer]) longest_us_[trainer] = took;
    }
    if (fate == Fate::is_asked) {
      for (const auto& one : pending) one->wait();
      pending.clear();
      client.reset();
      die_pushing(trainer);
      fate = Fate::lives;
      continue;
    }
    if (!ends_) continue;  // its pushes may be anywhere
    for (const auto& one : pending) one->wait();
    done_[trainer] = client->next_change() - 1;
    return;
  }
}

// Whether the server's standby has all of it, in another process than `by`, where it stays.
bool Job::could_be_handed_back(std::uint32_t server, std::uint32_t by) const {
  const std::uint32_t holder = fleetrun::standby_beside(server, kServers);
  const auto there = process_of(holder);
  const std::string directory = directory_of_server(directory_.path(), server);
  if (!there || *there == by || *there != holder % processes_ ||
      std::filesystem::exists(directory + "/without-standby"))
    return false;
  const auto addresses = std::make_shared<ServerAddresses>(endpoints_);
  const std::atomic<bool> never{false};
  try {
    std::vector<std::unique_ptr<Channel>> channels;
    channels.push_back(standby_beside_at(server, addresses, {}, Transport::automatic).connect(never));
    const Observer observer = make_observer(observer_options(), make_incarnation(), std::move(channels));
    return fleetrun::tests::could_hand_back(observer.client->stat().front(), server);
  } catch (const Error&) {
    return false;
  }
}

// It stands still.
void Job::lose_directories(std::uint32_t process) {
  for (std::uint32_t server = 0; server < kServers; ++server) {
    if (process_of(server) != process || !could_be_handed_back(server, process)) continue;
    std::filesystem::remove_all(directory_of_server(directory_.path(), server));
    ++lost;
  }
}

void Job::kill(std::uint32_t process, pid_t victim) {
  if (pick(0, 1) == 1) {
    const std::uint32_t trainer = pick(0, kTrainers - 1);
    fates_[trainer] = Fate::is_asked;
    wait_while(trainer, Fate::is_asked);
    ::kill(victim, SIGSTOP);
    fates_[trainer] = Fate::pushes;
    wait_while(trainer, Fate::pushes);
  }
  if (has_standbys_) {
    ::kill(victim, SIGSTOP);
    siginfo_t stopped;
    ::waitid(P_PID, static_cast<id_t>(victim), &stopped, WSTOPPED | WEXITED | WNOWAIT);
    lose_directories(process);
  }
  served_.insert(process);
  ::kill(victim, SIGKILL);
  ++killed;
  // It is told by the end of the process, not by the signal.
  siginfo_t info;
  ::waitid(P_PID, static_cast<id_t>(victim), &info, WEXITED | WNOWAIT);
}

bool Job::wait_until_moved(std::optional<Clock::time_point> kill_at) {
  const auto deadline = Clock::now() + kLongest;
  while (!has_moved() || kill_at) {
    if (Clock::now() > deadline || failed_) return false;
    if (kill_at && Clock::now() >= *kill_at) {
      auto victim = pids_.begin();
      std::advance(victim, pick(0, static_cast<std::uint32_t>(pids_.size()) - 1));
      kill(victim->first, victim->second);
      kill_at.reset();
    }
    reap();
    start_wanted();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

std::uint64_t Job::count_wrong() {
  std::vector<float> expected(kKeys), rows(kKeys * 4), dense(kWidth);
  std::vector<std::uint64_t> keys(kKeys);
  for (std::uint64_t key = 0; key < kKeys; ++key) keys[key] = key;
  float all = 0;
  for (std::uint32_t trainer = 0; trainer < kTrainers; ++trainer) {
    for (std::uint64_t number = trainer == 0 ? 2 : 1; number <= done_[trainer]; ++number) {
      for (const std::uint64_t key : keys_of(trainer, number)) expected[key] += 1.0f;
      all += trainer == 1 && number == 1 ? 0.0f : 1.0f;
    }
    pushes += done_[trainer];
  }
  const auto client = connect_patiently(endpoints_, 0);
  client->pull({.sparse = {{0, keys, rows}}, .dense = {{1, dense}}});
  std::uint64_t out = 0;
  for (std::uint64_t key = 0; key < kKeys; ++key)
    for (int column = 0; column < 4; ++column) out += rows[key * 4 + column] != expected[key] ? 1 : 0;
  for (const float value : dense) out += value != all ? 1 : 0;
  return out;
}

bool Job::run() {
  if (!wait_until_moved({})) return false;
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
  bool all_moved = true;
  for (int step = 0; step < kSteps && all_moved; ++step) {
    std::this_thread::sleep_for(std::chrono::milliseconds(pick(20, 120)));
    for (auto& longest : longest_us_) longest = 0;
    const std::array<std::uint64_t, kTrainers> lives{lives_[0], lives_[1]};
    const std::uint32_t before = processes_;
    processes_ = pick(1, kServers);
    write_count();
    ++resizes;
    const bool kills = pick(0, 1) == 1;
    with_kill += kills ? 1 : 0;
    const std::chrono::milliseconds later{pick(0, has_standbys_ ? 800 : 400)};
    all_moved = wait_until_moved(kills ? std::optional(Clock::now() + later) : std::nullopt);
    for (std::uint32_t trainer = 0; trainer < kTrainers && !kills && before != processes_; ++trainer)
      if (lives[trainer] == lives_[trainer]) pauses_us.push_back(longest_us_[trainer]);
  }
  ends_ = true;
  for (std::thread& trainer : trainers) trainer.join();
  for (const auto& lives : lives_) come_again += lives - 1;
  if (!all_moved || failed_) return false;
  wrong = count_wrong();
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 7 && std::string(argv[1]) == "serve") return serve({argv + 2, argv + argc});
  if (argc == 4 && std::string(argv[1]) == "push")
    return push(static_cast<std::uint32_t>(std::stoul(argv[2])), argv[3]);
  if (argc != 3) return 2;
  const std::uint64_t seed = std::stoull(argv[1]), sequences = std::stoull(argv[2]);
  std::uint64_t resizes = 0, with_kill = 0, killed = 0, lost = 0, come_again = 0, pushes = 0, wrong = 0;
  std::vector<std::int64_t> pauses;
  for (std::uint64_t sequence = 0; sequence < sequences; ++sequence) {
    Job job(argv[0], seed + sequence);
    const bool is_whole = job.run();
    if (!is_whole)
      std::printf("sequence %llu did not come to its end\n", (unsigned long long)(seed + sequence));
    if (job.wrong != 0)
      std::printf("sequence %llu: %llu rows wrong\n", (unsigned long long)(seed + sequence),
                  (unsigned long long)job.wrong);
    if (!is_whole) return 1;
    resizes += job.resizes;
    with_kill += job.with_kill;
    killed += job.killed;
    lost += job.lost;
    come_again += job.come_again;
    pushes += job.pushes;
    wrong += job.wrong;
    pauses.insert(pauses.end(), job.pauses_us.begin(), job.pauses_us.end());
  }
  std::printf(
      "%llu sequences, %llu resizes (%llu of them with a kill), %llu processes killed, %llu directories "
      "lost, "
      "%llu trainers come again, %llu pushes, %llu rows wrong\n",
      (unsigned long long)sequences, (unsigned long long)resizes, (unsigned long long)with_kill,
      (unsigned long long)killed, (unsigned long long)lost, (unsigned long long)come_again,
      (unsigned long long)pushes, (unsigned long long)wrong);
  std::ranges::sort(pauses);
  if (!pauses.empty())
    std::printf(
        "longest step of a trainer in a resize without a kill: median %.1f ms, 99th percentile %.1f "
        "ms, longest %.1f ms (%zu)\n",
        static_cast<double>(pauses[pauses.size() / 2]) / 1000,
        static_cast<double>(pauses[pauses.size() * 99 / 100]) / 1000,
        static_cast<double>(pauses.back()) / 1000, pauses.size());
  return wrong == 0 ? 0 : 1;
}
