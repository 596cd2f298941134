// A job file as a tree, whichever language it was written in. Every node knows where it stood.
#pragma once

#include <string>
#include <vector>

namespace fleetrun::launcher {

struct JobFileField;

struct JobFileNode {
  enum class Kind { nothing, boolean, number, text, list, table };

  Kind kind = Kind::nothing;
  std::string where;                 // "job.toml:12", "job.json: roles[1].count"
  std::string text;                  // of a boolean ("True"), a number as written, a text
  std::vector<JobFileNode> items;    // of a list
  std::vector<JobFileField> fields;  // of a table, in the file's order where it is known
};

struct JobFileField {
  std::string key;
  JobFileNode value;
};

/// Throws: Error(config) with the place of what the language does not allow.
JobFileNode parse_toml(const std::string& text, const std::string& name);
JobFileNode parse_json(const std::string& text, const std::string& name);

}  // namespace fleetrun::launcher
