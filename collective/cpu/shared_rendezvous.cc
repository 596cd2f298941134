// Every message is one packet (SOCK_SEQPACKET): a Hello to rank 0,
// and from it an Answer with the memory's descriptor.
#include "collective/cpu/shared_rendezvous.h"

#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>

#include "runtime/base/error.h"
#include "runtime/base/passed_files.h"
#include "runtime/base/random_bytes.h"
#include "runtime/base/same_user.h"
#include "runtime/secure/crypto.h"

namespace fleetrun::collective {
namespace {

using Clock = Store::Clock;

constexpr std::uint64_t kMagic = 0x3154454d4c4c4f43;  // "COLLMET1"
constexpr std::size_t kTokenBytes = 32, kNameBytes = 16;
/// What a rank waits longer than rank 0, which knows who is missing.
constexpr std::chrono::seconds kLonger{2};

struct Hello {
  std::uint64_t magic = kMagic;
  std::int32_t rank = 0, size = 0;
  unsigned char token[kTokenBytes] = {};
  cpu_set_t cores = {};
};

struct Answer {
  std::uint64_t magic = kMagic;
  std::int32_t kind = -1;  // of an Error; -1: the memory comes with it
  char what[1000] = {};
  char hint[500] = {};
};

std::string hex(std::string_view bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const char c : bytes) {
    text += kDigits[static_cast<unsigned char>(c) >> 4];
    text += kDigits[static_cast<unsigned char>(c) & 15];
  }
  return text;
}

/// The token's digits, as they lie in a Hello.
std::string digest_of(const std::string& token) {
  std::string bytes = token;
  bytes.resize(kTokenBytes);
  return bytes;
}

std::string where(const Place& place) {
  return "group " + place.group + ": ";
}

std::string list(const std::vector<int>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (const int rank : ranks) text += (rank == ranks.front() ? "" : ", ") + std::to_string(rank);
  return text;
}

UniqueFd make_socket() {
  return UniqueFd(check_errno(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), "socket",
                              "meet the ranks of this host"));
}

/// Abstract: the name begins with a zero byte and is in no file system.
socklen_t address_of(const std::string& name, sockaddr_un& address) {
  address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
}

std::optional<ucred> same_user(int socket) {
  const std::optional<ucred> peer = peer_of(socket);
  return peer && peer->uid == ::geteuid() ? peer : std::nullopt;
}

cpu_set_t own_cores() {
  cpu_set_t cores;
  if (::sched_getaffinity(0, sizeof cores, &cores) != 0) CPU_ZERO(&cores);
  return cores;
}

/// Whether one of the files is ready before the deadline. Throws: as Store::check(), for a rank that is lost
/// on its way here is in none of the files.
bool is_ready(std::vector<pollfd>& files, Clock::time_point deadline, Store& store) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    const auto wait = std::clamp(left, std::chrono::milliseconds(0), Store::kLookAgain);
    const int ready = ::poll(files.data(), files.size(), static_cast<int>(wait.count()));
    if (ready > 0) return true;
    store.check();  // after what has come: a rank may have said all it had to say, and left
    if (ready == 0 && wait == left) return false;
  }
}

void send_answer(int socket, Answer answer, int file) noexcept {
  const std::span files(&file, file < 0 ? 0 : 1);
  // Whoever is gone already is found by its connection's end.
  static_cast<void>(send_with_files(socket, std::as_bytes(std::span(&answer, 1)), files));
}

Answer answer_of(const Error& error) {
  Answer answer{.kind = static_cast<std::int32_t>(error.kind())};
  std::string_view(error.what()).copy(answer.what, sizeof answer.what - 1);
  std::string_view(error.hint()).copy(answer.hint, sizeof answer.hint - 1);
  return answer;
}

/// Rank 0, while it waits for the others.
class Host {
 public:
  Host(const Place& place, Store& store, const std::string& name, Clock::time_point deadline)
      : place_(place), store_(store), name_(name), deadline_(deadline) {
    peers_.resize(static_cast<std::size_t>(place.size));
  }

