#pragma once

#include <Python.h>
#include <cxxabi.h>
#include <unistd.h>

namespace fleetrun::python {

/// Lets go of the GIL while it lives, as nb::gil_scoped_release does, in daemon threads too: where the
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

/// Holds the GIL while it lives, on any thread; where the interpreter has ended, as above.
class WithGil {
 public:
  WithGil() {
    try {
      state_ = PyGILState_Ensure();
    } catch (const abi::__forced_unwind&) {
      for (;;) ::pause();
    }
  }
  WithGil(const WithGil&) = delete;
  WithGil& operator=(const WithGil&) = delete;
  ~WithGil() { PyGILState_Release(state_); }

 private:
  PyGILState_STATE state_;
};

}  // namespace fleetrun::python
