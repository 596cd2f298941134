// Servers in this process behind a network that loses connections before a request arrives or before its
// answer does, delivers requests in any order, some twice and some of them long afterwards, and servers that
// are killed and started again from what they have kept. What happens is drawn from a seed.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <future>
#include <list>
#include <memory>
#include <mutex>
#include <random>
#include <shared_mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "ps/client/channel_client.h"
#include "ps/durable/checkpoint.h"
#include "ps/server/server.h"
#include "tests/support/unreliable_link.h"

namespace fleetrun::tests {

class UnreliableServer {
 public:
  UnreliableServer(ps::ServerOptions options, Unreliability unreliability, std::uint64_t seed)
      : options_(std::move(options)),
        unreliability_(unreliability),
        random_(seed),
        server_(std::make_unique<ps::Server>(options_)),
        thread_([this] { run(); }) {}
  ~UnreliableServer() { close(); }
  /// Before any of those goes that lean on it, or it on them.
  void close() {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
      changed_.notify_all();
    }
    if (thread_.joinable()) thread_.join();
    const std::unique_lock life(life_);
    ++lives_;
    server_.reset();
  }

  std::uint64_t kills() const noexcept { return kills_; }
  /// Of those: its directory was gone, too.
  std::uint64_t handed_back() const noexcept { return handed_back_; }
  std::uint64_t cuts() const noexcept { return cuts_; }
  std::uint64_t twins() const noexcept { return twins_; }

  /// `holder` has its standby. One server at a time is killed then, and loses its directory, too, wherever
  /// `holder` says that it could hand all of it back.
  void lean_on(UnreliableServer& holder, std::mutex& killing) {
    const std::lock_guard lock(mutex_);
    holder_ = &holder;
    killing_ = &killing;
  }
  /// To the server that this one leans on. What a server that is about to be killed says is not heard.
  std::unique_ptr<ps::Channel> reach_holder(const std::atomic<bool>& give_up) {
    const std::shared_lock life(holder_->life_);
    return std::make_unique<DirectChannel>(
        [this, &give_up, &at = *holder_, then = holder_->lives_.load()](auto in, auto respond) {
          while (is_dying_ && !give_up) std::this_thread::yield();
          const std::shared_lock alive(at.life_);
          if (give_up || at.lives_ != then || !at.server_) throw Error(ErrorKind::network, "it was killed");
          const ps::wire::Header header = ps::wire::read_header(in);
          at.server_->handle(header, std::move(in), std::move(respond));
        });
  }

  /// A connection with the hello of `client`; the answer to it goes to `welcome`.
  std::unique_ptr<ps::Channel> connect(const ps::ClientOptions& client, std::uint64_t incarnation,
                                       std::function<void()> on_lost, ps::wire::Greeting& welcome) {
    auto link = std::make_shared<UnreliableLink>();
    link->connection = connections_++;
    link->trainer = client.trainer;
    link->incarnation = incarnation;
    link->on_lost = std::move(on_lost);
    const ps::Message request =
        ps::make_hello(client, incarnation, options_.rank, options_.servers, link->connection);
    for (;;) {
      std::shared_lock life(life_);
      const std::uint64_t then = lives_;
      std::future<ps::Outcome> answer = ask(*server_, request);
      life.unlock();
      const ps::Outcome outcome = answer.get();
      life.lock();
      if (lives_ != then) continue;  // it was killed before it had answered
      if (const Error* error = std::get_if<Error>(&outcome)) throw ps::separate_copy(*error);
      welcome = ps::wire::read_greeting(ps::Reader(std::get<ps::Message>(outcome).bytes()));
      const std::lock_guard lock(mutex_);
      links_.push_back(link);
      return std::make_unique<LinkChannel>(*this, link);
    }
  }

 private:
  using Link = UnreliableLink;
  struct InFlight {
    std::shared_ptr<Link> link;
    std::shared_ptr<ps::Message> request;
    std::shared_ptr<UnreliableExchange> exchange;  // none for a twin
  };

  class LinkChannel : public ps::Channel {
   public:
    LinkChannel(UnreliableServer& server, std::shared_ptr<Link> link)
        : server_(server), link_(std::move(link)) {}
    ~LinkChannel() override { server_.drop(link_); }

