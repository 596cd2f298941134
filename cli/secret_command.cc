#include "cli/secret_command.h"

#include <unistd.h>

#include "cli/command_flags.h"
#include "cli/job_choice.h"
#include "runtime/base/error.h"
#include "runtime/base/text.h"
#include "runtime/secure/job_secret_file.h"

namespace fleetrun::cli {
namespace {

constexpr CommandFlag kSecretFlags[] = {
    {"job", 'j', "JOB", "the --job_id of the job; needed"},
    {"secret-file", 0, "FILE", "the secret it is derived from; default: the user's own"},
    {"help", 'h', "", "show this"},
};

constexpr const char* kSecretHelp = R"(usage: fleetrun secret --job JOB [--secret-file FILE]

Prints the secret of one job under --master. A host that has it in a file of mode 0600 takes part in that job
with --secret-file, and in no other; the user's own secret cannot be found from it.

)";

}  // namespace

int run_secret_command(const std::vector<std::string>& arguments, const Environ& environment) {
  const CommandArguments words = parse_command_arguments("secret", arguments, kSecretFlags);
  if (words.has("help")) {
    write_text(STDOUT_FILENO, kSecretHelp + describe_flags(kSecretFlags));
    return 0;
  }
  const auto job = words.value("job"), file = words.value("secret-file");
  if (!job || job->empty())
    throw Error(ErrorKind::usage, "fleetrun secret needs the id of a job", "write it as --job JOB");
  std::string where = file.value_or("");
  const Secret own = file ? read_secret_file(where) : user_secret(environment, where);
  if (const std::string other = job_of_secret_file(where); !other.empty())
    throw Error(
        ErrorKind::config,
        where + " has the secret of job " + printable(other) + " alone, from which no other can be found",
        "do it where the user's own secret is");
  write_text(STDOUT_FILENO, job_secret_text(secret_of_job(own, *job), *job));
  return 0;
}

}  // namespace fleetrun::cli
