#include "runtime/python/interruptible_thread.h"

#include <chrono>
#include <thread>
#include <utility>

#include "runtime/python/conversions.h"
#include "runtime/python/interrupt.h"
#include "runtime/python/without_gil.h"

namespace fleetrun::python {

namespace {

/// How soon a signal is seen, and how long cancelled work may take to end.
constexpr std::chrono::milliseconds kSignalPeriod{50};
constexpr std::chrono::seconds kCancelPatience{5};

}  // namespace

struct InterruptibleThread::State {
  std::mutex mutex;
  std::condition_variable changed;
  std::function<void()> work;
  std::exception_ptr error;
  bool is_idle = true;
  bool is_closed = false;

  void serve() noexcept {
    std::unique_lock lock(mutex);
    while (true) {
      changed.wait(lock, [this] { return work || is_closed; });
      if (!work) return;
      auto taken = std::exchange(work, nullptr);
      lock.unlock();
      std::exception_ptr raised;
      try {
        taken();
      } catch (...) {
        raised = std::current_exception();
      }
      taken = nullptr;  // who waits may end what it refers to
      lock.lock();
      error = std::move(raised);
      is_idle = true;
      changed.notify_all();
    }
  }

  bool wait_without_gil(std::chrono::milliseconds time) {
    const WithoutGil released;
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, time, [this] { return is_idle; });
  }

  void begin(std::function<void()> task) {
    const std::lock_guard lock(mutex);
    work = std::move(task);
    is_idle = false;
    error = nullptr;
    changed.notify_all();
  }

  void close() {
    const std::lock_guard lock(mutex);
    is_closed = true;
    changed.notify_all();
  }
};

InterruptibleThread::~InterruptibleThread() {
  if (state_) state_->close();
}

void InterruptibleThread::run(std::function<void()> work, const std::function<void()>& cancel) {
  if (!gets_signals()) {
    const WithoutGil released;
    return work();
  }
  if (!state_) {
    state_ = std::make_shared<State>();
    std::thread([state = state_] { state->serve(); }).detach();
  }
  state_->begin(std::move(work));
  while (!state_->wait_without_gil(kSignalPeriod)) {
    if (PyErr_CheckSignals() == 0) continue;
    nb::python_error raised;
    if (cancel) {
      const WithoutGil released;
      cancel();
    }
    if (!cancel || !state_->wait_without_gil(kCancelPatience)) {
      std::exchange(state_, nullptr)->close();
      nb::module_::import_("fleetrun._interrupt").attr("leave_at_exit")();
    }
    throw raised;
  }
  if (state_->error) std::rethrow_exception(state_->error);
}

}  // namespace fleetrun::python
