#include "launcher/cluster/job_secret.h"

namespace fleetrun::launcher {

Secret meeting_secret(const Meeting& meeting, const Environ& environment, std::string& where) {
  if (!meeting.secret.empty()) {
    where = "what its launcher was handed";
    return Secret::from_bytes(meeting.secret);
  }
  if (!meeting.secret_file) return user_secret(environment, where);
  where = *meeting.secret_file;
  return read_secret_file(*meeting.secret_file);
}

Secret job_secret(const Meeting& meeting, const Environ& environment, const std::string& run) {
  std::string where;
  return meeting_secret(meeting, environment, where).derive("job:" + run);
}

}  // namespace fleetrun::launcher
