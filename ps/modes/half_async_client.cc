#include "ps/modes/half_async_client.h"

#include <future>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ps/base/outcome.h"
#include "ps/client/forwarding_client.h"
#include "ps/modes/merged_push.h"
#include "runtime/base/error.h"

namespace fleetrun::ps {

namespace {

/// What a thread waits for. An Error of its own: others may be read at the same time.
class StepPending final : public Pending {
 public:
  explicit StepPending(std::future<std::optional<Error>> done) : done_(std::move(done)) {}
  ~StepPending() override {
    if (done_.valid()) done_.wait();
  }
  void wait() override {
    if (const auto error = done_.get()) throw separate_copy(*error);
  }

 private:
  std::future<std::optional<Error>> done_;
};

class HalfAsyncClient final : public ForwardingClient {
 public:
  using ForwardingClient::ForwardingClient;

  void begin_epoch(const EpochStart& epoch) override {
    ForwardingClient::begin_epoch(epoch);
    const std::lock_guard lock(mutex_);
    threads_.clear();
    for (std::uint32_t thread = 0; thread < epoch.threads; ++thread) threads_.insert(thread);
  }

  void leave_epoch(std::uint32_t thread) override {
    Step step;
    {
      const std::lock_guard lock(mutex_);
      threads_.erase(thread);
      step = take_complete();
    }
    send(std::move(step));
    ForwardingClient::leave_epoch(thread);
  }

  std::unique_ptr<Pending> push_async(const Push& request) override {
    std::unique_ptr<Pending> pending;
    Step step;
    {
      const std::lock_guard lock(mutex_);
      if (!threads_.contains(request.thread)) return ForwardingClient::push_async(request);
      const auto [at, added] = step_.try_emplace(request.thread);
      if (!added) {
        throw Error(ErrorKind::config,
                    "thread " + std::to_string(request.thread) + " pushes twice in one step",
                    "wait for a push before the next one in half_async mode");
      }
      at->second.push = request;
      pending = std::make_unique<StepPending>(at->second.done.get_future());
      step = take_complete();
    }
    send(std::move(step));
    return pending;
  }

 private:
  struct Waiting {
    Push push;
    std::promise<std::optional<Error>> done;
  };
  using Step = std::map<std::uint32_t, Waiting>;

  /// The step when all threads of the epoch have pushed, else an empty one. With the lock held.
  Step take_complete() {
    if (step_.size() < threads_.size()) return {};
    return std::exchange(step_, {});
  }

  void send(Step step) {
    if (step.empty()) return;
    std::optional<Error> error;
    try {
      std::vector<const Push*> pushes;
      for (const auto& [thread, waiting] : step) pushes.push_back(&waiting.push);
      const MergedPush merged(pushes, 1.0f / static_cast<float>(pushes.size()));
      to().push(pushes.size() == 1 ? *pushes.front() : merged.push());
    } catch (const Error& thrown) {
      error = separate_copy(thrown);
    } catch (const std::exception& thrown) {
      error = Error(ErrorKind::host, std::string("pushing a step failed: ") + thrown.what());
    }
    for (auto& [thread, waiting] : step) {
      waiting.done.set_value(error ? std::optional(separate_copy(*error)) : std::nullopt);
    }
  }

  std::mutex mutex_;  // guards what follows
  std::set<std::uint32_t> threads_;
  Step step_;
};

}  // namespace

std::unique_ptr<Client> make_half_async_client(std::unique_ptr<Client> servers) {
  return std::make_unique<HalfAsyncClient>(std::move(servers));
}

}  // namespace fleetrun::ps
