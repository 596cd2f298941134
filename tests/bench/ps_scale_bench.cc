// How the cost of a step grows with servers, trainers and the network's delay: 1, 2 and 4 servers, 1 to 8
// trainers, each connection through a proxy that holds every byte back for some milliseconds. A step pulls
// and pushes 2,000 rows of 10. Prints a JSON line for each combination:
// the median and the slowest tenth of a step, in milliseconds.
//
//   ps_scale_bench [steps]     tests/bench/ps/scale_plot.py makes the table and the plot
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "ps/rpc/connect.h"
#include "ps/rpc/rpc_server.h"

namespace {

using namespace fleetrun::ps;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kWidth = 10;
constexpr std::size_t kKeys = 2000;

sockaddr_in loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  return address;
}

// Hands bytes on from one socket to another, each `delay` after it came. Ends with the first of the two.
class DelayedPipe {
 public:
  DelayedPipe(int from, int to, std::chrono::microseconds delay)
      : from_(from), to_(to), delay_(delay), reader_([this] { read(); }), writer_([this] { write(); }) {}
  ~DelayedPipe() {
    reader_.join();
    writer_.join();
  }

 private:
  struct Block {
    Clock::time_point due;
    std::vector<char> bytes;
  };

  void read() {
    for (;;) {
      Block block;
      block.bytes.resize(256 << 10);
      const ssize_t count = ::recv(from_, block.bytes.data(), block.bytes.size(), 0);
      block.bytes.resize(static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
      block.due = Clock::now() + delay_;
      const bool is_end = block.bytes.empty();
      const std::lock_guard lock(mutex_);
      blocks_.push_back(std::move(block));
      changed_.notify_one();
      if (is_end) return;
    }
  }

  void write() {
    for (;;) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return !blocks_.empty(); });
      const Block block = std::move(blocks_.front());
      blocks_.pop_front();
      lock.unlock();
      std::this_thread::sleep_until(block.due);
      std::size_t sent = 0;
      while (sent < block.bytes.size()) {
        const ssize_t count = ::send(to_, block.bytes.data() + sent, block.bytes.size() - sent, MSG_NOSIGNAL);
        if (count <= 0) break;
        sent += static_cast<std::size_t>(count);
      }
      if (block.bytes.empty() || sent < block.bytes.size()) {
        ::shutdown(to_, SHUT_RDWR);
        ::shutdown(from_, SHUT_RDWR);
        if (block.bytes.empty()) return;
      }
    }
  }

  int from_, to_;
  std::chrono::microseconds delay_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Block> blocks_;
  std::thread reader_, writer_;
};

// Listens on a port of its own for connections to one server.
class DelayProxy {
 public:
  DelayProxy(const std::string& endpoint, std::chrono::microseconds delay)
      : port_(std::atoi(endpoint.c_str() + endpoint.rfind(':') + 1)), delay_(delay) {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address = loopback(0);
    socklen_t size = sizeof address;
    if (::bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0 || ::listen(listener_, 64) != 0 ||
        ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0)
      std::exit(1);
    endpoint_ = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
    thread_ = std::thread([this] { run(); });
  }
  ~DelayProxy() {
    ::shutdown(listener_, SHUT_RDWR);
    thread_.join();
    for (const int file : files_) ::shutdown(file, SHUT_RDWR);
    pipes_.clear();
    for (const int file : files_) ::close(file);
    ::close(listener_);
  }

  const std::string& endpoint() const { return endpoint_; }

 private:
  void run() {
    for (;;) {
      const int near = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (near < 0) return;
      const int far = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
      const sockaddr_in address = loopback(port_);
      files_.insert(files_.end(), {near, far});
      if (::connect(far, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
        ::shutdown(near, SHUT_RDWR);
        continue;
      }
      // Without it the kernel holds small packets back for up to 40 ms: a delay that nobody asked for.
      const int on = 1;
      for (const int file : {near, far}) ::setsockopt(file, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      pipes_.push_back(std::make_unique<DelayedPipe>(near, far, delay_));
      pipes_.push_back(std::make_unique<DelayedPipe>(far, near, delay_));
    }
  }

  int port_;
  std::chrono::microseconds delay_;
  int listener_ = -1;
  std::string endpoint_;
  std::vector<int> files_;
  std::vector<std::unique_ptr<DelayedPipe>> pipes_;
  std::thread thread_;
};

std::vector<double> train(Client& client, std::uint32_t trainer, std::size_t steps) {
  std::mt19937_64 random(trainer);
  std::vector<std::uint64_t> keys(kKeys);
  std::vector<float> rows(kKeys * kWidth), gradients(kKeys * kWidth, 0.01f);
  std::vector<double> seconds;
  for (std::size_t step = 0; step < steps; ++step) {
    for (std::uint64_t& key : keys) key = random() % 1000000;
    const auto before = Clock::now();
    client.pull({.sparse = {{0, keys, rows}}, .dense = {}});
    client.push({.thread = 0, .sparse = {{0, keys, gradients}}, .dense = {}});
    if (step > 0) seconds.push_back(std::chrono::duration<double>(Clock::now() - before).count());
  }
  client.goodbye();
  return seconds;
}

void bench(std::uint32_t servers, std::uint32_t trainers, double delay_ms, std::size_t steps) {
  TableConfig table;
  table.name = "emb";
  table.kind = TableConfig::Kind::sparse;
  table.width = kWidth;
  table.rule.kind = UpdateRule::Kind::adagrad;
  table.rule.initial_accumulator = 0.1f;
  std::vector<std::unique_ptr<RpcServer>> all;
  std::vector<std::unique_ptr<DelayProxy>> proxies;
  std::vector<std::string> endpoints;
  const std::chrono::microseconds delay(static_cast<std::int64_t>(delay_ms * 1000));
  for (std::uint32_t rank = 0; rank < servers; ++rank) {
    all.push_back(std::make_unique<RpcServer>(ServerOptions{rank, servers, trainers, Mode::async, {table}},
                                              "127.0.0.1:0"));
    proxies.push_back(std::make_unique<DelayProxy>(all.back()->endpoint(), delay));
    endpoints.push_back(proxies.back()->endpoint());
  }
  std::vector<std::vector<double>> of_trainers(trainers);
  std::vector<std::thread> threads;
  for (std::uint32_t trainer = 0; trainer < trainers; ++trainer) {
    threads.emplace_back([&, trainer] {
      const auto client = connect(endpoints, {trainer, trainers, Mode::async, {table}});
      of_trainers[trainer] = train(*client, trainer, steps);
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<double> seconds;
  for (const auto& some : of_trainers) seconds.insert(seconds.end(), some.begin(), some.end());
  std::sort(seconds.begin(), seconds.end());
  std::printf(
      "{\"servers\": %u, \"trainers\": %u, \"delay_ms\": %.1f, \"median_ms\": %.2f, \"p90_ms\": %.2f}\n",
      servers, trainers, delay_ms, seconds[seconds.size() / 2] * 1e3, seconds[seconds.size() * 9 / 10] * 1e3);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t steps = argc > 1 ? std::max(2ul, std::strtoul(argv[1], nullptr, 10)) : 40;
  for (const double delay_ms : {0.0, 1.0, 5.0}) {
    for (const std::uint32_t servers : {1u, 2u, 4u}) {
      for (const std::uint32_t trainers : {1u, 2u, 4u, 8u}) bench(servers, trainers, delay_ms, steps);
    }
  }
}