  SharedRendezvous meet(const SharedShape& shape, bool spins) {
    try {
      SharedSegment segment = SharedSegment::make(shape);
      listen();
      cores_ = own_cores();
      while (!missing().empty()) accept_some();
      segment.head().spins = spins && CPU_COUNT(&cores_) >= place_.size ? 1 : 0;
      for (const SharedPeer& peer : peers_)
        if (peer.socket) send_answer(peer.socket.value(), {}, segment.file());
      segment.close_file();
      peers_.erase(peers_.begin());  // itself
      return {std::move(segment), std::move(peers_)};
    } catch (const Error& error) {
      refuse(error);
      throw;
    }
  }

 private:
  void listen() {
    const std::string name = hex(random_bytes(kNameBytes));
    token_ = hex(random_bytes(kTokenBytes / 2));
    listener_ = make_socket();
    sockaddr_un address;
    const socklen_t size = address_of(name, address);
    const std::string doing = "meet the ranks of this host";
    check_errno(::bind(listener_.value(), reinterpret_cast<const sockaddr*>(&address), size), "bind", doing);
    check_errno(::listen(listener_.value(), place_.size + 8), "listen", doing);
    store_.set(name_ + "/memory", "at " + name + " " + token_);
    is_announced_ = true;
  }

  std::vector<int> missing() const {
    std::vector<int> ranks;
    for (int r = 1; r < place_.size; ++r)
      if (!peers_[static_cast<std::size_t>(r)].socket) ranks.push_back(r);
    return ranks;
  }

  /// Waits for the next connection, Hello or end.
  void accept_some() {
    std::vector<pollfd> files = {{listener_.value(), POLLIN, 0}};
    for (const UniqueFd& stranger : strangers_) files.push_back({stranger.value(), POLLIN, 0});
    for (const SharedPeer& peer : peers_) files.push_back({peer.socket.value(), POLLIN, 0});
    if (!is_ready(files, deadline_, store_))
      throw Error(ErrorKind::timeout, where(place_) + list(missing()) + " did not come in time");
    const std::size_t strangers = strangers_.size();
    for (std::size_t r = 0; r < peers_.size(); ++r) {
      // A rank that has said Hello says nothing more: this is its end.
      if (peers_[r].socket && files[1 + strangers + r].revents != 0)
        store_.throw_cause(Error(ErrorKind::network, where(place_) + "rank " + std::to_string(r) +
                                                         " died before all ranks had joined"));
    }
    for (std::size_t s = 0; s < strangers; ++s)
      if (files[1 + s].revents != 0) hear(std::move(strangers_[s]));
    std::erase_if(strangers_, [](const UniqueFd& stranger) { return !stranger; });
    if (files[0].revents != 0) {
      UniqueFd stranger(::accept4(listener_.value(), nullptr, nullptr, SOCK_CLOEXEC));
      if (stranger) strangers_.push_back(std::move(stranger));
    }
  }

  /// Takes a Hello; who does not know the token, or is of another user, is not heard.
  void hear(UniqueFd socket) {
    Hello hello;
    const ssize_t size = ::recv(socket.value(), &hello, sizeof hello, MSG_DONTWAIT);
    const std::optional<ucred> user = same_user(socket.value());
    const std::string_view token(reinterpret_cast<const char*>(hello.token), kTokenBytes);
    if (size != sizeof hello || hello.magic != kMagic || !user ||
        !equal_in_constant_time(token, digest_of(token_)))
      return;
    if (const std::string wrong = wrong_with(hello); !wrong.empty()) {
      const std::string text = where(place_) + "rank " + std::to_string(hello.rank) + wrong;
      send_answer(socket.value(), answer_of(Error(ErrorKind::config, text)), -1);
      throw Error(ErrorKind::config, text);
    }
    peers_[static_cast<std::size_t>(hello.rank)] = {hello.rank, std::move(socket), user->pid};
    CPU_OR(&cores_, &cores_, &hello.cores);
  }

  std::string wrong_with(const Hello& hello) const {
    const std::string size = std::to_string(place_.size);
    if (hello.size != place_.size)
      return " says that there are " + std::to_string(hello.size) + " ranks, rank 0 that there are " + size;
    if (hello.rank < 1 || hello.rank >= place_.size) return " of " + size + " ranks";
    return peers_[static_cast<std::size_t>(hello.rank)].socket ? " came twice" : "";
  }

