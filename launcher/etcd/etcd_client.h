// Asks an etcd cluster, through whichever of its members answers. On the given loop, without blocking.
//
// A question goes to the member that answered last; where nothing comes, or that member cannot answer now, to
// the next one, and after all of them again after a pause (random, growing to a second), until its patience
// is over. It may thereby reach etcd twice: questions have to be such that this does no harm. With a user,
// etcd's token is got first and renewed when it is refused. Connections are plain TCP: etcd sees no secret of
// a job, but whoever can listen sees the etcd password; TLS to etcd is left to a proxy beside it.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "launcher/etcd/etcd_messages.h"
#include "launcher/net/etcd_address.h"

namespace boost::asio {
class io_context;
}

namespace fleetrun::launcher {

struct EtcdReply {
  std::optional<EtcdFailure> failure;
  std::string body;  // where there is none
};

struct EtcdTimes {
  std::chrono::milliseconds attempt{1000};  // for one member to answer
  std::chrono::milliseconds min_pause{20}, max_pause{1000};
};

/// Something under way, which ends with its handle: nothing is told afterwards.
class EtcdActivity {
 public:
  virtual ~EtcdActivity() = default;
};

class EtcdClient {
 public:
  virtual ~EtcdClient() = default;
  /// `done` is called once, from the loop; with Kind::unavailable when the patience is over.
  virtual std::unique_ptr<EtcdActivity> ask(EtcdRequest request, std::chrono::milliseconds patience,
                                            std::function<void(const EtcdReply&)> done) = 0;
  /// One attempt at a stream: `on_line` for each line of its answer, then `on_end` once.
  virtual std::unique_ptr<EtcdActivity> listen(EtcdRequest request,
                                               std::function<void(std::string_view)> on_line,
                                               std::function<void(const EtcdFailure&)> on_end) = 0;
  /// From now on another member is asked first: this one has told old news.
  virtual void turn_away() noexcept = 0;
  /// For people, without the login: "etcd://h1:2379".
  virtual const std::string& shown() const noexcept = 0;
};

/// The client has to outlive what it started.
std::unique_ptr<EtcdClient> make_etcd_client(boost::asio::io_context& loop, EtcdAddress address,
                                             EtcdTimes times = {});

}  // namespace fleetrun::launcher
