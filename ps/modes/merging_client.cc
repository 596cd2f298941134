#include "ps/modes/merging_client.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <future>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "ps/base/outcome.h"
#include "ps/client/forwarding_client.h"
#include "ps/modes/merged_push.h"
#include "runtime/base/error.h"

namespace fleetrun::ps {

namespace {

class SentPending final : public Pending {
 public:
  explicit SentPending(std::future<std::optional<Error>> done) : done_(std::move(done)) {}
  ~SentPending() override {
    if (done_.valid()) done_.wait();
  }
  void wait() override {
    if (const auto error = done_.get()) throw separate_copy(*error);
  }

 private:
  std::future<std::optional<Error>> done_;
};

class MergingClient final : public ForwardingClient {
 public:
  MergingClient(std::unique_ptr<Client> servers, const MergingOptions& options)
      : ForwardingClient(std::move(servers)), options_(options), thread_([this] { work(); }) {}
  ~MergingClient() override {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    changed_.notify_all();
  }

  std::unique_ptr<Pending> push_async(const Push& request) override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return queue_.size() < options_.waiting; });
    Waiting& waiting = queue_.emplace_back();
    waiting.push = request;
    auto pending = std::make_unique<SentPending>(waiting.done.get_future());
    changed_.notify_all();
    return pending;
  }

 private:
  struct Waiting {
    Push push;
    std::promise<std::optional<Error>> done;
  };

  void work() noexcept {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return ending_ || !queue_.empty(); });
      if (queue_.empty()) return;
      std::vector<Waiting> taken;
      const std::size_t most = to().pushes_alone() ? 1 : options_.merged;
      for (std::size_t left = std::min(most, queue_.size()); left > 0; --left) {
        taken.push_back(std::move(queue_.front()));
        queue_.pop_front();
      }
      changed_.notify_all();
      lock.unlock();
      send(taken);
      lock.lock();
    }
  }

  void send(std::vector<Waiting>& taken) noexcept {
    std::optional<Error> error;
    try {
      std::vector<const Push*> pushes;
      for (const Waiting& waiting : taken) pushes.push_back(&waiting.push);
      if (pushes.size() == 1) {
        to().push(*pushes.front());
      } else {
        to().push(MergedPush(pushes, 1.0f).push());
      }
    } catch (const Error& thrown) {
      error = separate_copy(thrown);
    } catch (const std::exception& thrown) {
      error = Error(ErrorKind::host, std::string("pushing failed: ") + thrown.what());
    }
    for (Waiting& waiting : taken)
      waiting.done.set_value(error ? std::optional(separate_copy(*error)) : std::nullopt);
  }

  const MergingOptions options_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::deque<Waiting> queue_;
  bool ending_ = false;
  std::jthread thread_;  // last: it uses all of the above
};

}  // namespace

std::unique_ptr<Client> make_merging_client(std::unique_ptr<Client> servers, const MergingOptions& options) {
  if (options.merged == 0 || options.waiting == 0) {
    throw Error(
        ErrorKind::config,
        "pushes merged: " + std::to_string(options.merged) + ", waiting: " + std::to_string(options.waiting),
        "both must be at least 1");
  }
  return std::make_unique<MergingClient>(std::move(servers), options);
}

}  // namespace fleetrun::ps
