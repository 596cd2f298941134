// The error that ends an epoch whose readers are threads:
// the first one counts, and everyone who asks for batches gets it.
#pragma once

#include <exception>
#include <mutex>
#include <utility>

#include "runtime/base/error.h"

namespace fleetrun::dataset {

/// Threads: any number.
class FirstError {
 public:
  void clear() noexcept {
    const std::lock_guard lock(mutex_);
    error_ = nullptr;
  }
  /// Keeps `error` unless there is one already.
  void put(std::exception_ptr error) noexcept {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = std::move(error);
  }
  /// Throws: the error, if there is one; an Error as a copy, since several consumers may add their context.
  void rethrow() const {
    const std::lock_guard lock(mutex_);
    if (!error_) return;
    try {
      std::rethrow_exception(error_);
    } catch (const Error& error) {
      throw Error(error);
    }
  }

 private:
  mutable std::mutex mutex_;
  std::exception_ptr error_;
};

}  // namespace fleetrun::dataset
