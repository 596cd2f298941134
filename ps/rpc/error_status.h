// How an Error of the server travels in a gRPC status: its text is the status message, the rest is in the
// details,
//
//   "fleetrun error\n" kind "\n" hint "\n" context "\n" context ...
//
// which tells it from an error that gRPC itself reports.
#pragma once

#include <optional>
#include <string>

#include "runtime/base/error.h"

namespace fleetrun::ps {

/// Long texts are cut: a status travels in headers, which gRPC limits to 8 KiB.
struct ErrorTexts {
  std::string message;
  std::string details;
};
ErrorTexts to_texts(const Error& error);
/// The Error, or nothing when the details are not of to_texts().
std::optional<Error> error_from(const ErrorTexts& texts);

}  // namespace fleetrun::ps
