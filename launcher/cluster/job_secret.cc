#include "launcher/cluster/job_secret.h"

namespace fleetrun::launcher {

Secret rendezvous_secret(const Rendezvous& rendezvous, const Environ& environment, std::string& where) {
  if (!rendezvous.secret.empty()) {
    where = "what its launcher was handed";
    return Secret::from_bytes(rendezvous.secret);
  }
  if (!rendezvous.secret_file) return user_secret(environment, where);
  where = *rendezvous.secret_file;
  return read_secret_file(*rendezvous.secret_file);
}

Secret job_secret(const Rendezvous& rendezvous, const Environ& environment, const std::string& run) {
  std::string where;
  return rendezvous_secret(rendezvous, environment, where).derive("job:" + run);
}

}  // namespace fleetrun::launcher
