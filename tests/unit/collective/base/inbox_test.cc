#include "collective/base/inbox.h"

#include <doctest/doctest.h>

#include <array>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "collective/cpu/shared_communicator.h"

namespace fleetrun::collective {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using Bytes = std::vector<std::byte>;

constexpr std::size_t kSmall = 100, kLarge = 3'000'000;  // larger than what a sender's buffers take

Bytes bytes_of(std::size_t size, std::size_t first) {
  Bytes bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(first + i);
  return bytes;
}

/// An inbox, and ranks 0 and 1 of a job that send to it.
struct Office {
  Office() {
    for (int source = 0; source < 2; ++source) {
      CHECK(inbox.claim(source));
      CHECK_FALSE(inbox.claim(source));
      readers[at(source)] = std::thread([this, source] { inbox.serve(source, *pairs[at(source)][1]); });
    }
  }
  ~Office() {
    inbox.close();
    for (const auto& pair : pairs) pair[1]->abort(Error(ErrorKind::network, "it is closed"));
    for (std::thread& reader : readers) reader.join();
  }

  static std::size_t at(int source) { return static_cast<std::size_t>(source); }
  void send(int source, const Bytes& message, std::int64_t tag) {
    Communicator& out = *pairs[at(source)][0];
    const MessageParts parts = parts_of(message, tag);
    collective::send(out, {parts.front.data(), parts.front.size(), DataType::uint8}, 1);
    if (!parts.rest.empty())
      collective::send(out, {parts.rest.data(), parts.rest.size(), DataType::uint8}, 1);
  }
  bool ends(const Inbox::Posted& receive) { return inbox.wait(*receive, Clock::now() + 60s); }

  Inbox inbox{"group 3"};
  std::array<std::vector<std::unique_ptr<Communicator>>, 2> pairs{make_thread_communicators("from 0", 2),
                                                                  make_thread_communicators("from 1", 2)};
  std::array<std::thread, 2> readers;
};

TEST_CASE("messages come by tag and source, whatever their order and size, posted before or after") {
  Office office;
  for (const std::size_t size : {std::size_t{0}, kSmall, std::size_t{4096}, std::size_t{4097}, kLarge}) {
    CAPTURE(size);
    Bytes last(size), first(size), from_any(size);
    const auto posted = office.inbox.post(last, 0, 2);
    std::thread sender([&] {
      for (std::int64_t tag = 1; tag <= 2; ++tag)
        office.send(0, bytes_of(size, static_cast<std::size_t>(tag)), tag);
      office.send(1, bytes_of(size, 9), 9);
    });
    CHECK(office.ends(posted));
    CHECK(last == bytes_of(size, 2));
    const auto later = office.inbox.post(first, std::nullopt, 1);
    CHECK(office.ends(later));
    CHECK(later->sender == 0);
    CHECK(first == bytes_of(size, 1));
    const auto any = office.inbox.post(from_any, std::nullopt, 9);
    CHECK(office.ends(any));
    CHECK(any->sender == 1);
    CHECK(from_any == bytes_of(size, 9));
    sender.join();
  }
}

TEST_CASE("the bytes are kept until the message is in them, also where nobody has the receive any more") {
  Office office;
  auto bytes = std::make_shared<Bytes>(kSmall);
  const std::weak_ptr<Bytes> kept = bytes;
  const std::span place = *bytes;
  office.inbox.post(place, 0, 1, std::move(bytes));
  CHECK_FALSE(kept.expired());
  Bytes next(1);
  const auto later = office.inbox.post(next, 0, 2);
  office.send(0, bytes_of(kSmall, 1), 1);
  office.send(0, bytes_of(1, 1), 2);
  CHECK(office.ends(later));
  CHECK(kept.expired());
}

TEST_CASE("a receive of another size fails by itself, and one that is withdrawn gets nothing") {
  Office office;
  Bytes three(3), four(4);
  const auto withdrawn = office.inbox.post(four, 0, 5);
  CHECK_FALSE(office.inbox.wait(*withdrawn, Clock::now()));
  CHECK(office.inbox.withdraw(withdrawn));
  CHECK_FALSE(office.inbox.withdraw(withdrawn));
  const auto other_size = office.inbox.post(three, 0, 5), right = office.inbox.post(four, 0, 5);
  office.send(0, bytes_of(4, 1), 5);
  office.send(0, bytes_of(4, 2), 5);
  CHECK(office.ends(other_size));
  REQUIRE(other_size->error);
  CHECK(std::string(other_size->error->what()) == "rank 0 sends 4 bytes with tag 5, and 3 are received");
  CHECK(office.ends(right));
  CHECK_FALSE(right->error);
  CHECK(four == bytes_of(4, 2));
}

TEST_CASE("who waits for a source that fails is told, and the source can be served again") {
  Office office;
  Bytes bytes(4);
  const auto lost = office.inbox.post(bytes, 0, 1), any = office.inbox.post(bytes, std::nullopt, 1);
  const auto other = office.inbox.post(bytes, 1, 1);
  office.pairs[0][0]->abort(Error(ErrorKind::network, "rank 0 has died"));
  for (const auto& receive : {lost, any}) {
    CHECK(office.ends(receive));
    REQUIRE(receive->error);
    CHECK(std::string(receive->error->what()) == "rank 0 has died");
  }
  CHECK_FALSE(other->has_ended);
  CHECK(office.inbox.claim(0));
  office.send(1, bytes_of(4, 3), 1);
  CHECK(office.ends(other));
  CHECK(bytes == bytes_of(4, 3));
}

}  // namespace
}  // namespace fleetrun::collective
