// What the job's store knows, and what it answers: no I/O. collective/store/tcp_store.h serves it.
//
//   message   u8 kind │ u64 id │ i64 number │ u32 n, name[n] │ u32 n, value[n]         integers little-endian
//
//   from a client   number         name     value      answered
//   hello           its rank       attempt  the size   at once; refused where the two disagree,
//                                                      or the rank is there already
//   set             –              name     value      at once; refused where it has another value
//   wait            –              name     –          when somebody has set it: the value
//   forget          id of a wait   –        –          never: nobody waits for that answer any more
//   add             amount         name     –          at once: number is the sum
//   gather          1: of the      name     any        when every rank has sent one (1: every rank that has
//                   living                             neither left nor died): all values by rank
//   missing         –              name     –          at once: the ranks that a gather still waits for
//   announce        –              subject  text       never; all others get it as news
//   leave           –              –        –          at once: its end is not a failure from here on
//   to a client
//   answer, refused: the id of what was asked; refused has an ErrorKind in number, what in name,
//                    a hint in value
//   lost, left, announced: news about rank `number`; in value why, of an announcement the text
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/error.h"

namespace fleetrun::collective {

struct StoreMessage {
  enum class Kind : std::uint8_t {
    hello,
    set,
    wait,
    forget,
    add,
    gather,
    missing,
    announce,
    leave,
    answer,
    refused,
    lost,
    left,
    announced,
  };
  Kind kind = Kind::hello;
  std::uint64_t id = 0;
  std::int64_t number = 0;
  std::string name = {}, value = {};

  bool operator==(const StoreMessage&) const = default;
};
constexpr std::size_t kMaxStoreBytes = std::size_t{16} << 20;  // of one message

std::string encode(const StoreMessage& message);
/// Throws: Error(data) for bytes that encode() does not write.
StoreMessage decode_store_message(std::string_view bytes);

/// The values that a gather answers, by rank.
std::string encode_gathered(const std::map<int, std::string>& values);
std::map<int, std::string> decode_gathered(std::string_view bytes);

/// "rank 1, rank 3"
std::string rank_names(const std::vector<int>& ranks);

class StoreState {
 public:
  using Client = std::uint64_t;
  struct Output {
    Client to = 0;
    StoreMessage message = {};

    bool operator==(const Output&) const = default;
  };

  StoreState(int size, std::string attempt) : size_(size), attempt_(std::move(attempt)) {}

  /// What to send. Throws: Error(data) for what no client sends; its connection is then to be closed.
  std::vector<Output> receive(Client client, const StoreMessage& message);
  /// Of a client whose connection has ended; `why`, for the others: "its process has ended".
  std::vector<Output> end(Client client, const std::string& why);

 private:
  struct Gathering {
    bool of_living = false;
    std::map<int, std::string> values;
    std::map<int, std::pair<Client, std::uint64_t>> asking;
  };
  struct Waiting {
    Client client;
    std::uint64_t id;
  };

  void greet(Client client, const StoreMessage& message);
  void set(Client client, const StoreMessage& message);
  void gather(Client client, int rank, const StoreMessage& message);
  void part(int rank, StoreMessage::Kind how, const std::string& why);
  void complete(const std::string& name);
  std::vector<int> missing(const std::string& name) const;
  void answer(Client client, std::uint64_t id, std::string value = {}, std::int64_t number = 0);
  void refuse(Client client, std::uint64_t id, const Error& error);

  const int size_;
  const std::string attempt_;
  std::map<Client, int> ranks_;
  std::map<int, Client> clients_;
  std::set<int> gone_;  // lost or left
  std::map<int, std::string> lost_;
  std::map<std::string, std::string> values_;
  std::map<std::string, std::int64_t> sums_;
  std::map<std::string, std::vector<Waiting>> waiting_;
  std::map<std::string, Gathering> gatherings_;
  std::vector<Output> outputs_;
};

}  // namespace fleetrun::collective
