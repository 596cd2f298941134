// Tables and errors for the tests of ps/.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "ps/base/table_config.h"
#include "runtime/base/error.h"

namespace fleetrun::tests {

inline ps::TableConfig sparse_table(std::uint32_t id, std::string name, std::uint64_t width,
                                    ps::UpdateRule::Kind rule = ps::UpdateRule::Kind::sum) {
  ps::TableConfig config;
  config.id = id;
  config.name = std::move(name);
  config.kind = ps::TableConfig::Kind::sparse;
  config.width = width;
  config.rule.kind = rule;
  config.rule.learning_rate = 0.5f;
  return config;
}

inline ps::TableConfig dense_table(std::uint32_t id, std::string name, std::uint64_t width,
                                   ps::UpdateRule::Kind rule = ps::UpdateRule::Kind::sum) {
  ps::TableConfig config = sparse_table(id, std::move(name), width, rule);
  config.kind = ps::TableConfig::Kind::dense;
  return config;
}

/// One with moments, one that is split over the servers, and one that counts its pushes.
inline const std::vector<ps::TableConfig>& three_tables() {
  static const std::vector<ps::TableConfig> tables{sparse_table(0, "emb", 1, ps::UpdateRule::Kind::adam),
                                                   dense_table(1, "fc", 2), sparse_table(2, "count", 1)};
  return tables;
}

/// The Error that `action` throws, or one that says that there was none.
inline Error error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error;
  }
  return Error(ErrorKind::usage, "no error");
}

inline std::string text_of(const std::function<void()>& action) {
  return error_of(action).what();
}

}  // namespace fleetrun::tests
