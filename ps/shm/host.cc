// The threads of a trainer take turns: one waits for the next request, hands the turn over, and handles it.
#include "ps/shm/host.h"

#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <list>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "ps/base/outcome.h"
#include "ps/base/wire.h"
#include "ps/shm/arena.h"
#include "ps/shm/error_text.h"
#include "ps/shm/link.h"
#include "ps/shm/segment.h"
#include "runtime/base/error.h"
#include "runtime/base/same_user.h"

namespace fleetrun::ps {
namespace {

/// Several of them in the time after which a trainer takes a silent server for gone.
constexpr std::chrono::milliseconds kBeat{500};

/// What every trainer's connection needs; outlives them all.
struct Service {
  Server& server;
  BackgroundQueue& slow;
  const ShmHostOptions& options;
  std::function<void()> has_ended;
};

/// Owned by its threads and by the answers that are still to come.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(const Service& service, UniqueFd socket)
      : service_(service),
        segment_(ShmSegment::make(service.options.segment_bytes)),
        socket_(std::move(socket)),
        stop_(check_errno(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd", "serve parameters")),
        requests_(segment_.requests(), segment_.server_bell()),
        arena_(segment_.bytes()),
        answers_(segment_.answers(), segment_.trainer_bell()) {
    send_files(socket_.value(), segment_.files());
  }

  void start() { add_thread(); }
  bool has_ended() const noexcept { return ended_; }
  void beat() const noexcept { ++segment_.beats(); }

  // No request is taken any more.
  void stop() noexcept {
    stopping_ = true;  // seen also by a thread that never has to wait
    const std::uint64_t one = 1;
    static_cast<void>(!::write(stop_.value(), &one, sizeof one));
  }
  // Nor is one answered.
  void cut_off() noexcept {
    {
      const std::lock_guard lock(mutex_);
      is_cut_off_ = true;
    }
    stop();
    static_cast<void>(::shutdown(socket_.value(), SHUT_RDWR));
  }
  // After has_ended() or stop().
  void join() {
    std::list<std::thread> threads;
    {
      const std::lock_guard lock(threads_mutex_);
      joining_ = true;
      threads.swap(threads_);
    }
    for (std::thread& thread : threads) thread.join();
  }
  void wait_for_answers() {
    std::unique_lock lock(mutex_);
    all_answered_.wait(lock, [this] { return calls_ == 0; });
  }

 private:
  void add_thread();
  void serve();
  std::optional<ShmEntry> next();
  void end() noexcept;
  void count_call();
  void handle(const ShmEntry& entry);
  void handle(const wire::Header& header, Reader body, std::uint64_t call);
  Message allocate(std::size_t size);
  void give_back(std::byte* bytes);
  void release(std::uint64_t offset);
  void free(std::uint64_t offset);
  void respond(std::uint64_t call, Outcome outcome, bool attended);
  void give_up(const std::string& why);
  void refuse(const std::string& why);

  const Service service_;
  ShmSegment segment_;
  UniqueFd socket_, stop_;

  std::mutex turn_;  // guards what follows
  ShmReader requests_;
  bool over_ = false;

  std::mutex threads_mutex_;  // guards what follows
  std::list<std::thread> threads_;
  bool joining_ = false;
  std::atomic<unsigned> idle_{0};

  std::mutex mutex_;  // guards what follows
  std::condition_variable all_answered_;
  ShmArena arena_;
  ShmWriter answers_;
  std::size_t calls_ = 0;
  std::optional<wire::Header> attending_;
  bool is_cut_off_ = false;

  std::atomic<bool> stopping_{false}, ended_{false};
};

void Connection::add_thread() {
  static const std::size_t max = std::clamp(std::thread::hardware_concurrency(), 2u, 8u);
  const std::lock_guard lock(threads_mutex_);
  if (joining_ || threads_.size() >= max) return;
  ++idle_;
  threads_.emplace_back([self = shared_from_this()] { self->serve(); });
}

void Connection::serve() {
  for (;;) {
    std::optional<ShmEntry> entry;
    {
      const std::lock_guard turn(turn_);
      if (!over_) entry = next();
    }
    // One is always there for the next request.
    if (--idle_ == 0 && entry) add_thread();
    if (!entry) return;
    handle(*entry);
    ++idle_;
  }
}

// The next call, under turn_; nothing once the connection has ended.
std::optional<ShmEntry> Connection::next() {
  try {
    for (;;) {
      for (std::optional<ShmEntry> entry; !stopping_ && (entry = requests_.take());) {
        if (entry->kind == ShmKind::call) {
          count_call();
          return entry;
        }
        if (entry->kind != ShmKind::release) throw Error(ErrorKind::data, "an entry of an unknown kind");
        release(entry->offset);
      }
      if (stopping_ || requests_.wait(socket_.value(), stop_.value()) != ShmWoken::entry) break;
    }
  } catch (const Error& error) {
    refuse(error.what());
  }
  over_ = true;
  end();
  return std::nullopt;
}

void Connection::end() noexcept {
  std::optional<wire::Header> lost;
  {
    const std::lock_guard lock(mutex_);
    lost = attending_;
    attending_.reset();
  }
  if (lost) service_.options.lost(*lost);
  ended_ = true;
  service_.has_ended();
}

void Connection::count_call() {
  const std::lock_guard lock(mutex_);
  if (calls_ == ShmLink::kMaxCalls)
    throw Error(ErrorKind::data, "more than " + std::to_string(calls_) + " calls at once");
  ++calls_;
}

void Connection::handle(const ShmEntry& entry) {
  wire::Header header;
  Reader body;
  try {
    body = Reader(ShmSegment::part(segment_.request_bytes(), entry));
    header = wire::read_header(body);
  } catch (const Error& error) {
    return respond(entry.call, error, false);
  }
  if (service_.server.is_stale(header)) {
    service_.options.refused(
        "trainer " + std::to_string(header.trainer),
        std::string(wire::to_string(header.method)) + " of stale epoch " + std::to_string(header.generation));
  }
  // From its hello on: it may be gone before it attends. One that is refused has nothing to lose.
  if (header.method == wire::Method::attend || header.method == wire::Method::hello) {
    const std::lock_guard lock(mutex_);
    attending_ = header;
  }
  if (!is_slow(header.method)) return handle(header, std::move(body), entry.call);
  service_.slow.add(
      [self = shared_from_this(), header, body, call = entry.call] { self->handle(header, body, call); });
}

void Connection::handle(const wire::Header& header, Reader body, std::uint64_t call) {
  const bool attends = header.method == wire::Method::attend;
  service_.server.handle(
      header, std::move(body),
      [self = shared_from_this(), call, attends](Outcome outcome) {
        self->respond(call, std::move(outcome), attends);
      },
      [this](std::size_t size) { return allocate(size); });
}

Message Connection::allocate(std::size_t size) {
  const std::lock_guard lock(mutex_);
  const auto offset = arena_.allocate(size);
  if (!offset) {
    throw Error(ErrorKind::host,
                "an answer of " + std::to_string(size) + " bytes does not fit beside " +
                    std::to_string(arena_.used()) + " bytes of answers that the trainer has not read yet",
                "wait for pulls before more of them are begun");
  }
  return Message(segment_.answer_bytes().data() + *offset, size,
                 [self = shared_from_this()](std::byte* bytes) { self->give_back(bytes); });
}

// An answer that was not sent after all.
void Connection::give_back(std::byte* bytes) {
  const std::lock_guard lock(mutex_);
  free(static_cast<std::uint64_t>(bytes - segment_.answer_bytes().data()));
}

void Connection::release(std::uint64_t offset) {
  const std::lock_guard lock(mutex_);
  free(offset);
}

void Connection::free(std::uint64_t offset) {
  if (!arena_.free(offset)) throw Error(ErrorKind::data, "it released an answer that is not there");
  if (!arena_.is_empty() || arena_.touched() <= kKeptPages) return;
  ShmSegment::drop_pages(segment_.answer_bytes().first(arena_.touched()).subspan(kKeptPages));
  arena_.forget_touched(kKeptPages);
}

void Connection::respond(std::uint64_t call, Outcome outcome, bool attended) {
  ShmKind kind = ShmKind::answer;
  Message message;
  const std::byte* first = segment_.answer_bytes().data();
  try {
    if (const Error* error = std::get_if<Error>(&outcome)) {
      kind = ShmKind::error;
      message = allocate(encoded_size(*error));
      encode_error(*error, message);
    } else {
      message = std::move(std::get<Message>(outcome));
      const bool lies_here = message.data() >= first && message.data() < first + segment_.bytes();
      if (message.size() != 0 && !lies_here) {
        Message copy = allocate(message.size());
        std::ranges::copy(message.bytes(), copy.data());
        message = std::move(copy);
      }
    }
  } catch (const std::exception& error) {
    return give_up(error.what());  // not even an error fits
  }
  const std::size_t size = message.size();
  const auto offset = size == 0 ? 0 : static_cast<std::uint64_t>(message.data() - first);
  std::unique_lock lock(mutex_);
  if (attended) attending_.reset();
  message.release();  // until the trainer says so
  const bool has_room = is_cut_off_ || answers_.put({kind, 0, call, offset, size});
  if (--calls_ == 0) all_answered_.notify_all();
  lock.unlock();
  if (!has_room) refuse("it does not read its answers");
}

// A call without an answer: the trainer learns it from the end of the connection.
void Connection::give_up(const std::string& why) {
  refuse(why);
  const std::lock_guard lock(mutex_);
  if (--calls_ == 0) all_answered_.notify_all();
}

void Connection::refuse(const std::string& why) {
  service_.options.refused("a trainer on this host", why);
  stop();
}

}  // namespace

struct ShmHost::State {
  Server& server;
  BackgroundQueue& slow;
  ShmHostOptions options;
  mutable std::mutex mutex;  // guards what follows
  std::condition_variable changed;
  std::list<std::shared_ptr<Connection>> connections;
  bool stopped = false;
  std::thread reaper;

