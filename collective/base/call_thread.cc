#include "collective/base/call_thread.h"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>

#include "runtime/base/error_copy.h"

namespace fleetrun::collective {
namespace {

struct Task {
  Call call;
  std::atomic<bool> has_ended = false;
  std::optional<Error> error;  // set before it has ended
};

}  // namespace

struct CallThread::State {
  std::function<void(const Call&)> run;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::shared_ptr<Task>> tasks;  // the first one is under way
  std::atomic<std::size_t> pending = 0;
  bool is_ending = false;
  std::thread thread;

  void work();
  void wait_for(const Task& task) {
    if (task.has_ended.load(std::memory_order_acquire)) return;
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return task.has_ended.load(); });
  }
};

namespace {

std::optional<Error> error_of(const std::function<void(const Call&)>& run, const Call& call) {
  try {
    run(call);
    return std::nullopt;
  } catch (const Error& error) {
    return separate_copy(error);
  } catch (const std::exception& error) {
    return Error(ErrorKind::host, std::string(error.what()));
  }
}

}  // namespace

void CallThread::State::work() {
  std::unique_lock lock(mutex);
  for (;;) {
    changed.wait(lock, [&] { return is_ending || !tasks.empty(); });
    if (tasks.empty()) return;
    const std::shared_ptr<Task> task = tasks.front();
    lock.unlock();
    task->error = error_of(run, task->call);
    lock.lock();
    tasks.pop_front();
    pending.store(tasks.size(), std::memory_order_release);
    task->has_ended.store(true, std::memory_order_release);
    changed.notify_all();
  }
}

namespace {

template <class State>
class StartedWork : public Work {
 public:
  StartedWork(std::shared_ptr<State> state, std::shared_ptr<Task> task)
      : state_(std::move(state)), task_(std::move(task)) {}
  ~StartedWork() override { state_->wait_for(*task_); }

  bool has_ended() const noexcept override { return task_->has_ended.load(std::memory_order_acquire); }
  void wait() override {
    state_->wait_for(*task_);
    if (task_->error) throw separate_copy(*task_->error);
  }

 private:
  std::shared_ptr<State> state_;
  std::shared_ptr<Task> task_;
};

}  // namespace

CallThread::CallThread(std::function<void(const Call&)> run) : state_(std::make_shared<State>()) {
  state_->run = std::move(run);
}

CallThread::~CallThread() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->is_ending = true;
    state_->changed.notify_all();
  }
  if (state_->thread.joinable()) state_->thread.join();
}

std::unique_ptr<Work> CallThread::start(const Call& call) {
  auto task = std::make_shared<Task>();
  task->call = call;
  if (!state_->thread.joinable()) state_->thread = std::thread([state = state_.get()] { state->work(); });
  {
    const std::lock_guard lock(state_->mutex);
    state_->tasks.push_back(task);
    state_->pending.store(state_->tasks.size(), std::memory_order_release);
    state_->changed.notify_all();
  }
  return std::make_unique<StartedWork<State>>(state_, std::move(task));
}

bool CallThread::is_idle() const noexcept {
  return state_->pending.load(std::memory_order_acquire) == 0;
}

void CallThread::finish() noexcept {
  if (is_idle()) return;
  std::unique_lock lock(state_->mutex);
  state_->changed.wait(lock, [&] { return state_->tasks.empty(); });
}

}  // namespace fleetrun::collective
