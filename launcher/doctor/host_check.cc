#include "launcher/doctor/host_check.h"

#include <nlohmann/json.hpp>

#include "runtime/base/error.h"
#include "runtime/base/json_text.h"

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

json host_check_json(const HostCheck& host_check) {
  json value = {{"version", host_check.version},
                {"host_name", host_check.host_name},
                {"own_name", host_check.own_name},
                {"addresses", host_check.addresses},
                {"names", host_check.names},
                {"clock_ns", host_check.clock_ns},
                {"clock_synchronized", host_check.clock_synchronized},
                {"cores", host_check.cores},
                {"devices", host_check.devices},
                {"unusable_devices", host_check.unusable_devices},
                {"has_rdma", host_check.has_rdma},
                {"limits", host_check.limits},
                {"directory", host_check.directory},
                {"secret", host_check.secret},
                {"secret_failure", host_check.secret_failure}};
  if (host_check.master) value["master"] = *host_check.master;
  return value;
}

template <class Read>
auto reading(std::string_view text, Read read) {
  try {
    return read(parse_json<json>(text));
  } catch (const json::exception&) {
    throw Error(ErrorKind::data, "malformed report from a host's doctor",
                "install the same version on every host");
  }
}

}  // namespace

std::string to_json(const HostCheck& host_check) {
  return json_text(host_check_json(host_check));
}

std::string to_json(const Questions& questions) {
  return json_text(json(questions));
}

HostCheck host_check_from_json(std::string_view text) {
  return reading(text, [](const json& value) {
    HostCheck host_check;
    value.at("version").get_to(host_check.version);
    value.at("host_name").get_to(host_check.host_name);
    value.at("own_name").get_to(host_check.own_name);
    value.at("addresses").get_to(host_check.addresses);
    value.at("names").get_to(host_check.names);
    value.at("clock_ns").get_to(host_check.clock_ns);
    value.at("clock_synchronized").get_to(host_check.clock_synchronized);
    value.at("cores").get_to(host_check.cores);
    value.at("devices").get_to(host_check.devices);
    value.at("unusable_devices").get_to(host_check.unusable_devices);
    value.at("has_rdma").get_to(host_check.has_rdma);
    value.at("limits").get_to(host_check.limits);
    value.at("directory").get_to(host_check.directory);
    value.at("secret").get_to(host_check.secret);
    value.at("secret_failure").get_to(host_check.secret_failure);
    if (value.contains("master")) host_check.master = value["master"].get<MasterFacts>();
    return host_check;
  });
}

Questions questions_from_json(std::string_view text) {
  return reading(text, [](const json& value) { return value.get<Questions>(); });
}

}  // namespace fleetrun::launcher::doctor
