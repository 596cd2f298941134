// Takes secrets out of what leaves a job: its record and its report. Pure.
//
// Hidden are, wherever they stand,
//   - values of variables and flags whose name says so (…TOKEN, …SECRET, …PASSWORD, …API_KEY, …CREDENTIAL)
//   - what follows such a name in text: "password=x", "token: x", "Authorization: Bearer x"
//   - user and password in addresses: scheme://user:password@host
//   - tokens of known shapes (AKIA…, ghp_…, hf_…, sk-…, eyJ…), and private keys in PEM
// A secret that has no such sign, and no such name anywhere, is not known to be one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/environ.h"

namespace fleetrun::launcher {

/// What stands in a secret's place.
constexpr std::string_view kHidden = "[hidden]";

/// "WANDB_API_KEY", "db-password": does a value of this name have to be hidden?
bool names_a_secret(std::string_view name);

class Redactor {
 public:
  /// Learns the values of variables whose names say that they are secrets.
  void learn(const Environ& environment);
  /// Learns the values of flags, "--token=x" and "--token x".
  void learn(const std::vector<std::string>& arguments);

  std::string clean(std::string_view text) const;

 private:
  void add(std::string_view secret);
  std::vector<std::string> secrets_;  // the longest first
};

}  // namespace fleetrun::launcher
