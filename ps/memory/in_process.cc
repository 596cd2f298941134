// A call runs on the thread that starts it; one that waits for other trainers is answered by the last of
// them. The message that the client filled is the one that the server reads: nothing is copied in between.
#include "ps/memory/in_process.h"

#include <mutex>
#include <utility>

#include "ps/client/channel_client.h"
#include "ps/server/server.h"
#include "runtime/base/error.h"

namespace fleetrun::ps {
namespace {

// Owned by the call and by the server's answer to it, whichever lives longer.
struct Exchange {
  Message request;
  std::shared_ptr<Endings> endings;
  std::mutex mutex;  // guards what follows
  bool ended = false;
  Outcome outcome;
};

class MemoryCall : public Call {
 public:
  explicit MemoryCall(std::shared_ptr<Exchange> exchange) : exchange_(std::move(exchange)) {}

  bool has_ended() const override {
    const std::lock_guard lock(exchange_->mutex);
    return exchange_->ended;
  }

  Reader result() override {
    const std::lock_guard lock(exchange_->mutex);
    if (const Error* error = std::get_if<Error>(&exchange_->outcome)) throw separate_copy(*error);
    return Reader(std::get<Message>(exchange_->outcome).bytes());
  }

 private:
  std::shared_ptr<Exchange> exchange_;
};

class MemoryChannel : public Channel {
 public:
  MemoryChannel(std::shared_ptr<Server> server, std::uint32_t rank, std::uint32_t trainer,
                std::uint64_t incarnation)
      : server_(std::move(server)),
        name_("server " + std::to_string(rank) + " in this process"),
        trainer_(trainer),
        incarnation_(incarnation) {}
  // A client that is dropped without a goodbye must not keep the others waiting.
  ~MemoryChannel() override { server_->lost(trainer_, incarnation_); }

  std::unique_ptr<Call> start(const wire::Header&, Message request,
                              std::shared_ptr<Endings> endings) override {
    auto exchange = std::make_shared<Exchange>();
    exchange->request = std::move(request);
    exchange->endings = std::move(endings);
    Reader reader(exchange->request.bytes());
    const wire::Header header = wire::read_header(reader);
    server_->handle(header, std::move(reader), [exchange](Outcome outcome) {
      const bool failed = std::holds_alternative<Error>(outcome);
      {
        const std::lock_guard lock(exchange->mutex);
        exchange->outcome = std::move(outcome);
        exchange->ended = true;
      }
      exchange->endings->ended(failed);
    });
    return std::make_unique<MemoryCall>(std::move(exchange));
  }

  const std::string& name() const noexcept override { return name_; }

 private:
  std::shared_ptr<Server> server_;  // owned by the clients of all trainers
  std::string name_;
  std::uint32_t trainer_;
  std::uint64_t incarnation_;
};

}  // namespace

std::vector<std::unique_ptr<Client>> make_in_process(std::uint32_t servers, std::uint32_t trainers, Mode mode,
                                                     const std::vector<TableConfig>& tables,
                                                     const TableMemory& memory) {
  return make_in_process(servers, ClientOptions{0, trainers, mode, tables}, memory);
}

std::vector<std::unique_ptr<Client>> make_in_process(std::uint32_t servers, const ClientOptions& client,
                                                     const TableMemory& memory) {
  const std::uint32_t trainers = client.trainers;
  if (servers == 0 || trainers == 0) {
    throw Error(ErrorKind::config, std::to_string(servers) + " servers and " + std::to_string(trainers) +
                                       " trainers in one process; at least one of each is needed");
  }
  std::vector<std::shared_ptr<Server>> all;
  for (std::uint32_t rank = 0; rank < servers; ++rank) {
    all.push_back(std::make_shared<Server>(
        ServerOptions{rank, servers, trainers, client.mode, client.tables, 0, memory}));
  }
  std::vector<std::unique_ptr<Client>> clients;
  for (std::uint32_t trainer = 0; trainer < trainers; ++trainer) {
    ClientOptions options = client;
    options.trainer = trainer;
    const std::uint64_t incarnation = make_incarnation();
    std::vector<std::unique_ptr<Channel>> channels;
    Welcome welcome;
    for (std::uint32_t rank = 0; rank < servers; ++rank) {
      channels.push_back(std::make_unique<MemoryChannel>(all[rank], rank, trainer, incarnation));
      auto endings = std::make_shared<Endings>();
      auto hello = channels.back()->start({wire::Method::hello, trainer, 0, incarnation},
                                          make_hello(options, incarnation, rank, servers), endings);
      endings->wait(1);
      welcome.add(rank, wire::read_greeting(hello->result()));
    }
    clients.push_back(make_channel_client(options, incarnation, std::move(channels), welcome));
  }
  return clients;
}

}  // namespace fleetrun::ps