  State(Server& of, BackgroundQueue& queue, ShmHostOptions in_options)
      : server(of), slow(queue), options(std::move(in_options)), reaper([this] { reap(); }) {}

  void notify() {
    const std::lock_guard lock(mutex);
    changed.notify_all();
  }
  void reap();
};

// Ends the threads of trainers that are gone, and gives their memory back.
// Shows the others that this process runs.
void ShmHost::State::reap() {
  const auto is_over = [](const auto& connection) { return connection->has_ended(); };
  const auto has_work = [&] { return stopped || std::ranges::any_of(connections, is_over); };
  std::unique_lock lock(mutex);
  for (;;) {
    if (connections.empty()) changed.wait(lock, [&] { return stopped || !connections.empty(); });
    const bool woken = changed.wait_for(lock, kBeat, has_work);
    if (stopped) return;
    for (const auto& connection : connections) connection->beat();
    if (!woken) continue;
    std::list<std::shared_ptr<Connection>> over;
    for (auto at = connections.begin(); at != connections.end();) {
      const auto one = at++;
      if (is_over(*one)) over.splice(over.end(), connections, one);
    }
    lock.unlock();
    for (const auto& connection : over) connection->join();
    over.clear();
    lock.lock();
  }
}

ShmHost::ShmHost(Server& server, BackgroundQueue& slow, ShmHostOptions options)
    : state_(std::make_unique<State>(server, slow, std::move(options))) {
  if (state_->options.lost) return;
  state_->options.lost = [&server](const wire::Header& attended) {
    server.lost(attended.trainer, attended.incarnation, attended.sequence);
  };
}

ShmHost::~ShmHost() {
  stop();
}

void ShmHost::admit(UniqueFd socket) {
  const auto refuse = [this](const std::string& peer, const std::string& why) {
    state_->options.refused(peer, why);
  };
  if (!is_same_user(socket.value()))
    return refuse("another user's process", "memory is shared with processes of the server's own user");
  const std::lock_guard lock(state_->mutex);
  if (state_->stopped) return;
  if (const std::size_t count = state_->connections.size(); count >= state_->options.max_trainers)
    return refuse("a trainer on this host",
                  "memory is shared with " + std::to_string(count) + " trainers already");
  auto connection = std::make_shared<Connection>(
      Service{state_->server, state_->slow, state_->options, [state = state_.get()] { state->notify(); }},
      std::move(socket));
  connection->start();
  state_->connections.push_back(std::move(connection));
  state_->changed.notify_all();
}

std::size_t ShmHost::trainers() const {
  const std::lock_guard lock(state_->mutex);
  return state_->connections.size();
}

void ShmHost::cut_off() {
  const std::lock_guard lock(state_->mutex);
  for (const auto& connection : state_->connections) connection->cut_off();
}

void ShmHost::stop() {
  std::list<std::shared_ptr<Connection>> all;
  {
    const std::lock_guard lock(state_->mutex);
    state_->stopped = true;
    state_->changed.notify_all();
    all.swap(state_->connections);
  }
  for (const auto& connection : all) connection->stop();
  for (const auto& connection : all) connection->join();
  for (const auto& connection : all) connection->wait_for_answers();
  if (state_->reaper.joinable()) state_->reaper.join();
}

}  // namespace fleetrun::ps