  /// Tells those that came, and those that will look, why there is no group.
  void refuse(const Error& error) noexcept {
    for (const SharedPeer& peer : peers_)
      if (peer.socket) send_answer(peer.socket.value(), answer_of(error), -1);
    try {
      if (!is_announced_) store_.set(name_ + "/memory", "no " + std::string(error.what()));
    } catch (const Error&) {
      // The others wait until their deadline, then.
    }
  }

  const Place& place_;
  Store& store_;
  const std::string& name_;
  Clock::time_point deadline_;
  std::string token_;
  UniqueFd listener_;
  std::vector<UniqueFd> strangers_;
  std::vector<SharedPeer> peers_;  // by rank
  cpu_set_t cores_;
  bool is_announced_ = false;
};

Error host_gone(const Place& place) {
  return Error(ErrorKind::network, where(place) + "rank 0 died before all ranks had joined");
}

/// What rank 0 answers. Throws: what it refuses with.
UniqueFd receive_answer(const Place& place, Store& store, int socket) {
  Answer answer;
  auto [count, files] = receive_with_files(socket, std::as_writable_bytes(std::span(&answer, 1)), 0);
  if (count != sizeof answer || answer.magic != kMagic) store.throw_cause(host_gone(place));
  answer.what[sizeof answer.what - 1] = answer.hint[sizeof answer.hint - 1] = 0;
  if (answer.kind >= 0) throw Error(static_cast<ErrorKind>(answer.kind), answer.what, answer.hint);
  if (files.size() != 1) store.throw_cause(host_gone(place));
  return std::move(files.front());
}

SharedRendezvous join_host(const Place& place, Store& store, const std::string& name,
                           Clock::time_point deadline) {
  std::string value;
  try {
    value = store.wait(name + "/memory", deadline);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::timeout) throw;
    throw Error(ErrorKind::timeout, where(place) + "rank 0 did not come in time");
  }
  if (value.starts_with("no ")) throw Error(ErrorKind::host, where(place) + "rank 0: " + value.substr(3));
  const std::size_t space = value.find(' ', 3);
  if (!value.starts_with("at ") || space != 3 + 2 * kNameBytes)
    throw Error(ErrorKind::data, where(place) + "the store's " + name + "/memory is not an address");
  UniqueFd socket = make_socket();
  sockaddr_un address;
  const socklen_t size = address_of(value.substr(3, 2 * kNameBytes), address);
  if (::connect(socket.value(), reinterpret_cast<const sockaddr*>(&address), size) != 0)
    store.throw_cause(host_gone(place));
  const std::optional<ucred> user = same_user(socket.value());
  if (!user) throw Error(ErrorKind::config, where(place) + "rank 0 is of another user");
  Hello hello{.rank = place.rank, .size = place.size, .cores = own_cores()};
  std::memcpy(hello.token, digest_of(value.substr(space + 1)).data(), kTokenBytes);
  if (::send(socket.value(), &hello, sizeof hello, MSG_NOSIGNAL) != sizeof hello)
    store.throw_cause(host_gone(place));
  std::vector<pollfd> answer = {{socket.value(), POLLIN, 0}};
  if (!is_ready(answer, deadline + kLonger, store))
    throw Error(ErrorKind::timeout, where(place) + "rank 0 did not answer in time");
  SharedSegment segment = SharedSegment::attach(receive_answer(place, store, socket.value()));
  segment.close_file();
  SharedRendezvous rendezvous{std::move(segment), {}};
  rendezvous.peers.push_back({0, std::move(socket), user->pid});
  return rendezvous;
}

}  // namespace

SharedRendezvous meet_in_memory(const Place& place, Store& store, const std::string& name,
                                const SharedShape& shape, bool spins, Store::Clock::time_point deadline) {
  if (place.rank == 0) return Host(place, store, name, deadline).meet(shape, spins);
  return join_host(place, store, name, deadline);
}

}  // namespace fleetrun::collective
