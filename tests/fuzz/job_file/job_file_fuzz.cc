// Any bytes, as a job file: no crash, nothing but an Error(config) that names the file, in one line, for what
// is none; what is read is read the same again.
//
// The first byte chooses the language.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "launcher/config/read_job_file.h"
#include "runtime/base/error.h"

using namespace fleetrun;
using namespace fleetrun::launcher;

namespace {

[[noreturn]] void broken(const char* what, const std::string& said = "") {
  std::fprintf(stderr, "job_file_fuzz: %s: %s\n", what, said.c_str());
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::string name = data[0] % 2 == 0 ? "job.toml" : "job.json";
  try {
    const JobFile file = parse_job_file(text, name);
    if (!(parse_job_file(text, name) == file)) broken("it is read in two ways");
    for (const JobFileRole& role : file.roles)
      if (role.name.empty() || role.where.empty()) broken("a role without a name or a place");
  } catch (const Error& error) {
    const std::string said = error.what();
    if (error.kind() != ErrorKind::config) broken("it is refused as something else", said);
    if (render(error, "").find(name) == std::string::npos) broken("the refusal does not name the file", said);
    if (said.find('\n') != std::string::npos) broken("the refusal is not one line", said);
  }
  return 0;
}
