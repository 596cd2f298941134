// The error that an action ends with, for tests that look into it.
#pragma once

#include <doctest/doctest.h>

#include <functional>
#include <string>

#include "runtime/base/error.h"

namespace fleetrun::tests {

/// The test fails where there is none.
inline Error error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error;
  }
  FAIL("no error");
  return Error(ErrorKind::data, "");
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace fleetrun::tests
