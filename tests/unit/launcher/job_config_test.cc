#include "launcher/job_config.h"

#include <algorithm>

#include <doctest/doctest.h>

#include "launcher/settings.h"
#include "runtime/base/error.h"

using namespace fleetrun;
using namespace fleetrun::launcher;

namespace {

Options options(std::map<std::string, std::string, std::less<>> values) {
  Options result;
  result.values = std::move(values);
  result.script = "train.py";
  return result;
}

std::string refusal(const Options& wanted, const Environ& environ = {}) {
  try {
    make_job_config(wanted, environ);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

std::string listed(const JobConfig& config, const std::string& key) {
  for (const ListedSetting& setting : config.listing) {
    if (setting.key == key) return setting.value;
  }
  return "not listed";
}

}  // namespace

TEST_CASE("with nothing but a script it is a collective job with Paddle's defaults") {
  const JobConfig config = make_job_config(options({}), {});
  CHECK(config.mode == Mode::collective);
  CHECK(config.job_id == "default");
  CHECK(config.log_dir == "log");
  CHECK(config.host == "127.0.0.1");
  CHECK_FALSE(config.start_port);
  CHECK(config.ready_timeout == std::chrono::seconds(30));
  CHECK(config.grace == std::chrono::seconds(30));
  CHECK(config.notes.empty());
  CHECK(listed(config, "run_mode") == "collective");
  CHECK(listed(config, "server_num") == "None");
  CHECK(listed(config, "servers") == "");
  CHECK(config.listing.size() == settings().size() + 2);
}

TEST_CASE("servers or trainers make it a ps job, whatever run_mode says, with a note") {
  for (const char* key : {"server_num", "trainer_num"}) {
    const JobConfig config = make_job_config(options({{key, "2"}}), {});
    CHECK(config.mode == Mode::ps);
    CHECK(listed(config, "run_mode") == "ps");
  }
  CHECK(make_job_config(options({{"servers", "127.0.0.1:1"}}), {}).mode == Mode::ps);
  CHECK(make_job_config(options({{"run_mode", "ps"}}), {}).mode == Mode::ps);
  const JobConfig config = make_job_config(options({{"run_mode", "collective"}, {"server_num", "1"}}), {});
  CHECK(config.mode == Mode::ps);
  CHECK(config.notes ==
        std::vector<std::string>{"run_mode is ps, not collective, because --server_num is given"});
  CHECK(servers_of(config) == 1);
}

TEST_CASE("a flag wins over the environment, and says so where the two disagree") {
  const Environ environ = {{"PADDLE_SERVER_NUM", "3"}, {"PADDLE_JOB_ID", "ctr"}, {"PADDLE_LOG_DIR", ""}};
  const JobConfig config = make_job_config(options({{"server_num", "2"}, {"job_id", "ctr"}}), environ);
  CHECK(config.server_num == 2);
  CHECK(config.log_dir == "log");
  CHECK(config.notes ==
        std::vector<std::string>{"--server_num 2 is used, not PADDLE_SERVER_NUM=3 from the environment"});
  CHECK(make_job_config(options({}), environ).server_num == 3);
}

TEST_CASE("POD_IP counts only when it looks like an address, as with Paddle") {
  CHECK(make_job_config(options({}), {{"POD_IP", "10.1.2.3"}}).host == "10.1.2.3");
  CHECK(make_job_config(options({}), {{"POD_IP", "pod"}}).host == "127.0.0.1");
}

TEST_CASE("errors are of the kind of where the value came from, and name it as the user wrote it") {
  Options wrong = options({{"trainer_num", "x"}});
  wrong.spelled["trainer_num"] = "--worker-num";
  CHECK(refusal(wrong) == "--worker-num is 'x': a whole number from 1 to 4096 is needed");
  try {
    make_job_config(options({}), {{"PADDLE_GLOO_PORT", "0"}});
    FAIL("accepted");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::config);
    CHECK(std::string(error.what()) == "PADDLE_GLOO_PORT is '0': a whole number from 1 to 65535 is needed");
  }
}

TEST_CASE("what needs another host is refused by name") {
  CHECK(refusal(options({{"nnodes", "2"}})) == "--nnodes is '2': a job is not on more than one host yet");
  CHECK(refusal(options({{"nnodes", "1"}, {"rank", "0"}, {"master", "http://10.0.0.1:8000"}})) == "accepted");
  CHECK(refusal(options({}), {{"PADDLE_TRAINER_ENDPOINTS", "10.0.0.1:1,10.0.0.2:1"}})
            .find("not on more than one host yet") != std::string::npos);
  CHECK(refusal(options({}), {{"PADDLE_TRAINER_ENDPOINTS", "10.0.0.1:1,10.0.0.1:2"}}) == "accepted");
}

TEST_CASE("every setting is in the table once, and every default is accepted") {
  std::vector<std::string_view> keys;
  for (const Setting& row : settings()) {
    CHECK(std::find(keys.begin(), keys.end(), row.key) == keys.end());
    keys.push_back(row.key);
    CHECK_FALSE(row.help.empty());
    if (row.initial != "None" && !row.initial.empty()) {
      CAPTURE(row.key);
      CHECK(refusal(options({{std::string(row.key), std::string(row.initial)}})) == "accepted");
    }
  }
}

TEST_CASE("hangs are looked for when a timeout says so, by the signs that are asked for") {
  CHECK(make_job_config(options({}), {}).hang == HangRules{});
  CHECK(make_job_config(options({{"hang_timeout", "2.5"}, {"hang_by", "log,cpu"}}), {}).hang ==
        HangRules{std::chrono::milliseconds(2500), {.heartbeat = false, .log = true, .cpu = true}});
  CHECK(refusal(options({{"hang_timeout", "soon"}})) ==
        "--hang_timeout is 'soon': a number of seconds is needed");
  CHECK(refusal(options({{"hang_timeout", "5"}, {"hang_by", "logs"}})) ==
        "--hang_by is 'logs': a list of heartbeat, log and cpu is needed");
  CHECK(refusal(options({{"hang_by", "log"}})) == "--hang_by is 'log': nobody looks for signs of life");
}

TEST_CASE("failures on purpose are read with the other flags") {
  const JobConfig config =
      make_job_config(options({{"inject", "kill rank=1 at=2s"}, {"inject_seed", "7"}}), {});
  CHECK(config.inject == parse_injections("kill rank=1 at=2s"));
  CHECK(config.inject_seed == 7);
  CHECK(refusal(options({{"inject", "kil rank=1"}})) == "--inject 'kil rank=1': there is no action 'kil'");
  CHECK(refusal(options({{"inject_seed", "-1"}})) ==
        "--inject_seed is '-1': a whole number from 0 to 9223372036854775807 is needed");
}
