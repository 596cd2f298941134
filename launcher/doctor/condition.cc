#include "launcher/doctor/condition.h"

#include <nlohmann/json.hpp>

#include "runtime/base/error.h"

namespace fleetrun::launcher::doctor {

using nlohmann::json;

// Where nlohmann finds them.
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(NameFacts, name, addresses, failure, from)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(DirectoryFacts, exists, writable, shared, free_bytes)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(MasterFacts, ours, busy, failure)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Limits, open_files, most_open_files, processes, locked_bytes,
                                   shared_memory_bytes)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Questions, names, directory, marker, master, secret)

namespace {

json condition_json(const Condition& condition) {
  json value = {{"version", condition.version},
                {"host_name", condition.host_name},
                {"own_name", condition.own_name},
                {"addresses", condition.addresses},
                {"names", condition.names},
                {"clock_ns", condition.clock_ns},
                {"clock_synchronized", condition.clock_synchronized},
                {"cores", condition.cores},
                {"devices", condition.devices},
                {"unusable_devices", condition.unusable_devices},
                {"has_rdma", condition.has_rdma},
                {"limits", condition.limits},
                {"directory", condition.directory},
                {"secret", condition.secret},
                {"secret_failure", condition.secret_failure}};
  if (condition.master) value["master"] = *condition.master;
  return value;
}

/// What comes from another host may be anything.
std::string dumped(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

template <class Read>
auto reading(std::string_view text, Read read) {
  try {
    return read(json::parse(text));
  } catch (const json::exception&) {
    throw Error(ErrorKind::data, "malformed report from a host's doctor",
                "install the same version on every host");
  }
}

}  // namespace

std::string to_json(const Condition& condition) {
  return dumped(condition_json(condition));
}

std::string to_json(const Questions& questions) {
  return dumped(json(questions));
}

Condition condition_from_json(std::string_view text) {
  return reading(text, [](const json& value) {
    Condition condition;
    value.at("version").get_to(condition.version);
    value.at("host_name").get_to(condition.host_name);
    value.at("own_name").get_to(condition.own_name);
    value.at("addresses").get_to(condition.addresses);
    value.at("names").get_to(condition.names);
    value.at("clock_ns").get_to(condition.clock_ns);
    value.at("clock_synchronized").get_to(condition.clock_synchronized);
    value.at("cores").get_to(condition.cores);
    value.at("devices").get_to(condition.devices);
    value.at("unusable_devices").get_to(condition.unusable_devices);
    value.at("has_rdma").get_to(condition.has_rdma);
    value.at("limits").get_to(condition.limits);
    value.at("directory").get_to(condition.directory);
    value.at("secret").get_to(condition.secret);
    value.at("secret_failure").get_to(condition.secret_failure);
    if (value.contains("master")) condition.master = value["master"].get<MasterFacts>();
    return condition;
  });
}

Questions questions_from_json(std::string_view text) {
  return reading(text, [](const json& value) { return value.get<Questions>(); });
}

}  // namespace fleetrun::launcher::doctor
