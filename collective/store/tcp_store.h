// The job's store over TCP: rank 0 serves it at its own endpoint, every rank is a client of it, rank 0 too.
// The connection stays open as long as the rank takes part:
// its end is how all others learn, at once, that the rank has died.
//
// Nothing is polled for: what is waited for is answered when it is there. Both ends prove the job's secret
// (runtime/connect/connector, authenticating_acceptor), and what follows is sealed (sealed_socket).
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "collective/store/store.h"
#include "runtime/connect/access.h"

namespace fleetrun::collective {

/// What a rank hears without having asked.
struct StoreNews {
  enum class Kind { lost, left, announced };
  Kind kind = Kind::lost;
  int rank = 0;
  std::string subject;  // of an announcement
  std::string text;     // lost: why ("its process has ended"); of an announcement: its text
};

struct TcpStoreOptions {
  std::string endpoint;
  int rank = 0;
  int size = 1;
  /// Names this start of the job; ranks of another one are refused.
  std::string attempt = {};
  Access access = {};
  bool shares_port = false;  // StoreServerOptions
  std::chrono::milliseconds meet_within{std::chrono::minutes(5)};
  /// Called from the store's thread, one at a time; not any more when the destructor has returned.
  std::function<void(const StoreNews&)> on_news = {};
  /// Asked while rank 0 is looked for: throws when that is to end.
  std::function<void()> concern = {};
};

class TcpStore : public Store {
 public:
  /// What may end a wait early: throws when it is to end. Asked again after all news, and at kLookAgain.
  using Concern = std::function<void()>;

  /// Throws: Error(network) where rank 0 cannot serve it or does not answer, Error(config) where it has
  /// another secret, size or attempt, or the rank is there already.
  explicit TcpStore(TcpStoreOptions options);
  /// Leaves: the end of this rank is not a failure then.
  ~TcpStore() override;
  TcpStore(const TcpStore&) = delete;
  TcpStore& operator=(const TcpStore&) = delete;

  void set(const std::string& name, const std::string& value) override;
  std::string wait(const std::string& name, Clock::time_point deadline) override;
  std::string wait(const std::string& name, Clock::time_point deadline, const Concern& concern);
  std::int64_t add(const std::string& name, std::int64_t amount) override;

  /// Waits for all ranks (or all that are neither lost nor have left) to come with a value under this name;
  /// all values, by rank. Throws: Error(timeout) naming who did not come by the deadline, Error(network)
  /// naming who died, where all are wanted, or when the store is gone.
  std::map<int, std::string> gather(const std::string& name, const std::string& value, bool of_living,
                                    Clock::time_point deadline, const Concern& concern = {});
  /// Tells all other ranks; does not wait. A store that is gone tells nobody.
  void announce(const std::string& subject, const std::string& text) noexcept;

  /// The address of this process from which it reaches the store: the others reach it there.
  std::string address() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace fleetrun::collective
