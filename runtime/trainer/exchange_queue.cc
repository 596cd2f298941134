#include "runtime/trainer/exchange_queue.h"

#include <utility>

namespace fleetrun::runtime {

namespace {

class PendingTask final : public ps::Pending {
 public:
  explicit PendingTask(std::future<void> done) : done_(std::move(done)) {}
  ~PendingTask() override {
    if (done_.valid()) done_.wait();
  }
  void wait() override { done_.get(); }

 private:
  std::future<void> done_;
};

}  // namespace

ExchangeQueue::ExchangeQueue(ps::StepClient& client, Track track)
    : client_(client), track_(std::move(track)), thread_([this] { work(); }) {}

ExchangeQueue::~ExchangeQueue() {
  const std::lock_guard lock(mutex_);
  ending_ = true;
  changed_.notify_one();
}

std::unique_ptr<ps::Pending> ExchangeQueue::pull_async(ps::Pull request) {
  return add(Task([this, request = std::move(request)] {
    const Span span(&track_, "pull", "exchange");
    client_.pull(request);
  }));
}

std::unique_ptr<ps::Pending> ExchangeQueue::push_async(ps::Push request) {
  return add(Task([this, request = std::move(request)] {
    const Span span(&track_, "push", "exchange");
    client_.push(request);
  }));
}

std::unique_ptr<ps::Pending> ExchangeQueue::add(Task task) {
  auto pending = std::make_unique<PendingTask>(task.get_future());
  const std::lock_guard lock(mutex_);
  tasks_.push_back(std::move(task));
  changed_.notify_one();
  return pending;
}

void ExchangeQueue::work() noexcept {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return ending_ || !tasks_.empty(); });
    if (tasks_.empty()) return;
    Task task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task();  // an Error goes to whoever waits for it
    track_.flush();
    lock.lock();
  }
}

}  // namespace fleetrun::runtime
