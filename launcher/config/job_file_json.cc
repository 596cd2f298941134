#include <nlohmann/json.hpp>

#include <functional>
#include <set>

#include "launcher/config/job_file_node.h"
#include "runtime/base/error.h"
#include "runtime/base/json_text.h"
#include "runtime/base/text.h"

namespace fleetrun::launcher {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kDeepest = 32;
constexpr std::size_t kMostKeys = 1024;  // in one object, whose keys are searched one after the other

/// Looks on while JSON is read, and refuses what nobody means. nlohmann keeps the last of two equal keys; a
/// person who wrote both means something else.
class Watch {
 public:
  explicit Watch(const std::string& name) : name_(name) {}

  bool operator()(int depth, Json::parse_event_t event, Json& parsed) {
    if (depth > kDeepest)
      throw Error(ErrorKind::config, name_ + ": there are more than " + std::to_string(kDeepest) + " levels");
    if (event == Json::parse_event_t::object_start) open_.emplace_back();
    if (event == Json::parse_event_t::object_end) open_.pop_back();
    if (event == Json::parse_event_t::key) {
      const std::string key = parsed.get<std::string>();
      auto& keys = open_.back();
      if (keys.size() == kMostKeys)
        throw Error(ErrorKind::config,
                    name_ + ": one object has more than " + std::to_string(kMostKeys) + " keys");
      if (!keys.insert(key).second && twin_.empty()) twin_ = key;
    }
    return true;
  }
  const std::string& twin() const { return twin_; }

 private:
  const std::string& name_;
  std::vector<std::set<std::string>> open_;
  std::string twin_;
};

JobFileNode convert(const Json& json, const std::string& name, const std::string& path) {
  JobFileNode node;
  node.where = path.empty() ? name : name + ": " + path;
  if (json.is_object()) {
    node.kind = JobFileNode::Kind::table;
    for (const auto& [key, value] : json.items())
      node.fields.push_back({key, convert(value, name, path.empty() ? key : path + "." + key)});
  } else if (json.is_array()) {
    node.kind = JobFileNode::Kind::list;
    for (std::size_t i = 0; i < json.size(); ++i)
      node.items.push_back(convert(json[i], name, path + "[" + std::to_string(i) + "]"));
  } else if (json.is_string()) {
    node.kind = JobFileNode::Kind::text;
    node.text = json.get<std::string>();
  } else if (json.is_boolean()) {
    node.kind = JobFileNode::Kind::boolean;
    node.text = json.get<bool>() ? "True" : "False";
  } else if (json.is_number()) {
    node.kind = JobFileNode::Kind::number;
    node.text = json_text(json);
  }
  return node;
}

/// "line 3, column 7: …" out of nlohmann's sentence; a number beyond all has no place in it.
std::string fault_of(const std::string& what) {
  const std::size_t line = what.find("line "), end_of_name = what.find("] ");
  if (line != std::string::npos) return printable(what.substr(line));
  return printable(end_of_name == std::string::npos ? what : what.substr(end_of_name + 2));
}

}  // namespace

JobFileNode parse_json(const std::string& text, const std::string& name) {
  Watch watch(name);
  try {
    const Json json = Json::parse(text, std::ref(watch));
    if (!watch.twin().empty())
      throw Error(ErrorKind::config,
                  name + ": the key '" + printable(watch.twin()) + "' is there twice in one object",
                  "leave one of them out");
    return convert(json, name, "");
  } catch (const Json::exception& error) {
    throw Error(ErrorKind::config, name + ": this is not JSON: " + fault_of(error.what()));
  }
}

}  // namespace fleetrun::launcher
