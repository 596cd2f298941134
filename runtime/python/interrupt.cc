#include "runtime/python/interrupt.h"

#include <utility>

#include "runtime/python/conversions.h"
#include "runtime/python/interruptible_thread.h"

namespace fleetrun::python {

bool gets_signals() {
  const auto threading = nb::module_::import_("threading");
  return threading.attr("current_thread")().is(threading.attr("main_thread")());
}

void run_interruptibly(std::function<void()> work, const std::function<void()>& cancel) {
  InterruptibleThread().run(std::move(work), cancel);
}

}  // namespace fleetrun::python
