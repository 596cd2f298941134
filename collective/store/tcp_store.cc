#include "collective/store/tcp_store.h"

#include <netdb.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "collective/store/store_server.h"
#include "collective/store/store_state.h"
#include "runtime/base/error.h"
#include "runtime/base/frames.h"
#include "runtime/connect/connector.h"

namespace fleetrun::collective {
namespace {

using Clock = Store::Clock;
using Kind = StoreMessage::Kind;

constexpr std::chrono::seconds kGoodbye{1};
constexpr std::chrono::seconds kWhoIsMissing{5};

std::string seconds_text(Clock::duration duration) {
  if (duration >= std::chrono::seconds(5))
    return std::to_string(std::chrono::round<std::chrono::seconds>(duration).count()) + " s";
  return std::to_string(std::chrono::round<std::chrono::milliseconds>(duration).count()) + " ms";
}

}  // namespace

struct TcpStore::State {
  explicit State(TcpStoreOptions wanted)
      : options(std::move(wanted)),
        server_name("rank 0 at " + options.endpoint + ", which has the job's store,"),
        woken(check_errno(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd", "use the job's store")) {}

  void connect();
  void send(const StoreMessage& message);
  std::optional<StoreMessage> ask(StoreMessage message, Clock::time_point deadline, const Concern& concern);
  StoreMessage ask(StoreMessage message);
  void run();
  std::string receive();
  void take(const StoreMessage& message);
  void end(const std::string& why);

  TcpStoreOptions options;
  const std::string server_name;
  std::optional<StoreServer> server;  // of rank 0
  UniqueFd woken;
  FrameReader reader{kMaxStoreBytes};

  std::mutex connected;  // guards the connection; before `mutex`
  SealedSocket connection;

  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::uint64_t, std::optional<StoreMessage>> asked;  // and answered
  std::uint64_t next_id = 1;
  std::uint64_t news = 0;  // so far
  bool zero_has_left = false;
  std::optional<std::string> gone;  // why

  std::thread thread;
};

void TcpStore::State::connect() {
  const auto deadline = Clock::now() + options.meet_within;
  std::string endpoint = options.endpoint;
  if (options.rank == 0) {
    server.emplace(StoreServerOptions{options.endpoint, options.shares_port, options.access, options.size,
                                      options.attempt});
    endpoint = server->endpoint();
  }
  connection =
      connect_until(endpoint,
                    {.name = server_name,
                     .access = options.access,
                     .purpose = kStorePurpose,
                     .secret_hint = std::string("let one fleetrun start all trainers; ") + kSecretHint},
                    deadline, options.concern);
  connection.end_when_silent();
  thread = std::thread([this] { run(); });
  ask({Kind::hello, 0, options.rank, options.attempt, std::to_string(options.size)});
}

/// Whole frames, one thread at a time. A store that is gone is found out by the thread that reads.
void TcpStore::State::send(const StoreMessage& message) {
  std::string frame;
  append_frame(encode(message), frame);
  const std::lock_guard lock(connected);
  connection.queue(frame);
  while (connection.flush() && connection.has_output()) {
    pollfd writable{connection.fd(), POLLOUT, 0};
    ::poll(&writable, 1, -1);
  }
}

/// nullopt: not answered by the deadline.
std::optional<StoreMessage> TcpStore::State::ask(StoreMessage message, Clock::time_point deadline,
                                                 const Concern& concern) {
  {
    const std::lock_guard lock(mutex);
    message.id = next_id++;
    asked[message.id];
  }
  send(message);
  std::unique_lock lock(mutex);
  const auto withdraw = [&] {
    asked.erase(message.id);
    lock.unlock();
    if (message.kind == Kind::wait) send({Kind::forget, 0, static_cast<std::int64_t>(message.id), {}, {}});
  };
  for (;;) {
    const std::uint64_t heard = news;
    if (concern) {
      lock.unlock();
      try {
        concern();
      } catch (...) {
        lock.lock();
        withdraw();
        throw;
      }
      lock.lock();
    }
    const auto until = concern ? std::min(deadline, Clock::now() + Store::kLookAgain) : deadline;
    changed.wait_until(lock, until,
                       [&] { return asked.at(message.id) || gone || (concern && news != heard); });
    if (const auto& answer = asked.at(message.id)) {
      StoreMessage out = *answer;
      asked.erase(message.id);
      if (out.kind == Kind::refused) throw Error(static_cast<ErrorKind>(out.number), out.name, out.value);
      return out;
    }
    if (gone) {
      asked.erase(message.id);
      throw Error(
          ErrorKind::network, server_name + " " + *gone,
          zero_has_left ? "let rank 0 leave last" : "look at its log; without it the job is started again");
    }
    if (Clock::now() >= deadline) {
      withdraw();
      return std::nullopt;
    }
  }
}

StoreMessage TcpStore::State::ask(StoreMessage message) {
  const auto deadline = Clock::now() + options.meet_within;
  const std::optional<StoreMessage> answer = ask(std::move(message), deadline, {});
  if (!answer)
    throw Error(ErrorKind::timeout,
                server_name + " did not answer within " + seconds_text(options.meet_within));
  return *answer;
}

void TcpStore::State::take(const StoreMessage& message) {
  if (message.kind == Kind::answer || message.kind == Kind::refused) {
    const std::lock_guard lock(mutex);
    if (const auto found = asked.find(message.id); found != asked.end()) found->second = message;
    changed.notify_all();
    return;
  }
  StoreNews heard;
  heard.kind = message.kind == Kind::lost   ? StoreNews::Kind::lost
               : message.kind == Kind::left ? StoreNews::Kind::left
                                            : StoreNews::Kind::announced;
  heard.rank = static_cast<int>(message.number);
  heard.subject = message.name;
  heard.text = message.value;
  if (options.on_news) options.on_news(heard);
  const std::lock_guard lock(mutex);
  zero_has_left = zero_has_left || (heard.kind == StoreNews::Kind::left && heard.rank == 0);
  ++news;
  changed.notify_all();
}

void TcpStore::State::end(const std::string& why) {
  bool is_news = false;
  {
    const std::lock_guard lock(mutex);
    gone = zero_has_left ? "has left" : why;
    is_news = !zero_has_left;
  }
  if (is_news && options.on_news) options.on_news({StoreNews::Kind::lost, 0, {}, why});
  const std::lock_guard lock(mutex);
  ++news;
  changed.notify_all();
}

/// Why the connection has ended; empty: it goes on.
std::string TcpStore::State::receive() {
  std::array<std::byte, 16384> block;
  for (;;) {
    std::unique_lock lock(connected);
    const ssize_t count = connection.receive(block);
    lock.unlock();
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return {};
    if (count < 0 && errno != ECONNRESET)
      return std::string("can no longer be reached: ") + std::strerror(errno);
    if (count <= 0) return "has ended";
    reader.receive({reinterpret_cast<const char*>(block.data()), static_cast<std::size_t>(count)});
    while (const auto body = reader.next()) take(decode_store_message(*body));
  }
}

void TcpStore::State::run() {
  pollfd watched[] = {{woken.value(), POLLIN, 0}, {connection.fd(), POLLIN, 0}};
  for (;;) {
    if (::poll(watched, 2, -1) < 0 && errno != EINTR) return end("cannot be waited for");
    if (watched[0].revents != 0) return;
    if (watched[1].revents == 0) continue;
    std::string why;
    try {
      why = receive();
    } catch (const std::exception& error) {
      why = std::string("sent what cannot be read: ") + error.what();
    }
    if (!why.empty()) return end(why);
  }
}

TcpStore::TcpStore(TcpStoreOptions options) : state_(std::make_unique<State>(std::move(options))) {
  try {
    state_->connect();
  } catch (...) {
    const std::uint64_t one = 1;
    static_cast<void>(!::write(state_->woken.value(), &one, sizeof one));
    if (state_->thread.joinable()) state_->thread.join();
    throw;
  }
}

TcpStore::~TcpStore() {
  try {
    // Answered before this closes: what is sent by an end that closes may get lost.
    static_cast<void>(state_->ask({Kind::leave, 0, 0, {}, {}}, Clock::now() + kGoodbye, {}));
  } catch (const Error&) {
    // It is gone: nobody to tell.
  }
  const std::uint64_t one = 1;
  static_cast<void>(!::write(state_->woken.value(), &one, sizeof one));
  state_->thread.join();
}

void TcpStore::set(const std::string& name, const std::string& value) {
  state_->ask({Kind::set, 0, 0, name, value});
}

std::string TcpStore::wait(const std::string& name, Clock::time_point deadline) {
  return wait(name, deadline, {});
}

std::string TcpStore::wait(const std::string& name, Clock::time_point deadline, const Concern& concern) {
  const auto begun = Clock::now();
  const auto answer = state_->ask({Kind::wait, 0, 0, name, {}}, deadline, concern);
  if (!answer)
    throw Error(ErrorKind::timeout, "nobody has set " + name + " within " + seconds_text(deadline - begun));
  return answer->value;
}

std::int64_t TcpStore::add(const std::string& name, std::int64_t amount) {
  return state_->ask({Kind::add, 0, amount, name, {}}).number;
}

std::map<int, std::string> TcpStore::gather(const std::string& name, const std::string& value, bool of_living,
                                            Clock::time_point deadline, const Concern& concern) {
  const auto begun = Clock::now();
  const auto answer = state_->ask({Kind::gather, 0, of_living ? 1 : 0, name, value}, deadline, concern);
  if (answer) return decode_gathered(answer->value);
  const auto absent = state_->ask({Kind::missing, 0, 0, name, {}}, Clock::now() + kWhoIsMissing, {});
  std::vector<int> ranks;
  if (absent)
    for (const auto& [rank, nothing] : decode_gathered(absent->value)) ranks.push_back(rank);
  throw Error(ErrorKind::timeout,
              (ranks.empty() ? "not all ranks have"
                             : rank_names(ranks) + (ranks.size() == 1 ? " has not" : " have not")) +
                  " come within " + seconds_text(deadline - begun),
              "look at their logs: they have not started, wait for something else, or are of another job");
}

void TcpStore::announce(const std::string& subject, const std::string& text) noexcept {
  try {
    state_->send({Kind::announce, 0, 0, subject, text});
  } catch (const std::exception&) {
    // No memory for a message: the others find out by the end of the connections.
  }
}

std::string TcpStore::address() const {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  char host[NI_MAXHOST] = "";
  check_errno(::getsockname(state_->connection.fd(), reinterpret_cast<sockaddr*>(&address), &size),
              "getsockname", "find this process's address", ErrorKind::network);
  ::getnameinfo(reinterpret_cast<const sockaddr*>(&address), size, host, sizeof host, nullptr, 0,
                NI_NUMERICHOST);
  return host;
}

}  // namespace fleetrun::collective
