// A library that is loaded when it is needed, not when the program starts.
#pragma once

#include <dlfcn.h>

#include <string>

#include "runtime/base/error.h"

namespace fleetrun {

/// As dlopen() finds it in the system, or else beside the program, where it may have travelled with it.
/// nullptr: neither.
void* open_library(const char* name) noexcept;

/// Stays loaded until the process ends: libraries with threads or exit handlers
/// of their own cannot be unloaded safely.
class SharedLibrary {
 public:
  /// `needed_for` begins the error's sentence, `hint` says what to install.
  /// Throws: Error(host) when there is no such library.
  SharedLibrary(const char* name, const std::string& needed_for, std::string hint)
      : name_(name), hint_(std::move(hint)), handle_(open_library(name)) {
    if (handle_) return;
    const char* why = ::dlerror();
    throw Error(ErrorKind::host, needed_for + " needs " + name_ + ": " + (why ? why : "it cannot be loaded"),
                hint_);
  }

  /// The library's own function of the name and type that its header declares. Throws: Error(host).
  template <class Function>
  Function* find(const char* name) const {
    if (Function* found = find_optional<Function>(name)) return found;
    throw Error(ErrorKind::host, name_ + " has no " + name, hint_);
  }

  /// nullptr where this version of the library lacks it.
  template <class Function>
  Function* find_optional(const char* name) const noexcept {
    return reinterpret_cast<Function*>(::dlsym(handle_, name));
  }

 private:
  std::string name_, hint_;
  void* handle_;
};

}  // namespace fleetrun
