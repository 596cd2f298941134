#include "launcher/cluster/job_secret.h"

#include "runtime/base/error.h"
#include "runtime/base/text.h"
#include "runtime/secure/job_secret_file.h"

namespace fleetrun::launcher {

Secret rendezvous_secret(const JobConfig& config, const Environ& environment, std::string& where) {
  const Rendezvous& rendezvous = config.rendezvous;
  if (!rendezvous.secret.empty()) {
    where = "what its launcher was handed";
    return Secret::from_bytes(rendezvous.secret);
  }
  if (rendezvous.secret_file) where = *rendezvous.secret_file;
  const Secret stored = rendezvous.secret_file ? read_secret_file(where) : user_secret(environment, where);
  const std::string job = job_of_secret_file(where);
  if (job.empty()) return secret_of_job(stored, config.job_id);
  if (job == config.job_id) return stored;
  throw Error(ErrorKind::config,
              where + " has the secret of job " + printable(job) + " alone, and this is job " +
                  printable(config.job_id),
              "give the secret of this job, which `fleetrun secret --job " + shell_quoted(config.job_id) +
                  "` prints where the user's own is");
}

Secret job_secret(const JobConfig& config, const Environ& environment, const std::string& run) {
  std::string where;
  return rendezvous_secret(config, environment, where).derive("job:" + run);
}

}  // namespace fleetrun::launcher
