// Long C++ calls under Python: other Python threads run meanwhile, and Ctrl-C ends them.
#pragma once

#include <functional>

namespace fleetrun::python {

/// Runs `work` on a thread of its own while the calling thread, which holds the GIL before and after,
/// releases it and lets Python handle signals. Throws what `work` throws.
///
/// A signal handler that raises (KeyboardInterrupt) ends the call: `cancel` is called, when there is one, and
/// `work` gets a few seconds to return. Work that does not is left behind: it must own all that it uses, and
/// the process ends without waiting for it (fleetrun/_interrupt.py).
/// On a thread that gets no signals `work` runs on it, without the GIL, which it asks for at the end alone:
/// the interpreter's end does not meet it in between.
void run_interruptibly(std::function<void()> work, const std::function<void()>& cancel = {});

/// Whether this thread is the one on which Python handles signals. Called with the GIL.
bool gets_signals();

}  // namespace fleetrun::python
