#include "runtime/python/interrupt.h"

#include <pybind11/pybind11.h>

#include <utility>

#include "runtime/python/interruptible_thread.h"

namespace fleetrun::python {

bool gets_signals() {
  const auto threading = pybind11::module_::import("threading");
  return threading.attr("current_thread")().is(threading.attr("main_thread")());
}

void run_interruptibly(std::function<void()> work, const std::function<void()>& cancel) {
  InterruptibleThread().run(std::move(work), cancel);
}

}  // namespace fleetrun::python
