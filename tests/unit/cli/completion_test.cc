#include "cli/completion.h"

#include <doctest/doctest.h>

#include "launcher/model/job_settings.h"
#include "runtime/base/error.h"
#include "runtime/base/text.h"

using fleetrun::Error;
using fleetrun::cli::completion_script;

TEST_CASE("bash and zsh are told every spelling of every flag") {
  for (const char* shell : {"bash", "zsh"}) {
    const std::string script = completion_script(shell);
    for (const fleetrun::launcher::Setting& row : fleetrun::launcher::settings()) {
      INFO(shell << " " << row.key);
      CHECK(script.find("--" + std::string(row.key)) != std::string::npos);
      for (const std::string& alias : fleetrun::split(row.aliases, ' '))
        CHECK(script.find(alias.starts_with('-') ? alias : "--" + alias) != std::string::npos);
    }
  }
}

TEST_CASE("fish is told the name of a flag without its dashes") {
  const std::string script = completion_script("fish");
  for (const fleetrun::launcher::Setting& row : fleetrun::launcher::settings()) {
    INFO(row.key);
    CHECK(script.find(" -l " + std::string(row.key) + " ") != std::string::npos);
  }
  CHECK(script.find(" -s m ") != std::string::npos);
}

TEST_CASE("a unit that lists words is a choice of them; what stands for something else is not") {
  const std::string script = completion_script("zsh");
  CHECK(script.find("(auto none core numa)") != std::string::npos);
  CHECK(script.find("(auto gpu cpu)") != std::string::npos);  // N|auto|gpu|cpu
  CHECK(script.find("SECONDS") == std::string::npos);
}

TEST_CASE("quotes in a help text do not end a word of the script") {
  CHECK(completion_script("bash").find("'\\''") == std::string::npos);  // bash shows no help texts
  CHECK(completion_script("zsh").find("letters, digits, '\\''.'\\''") != std::string::npos);
  CHECK(completion_script("fish").find("letters, digits, \\'.\\'") != std::string::npos);
}

TEST_CASE("another shell is refused by name") {
  try {
    completion_script("tcsh");
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(std::string(error.what()).find("no completion for 'tcsh'") != std::string::npos);
    CHECK(error.hint() == "there is bash, zsh and fish");
  }
}
