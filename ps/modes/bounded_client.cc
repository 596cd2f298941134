#include "ps/modes/bounded_client.h"

#include <map>
#include <mutex>
#include <utility>

#include "ps/client/forwarding_client.h"

namespace fleetrun::ps {

namespace {

class BoundedClient final : public ForwardingClient {
 public:
  BoundedClient(std::unique_ptr<Client> servers, std::uint64_t bound, bool has_rows)
      : ForwardingClient(std::move(servers)), bound_(bound), has_rows_(has_rows) {}

  std::unique_ptr<Pending> pull_async(const Pull& request) override {
    if (request.thread != kNoThread && !(has_rows_ ? request.sparse.empty() : request.dense.empty())) {
      std::uint64_t step = 0;
      {
        const std::lock_guard lock(mutex_);
        step = steps_[request.thread]++;
      }
      to().keep_pace(request.thread, step, bound_);
    }
    return ForwardingClient::pull_async(request);
  }

  void leave_epoch(std::uint32_t thread) override {
    {
      const std::lock_guard lock(mutex_);
      steps_.erase(thread);
    }
    to().keep_pace(thread, kLeavesBound, 0);
    ForwardingClient::leave_epoch(thread);
  }

 private:
  const std::uint64_t bound_;
  const bool has_rows_;
  std::mutex mutex_;  // guards what follows
  std::map<std::uint32_t, std::uint64_t> steps_;
};

}  // namespace

std::unique_ptr<Client> make_bounded_client(std::unique_ptr<Client> servers, std::uint64_t bound,
                                            bool has_rows) {
  return std::make_unique<BoundedClient>(std::move(servers), bound, has_rows);
}

}  // namespace fleetrun::ps
