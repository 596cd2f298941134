// The one file that knows toml++.
#include "runtime/base/error.h"

namespace fleetrun::launcher {
[[noreturn]] static void refuse_what_toml_asserts() {
  throw Error(ErrorKind::config, "this is not TOML");
}
}  // namespace fleetrun::launcher

#define TOML_HEADER_ONLY 1
#define TOML_EXCEPTIONS 1
// Version 3.3 asserts, in its parser of keys, what a file may well not hold: "[[[".
#define TOML_ASSERT(expression) ((expression) ? void() : ::fleetrun::launcher::refuse_what_toml_asserts())
#define TOML_ENABLE_UNRELEASED_FEATURES 0
#include <toml++/toml.h>

#include <algorithm>
#include <charconv>

#include "launcher/config/job_file_node.h"
#include "runtime/base/text.h"

namespace fleetrun::launcher {
namespace {

constexpr int kMostDots = 32;  // of a key

/// As few digits as tell the number from all others.
std::string shortest(double number) {
  char text[32];
  return std::string(text, std::to_chars(text, text + sizeof text, number).ptr);
}

std::string place(const std::string& name, const toml::source_region& source) {
  return name + ":" + std::to_string(source.begin.line);
}

/// Where the text ends that a quote at `begin` opens: the place of the last quote, or the end of all.
std::size_t end_of_text(std::string_view text, std::size_t begin) {
  const std::string_view quote = text.substr(begin, 1), three = text.substr(begin, 3);
  const bool is_long = three.size() == 3 && three[1] == quote[0] && three[2] == quote[0];
  const std::string_view end = is_long ? three : quote;
  for (std::size_t i = begin + end.size(); i < text.size(); ++i) {
    if (quote == "\"" && text[i] == '\\')
      ++i;
    else if (text.substr(i).starts_with(end))
      return i + end.size() - 1;
    else if (!is_long && text[i] == '\n')
      return i;
  }
  return text.size();
}

JobFileNode convert(const toml::node& node, const std::string& name);

void convert_into(JobFileNode& result, const toml::table& table, const std::string& name) {
  result.kind = JobFileNode::Kind::table;
  for (const auto& [key, value] : table) {
    result.fields.push_back({std::string(key.str()), convert(value, name)});
    if (result.fields.back().value.where == name + ":0")
      result.fields.back().value.where = place(name, key.source());
  }
}

JobFileNode convert(const toml::node& node, const std::string& name) {
  JobFileNode result;
  result.where = place(name, node.source());
  if (const auto* table = node.as_table()) {
    convert_into(result, *table, name);
  } else if (const auto* array = node.as_array()) {
    result.kind = JobFileNode::Kind::list;
    for (const toml::node& item : *array) result.items.push_back(convert(item, name));
  } else if (const auto* text = node.as_string()) {
    result.kind = JobFileNode::Kind::text;
    result.text = text->get();
  } else if (const auto* truth = node.as_boolean()) {
    result.kind = JobFileNode::Kind::boolean;
    result.text = truth->get() ? "True" : "False";
  } else if (const auto* whole = node.as_integer()) {
    result.kind = JobFileNode::Kind::number;
    result.text = std::to_string(whole->get());
  } else if (const auto* real = node.as_floating_point()) {
    result.kind = JobFileNode::Kind::number;
    result.text = shortest(real->get());
  } else {
    throw Error(ErrorKind::config, result.where + ": dates and times have no meaning here",
                "write it as a text");
  }
  return result;
}

/// How many dots the longest key of `text` has: "a.b.c" is a table in a table, and toml++ makes and frees
/// them by recursion. Values in values it counts itself.
int most_dots(std::string_view text) {
  int most = 0, dots = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '#') i = std::min(text.find('\n', i), text.size());
    if (c == '"' || c == '\'') {
      i = end_of_text(text, i);
    } else if (c == '.') {
      most = std::max(most, ++dots);
    } else if (std::string_view(",=[]{}\n#").find(c) != std::string_view::npos) {
      dots = 0;
    }
  }
  return most;
}

}  // namespace

JobFileNode parse_toml(const std::string& text, const std::string& name) {
  if (most_dots(text) >= kMostDots)
    throw Error(ErrorKind::config, name + ": there are more than " + std::to_string(kMostDots) + " levels");
  JobFileNode root;
  root.where = name;
  try {
    convert_into(root, while_doing("reading " + name, [&] { return toml::parse(text); }), name);
  } catch (const toml::parse_error& error) {
    throw Error(ErrorKind::config,
                place(name, error.source()) + ": this is not TOML: " + printable(error.description()));
  }
  return root;
}

}  // namespace fleetrun::launcher
