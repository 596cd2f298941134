#include "runtime/python/interrupt.h"

#include <pybind11/pybind11.h>

#include <chrono>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

namespace fleetrun::python {

namespace {

namespace py = pybind11;

/// How soon a signal is seen, and how long cancelled work may take to end.
constexpr std::chrono::milliseconds kSignalPeriod{50};
constexpr std::chrono::seconds kCancelPatience{5};

class Task {
 public:
  void run(const std::function<void()>& work) noexcept {
    try {
      work();
    } catch (...) {
      error_ = std::current_exception();
    }
    const std::lock_guard lock(mutex_);
    done_ = true;
    changed_.notify_all();
  }

  bool wait_for(std::chrono::milliseconds time) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, time, [this] { return done_; });
  }

  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
  std::exception_ptr error_;
};

bool wait_without_gil(Task& task, std::chrono::milliseconds time) {
  const py::gil_scoped_release release;
  return task.wait_for(time);
}

}  // namespace

bool gets_signals() {
  const py::module_ threading = py::module_::import("threading");
  return threading.attr("current_thread")().is(threading.attr("main_thread")());
}

void run_interruptibly(std::function<void()> work, const std::function<void()>& cancel) {
  if (!gets_signals()) {
    const py::gil_scoped_release release;
    return work();
  }
  const auto task = std::make_shared<Task>();
  std::thread thread([task, work = std::move(work)] { task->run(work); });
  while (!wait_without_gil(*task, kSignalPeriod)) {
    if (PyErr_CheckSignals() == 0) continue;
    py::error_already_set raised;
    if (cancel) {
      const py::gil_scoped_release release;
      cancel();
    }
    if (cancel && wait_without_gil(*task, kCancelPatience)) {
      thread.join();
    } else {
      thread.detach();
      py::module_::import("fleetrun._interrupt").attr("leave_at_exit")();
    }
    throw raised;
  }
  thread.join();
  task->rethrow();
}

}  // namespace fleetrun::python
