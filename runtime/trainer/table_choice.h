// What a script says about one sparse table beside its optimizer and initializer: the entry of its embedding,
// and the table configuration of the strategy.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "ps/base/table_config.h"

namespace fleetrun::runtime {

struct TableChoice {
  ps::Accessor accessor = {};
  ps::Admission admission = {};
  bool on_disk = false;
  /// Instead of the optimizer's rule and the parameter's initializer.
  std::optional<ps::UpdateRule> rule = {};
  std::optional<ps::Initializer> initializer = {};
  /// Variables of the program with a show and a click for each example;
  /// empty: each looked-up key is one show and no click.
  std::string shows = {};
  std::string clicks = {};
  std::uint16_t slot = 0;
  /// Gradients are multiplied by the number of examples before the push, as Paddle does for its own rules,
  /// whose gradients are then divided by the shows of a key:
  /// the loss is a mean over the batch, the rule's rate one of an example.
  bool times_batch = false;

  bool operator==(const TableChoice&) const = default;
};

/// By parameter.
using TableChoices = std::map<std::string, TableChoice>;

}  // namespace fleetrun::runtime