    std::unique_ptr<ps::Call> start(const ps::wire::Header&, ps::Message request,
                                    std::shared_ptr<ps::Endings> endings) override {
      auto exchange = std::make_shared<UnreliableExchange>();
      exchange->endings = std::move(endings);
      {
        const std::lock_guard lock(link_->mutex);
        if (link_->is_cut) throw Error(ErrorKind::network, "the connection was cut");
        link_->waiting.push_back(exchange);
      }
      auto bytes = std::make_shared<ps::Message>(request.size());
      std::copy(request.bytes().begin(), request.bytes().end(), bytes->data());
      server_.take({link_, bytes, exchange});
      return std::make_unique<UnreliableCall>(std::move(exchange));
    }
    const std::string& name() const noexcept override { return name_; }

   private:
    UnreliableServer& server_;
    std::shared_ptr<Link> link_;
    std::string name_ = "an unreliable server";
  };

  void take(InFlight message) {
    const std::lock_guard lock(mutex_);
    in_flight_.push_back(std::move(message));
    changed_.notify_all();
  }

  void drop(const std::shared_ptr<Link>& link) {
    {
      const std::lock_guard lock(mutex_);
      std::erase(links_, link);
    }
    link->cut();
    const std::shared_lock life(life_);
    server_->lost(link->trainer, link->incarnation, link->connection);
  }

  bool happens(unsigned in_a_thousand) { return random_() % 1000 < in_a_thousand; }

  void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      const auto is_urgent = [](const InFlight& message) { return message.exchange != nullptr; };
      changed_.wait(lock, [&] { return ending_ || std::ranges::any_of(in_flight_, is_urgent); });
      if (ending_) return;
      auto next = in_flight_.begin();
      std::advance(next, static_cast<std::ptrdiff_t>(random_() % in_flight_.size()));
      InFlight message = std::move(*next);
      in_flight_.erase(next);
      const bool twin = message.exchange && happens(unreliability_.duplicated);
      if (twin) in_flight_.push_back({message.link, message.request, nullptr});
      twins_ += twin ? 1 : 0;
      const bool kill = happens(unreliability_.kills);
      const bool is_dropped = message.exchange && happens(unreliability_.dropped);
      const bool answer_is_lost = message.exchange && happens(unreliability_.answers_lost);
      is_dying_ = kill && holder_;
      lock.unlock();
      if (is_dying_) deliver(message);
      if (kill) die();
      if (is_dropped) cut(message.link);
      deliver(message);
      if (answer_is_lost) cut(message.link);
      lock.lock();
    }
  }

  void cut(const std::shared_ptr<Link>& link) {
    ++cuts_;
    link->cut();
    const std::shared_lock life(life_);
    server_->lost(link->trainer, link->incarnation, link->connection);
  }

  void deliver(const InFlight& message) {
    if (message.exchange) {
      const std::lock_guard lock(message.link->mutex);
      if (message.link->is_cut) return;
    }
    const std::shared_lock life(life_);
    ps::Reader reader(message.request->bytes());
    const ps::wire::Header header = ps::wire::read_header(reader);
    // The bytes live until the answer.
    server_->handle(header, std::move(reader), [message](ps::Outcome outcome) {
      if (message.exchange) message.link->answer(message.exchange, std::move(outcome));
    });
  }

  std::string stat() {
    const std::shared_lock life(life_);
    return server_->stat();
  }

  void die() {
    const auto one_at_a_time = killing_ ? std::unique_lock(*killing_) : std::unique_lock<std::mutex>();
    const bool is_held = holder_ && could_hand_back(holder_->stat(), options_.rank);
    const std::unique_lock life(life_);
    std::vector<std::shared_ptr<Link>> all;
    {
      const std::lock_guard lock(mutex_);
      all.swap(links_);
    }
    for (const auto& link : all) link->cut();
    server_.reset();
    if (is_held)
      std::filesystem::remove_all(ps::directory_of_server(options_.durability.directory, options_.rank));
    ++kills_;
    ++lives_;
    is_dying_ = false;
    server_ = std::make_unique<ps::Server>(options_);
    if (is_held && server_->recovery().value_or(ps::Recovery()).standby.empty())
      throw Error(ErrorKind::data, "a standby that could hand back all did not");
    handed_back_ += is_held ? 1 : 0;
  }

  ps::ServerOptions options_;
  Unreliability unreliability_;
  std::atomic<std::uint64_t> connections_{100}, kills_{0}, handed_back_{0}, lives_{0}, cuts_{0}, twins_{0};
  std::atomic<bool> is_dying_{false};
  UnreliableServer* holder_ = nullptr;
  std::mutex* killing_ = nullptr;
  std::shared_mutex life_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::mt19937_64 random_;
  std::list<InFlight> in_flight_;
  std::vector<std::shared_ptr<Link>> links_;
  bool ending_ = false;
  std::unique_ptr<ps::Server> server_;  // guarded by life_
  std::thread thread_;
};

}  // namespace fleetrun::tests
