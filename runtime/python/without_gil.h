#pragma once

#include <Python.h>
#include <cxxabi.h>
#include <unistd.h>

namespace fleetrun::python {

/// Lets go of the GIL while it lives, as py::gil_scoped_release does, in daemon threads too: where the
/// interpreter has ended meanwhile, CPython before 3.14 ends the thread by pthread_exit(), whose unwinding
/// aborts the process at the first function that throws nothing. The thread sleeps here until all is gone.
class WithoutGil {
 public:
  WithoutGil() : thread_(PyEval_SaveThread()) {}
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

  ~WithoutGil() {
    try {
      PyEval_RestoreThread(thread_);
    } catch (const abi::__forced_unwind&) {
      for (;;) ::pause();
    }
  }

 private:
  PyThreadState* thread_;
};

}  // namespace fleetrun::python
