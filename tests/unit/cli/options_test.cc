#include "cli/options.h"

#include <doctest/doctest.h>

#include "runtime/base/error.h"

using fleetrun::Error;
using fleetrun::cli::CommandLine;
using fleetrun::cli::parse_command_line;

TEST_CASE("flags end at the script, and what follows is the script's") {
  const CommandLine line =
      parse_command_line({"--server_num=1", "--trainer-num", "2", "train.py", "--server_num", "9", "-h"});
  CHECK(line.options.values.at("server_num") == "1");
  CHECK(line.options.values.at("trainer_num") == "2");
  CHECK(line.options.script == "train.py");
  CHECK(line.options.script_args == std::vector<std::string>{"--server_num", "9", "-h"});
  CHECK_FALSE(line.help);
}

TEST_CASE("other spellings are the same setting, remembered as written") {
  const CommandLine line = parse_command_line({"--gpus", "0,1", "--worker-num=2", "x"});
  CHECK(line.options.values.at("devices") == "0,1");
  CHECK(line.options.values.at("trainer_num") == "2");
  CHECK(line.options.spelled.at("devices") == "--gpus");
  CHECK(line.options.spelled.at("trainer_num") == "--worker-num");
}

TEST_CASE("values may be negative or empty") {
  const CommandLine line = parse_command_line({"--rank", "-1", "--log_dir=", "--job_id", "", "x"});
  CHECK(line.options.values.at("rank") == "-1");
  CHECK(line.options.values.at("log_dir") == "");
  CHECK(line.options.values.at("job_id") == "");
  CHECK(line.options.script == "x");
}

TEST_CASE("what Paddle takes for not given where it is empty is not given, and that is said") {
  const CommandLine line =
      parse_command_line({"--nnodes=", "--master", "",
                          "--gpus=", "--ips=", "--host=", "--servers=", "--trainers=", "x", "--gpus="});
  CHECK(line.options.values.empty());
  CHECK(line.options.notes.size() == 7);
  CHECK(line.options.notes.front() == "--nnodes is empty: it counts as not given");
  CHECK(line.options.script_args == std::vector<std::string>{"--gpus="});
}

TEST_CASE("the same flag with the same value may be there twice") {
  CHECK(parse_command_line({"--nnodes=1", "--nnodes", "1", "x"}).options.values.at("nnodes") == "1");
}

TEST_CASE("a value keeps its dashes and underscores") {
  CHECK(parse_command_line({"--log-dir=my-logs_1", "x"}).options.values.at("log_dir") == "my-logs_1");
}

TEST_CASE("--dry-run alone means text, and leaves the script alone") {
  const CommandLine line = parse_command_line({"--dry-run", "x"});
  CHECK(line.options.values.at("dry_run") == "text");
  CHECK(line.options.script == "x");
}

TEST_CASE("an unknown flag comes with the nearest known one") {
  try {
    parse_command_line({"--sever-num=1", "x"});
    FAIL("accepted");
  } catch (const Error& error) {
    CHECK(std::string(error.what()) == "unknown flag --sever-num");
    CHECK(error.hint() == "did you mean --server_num?");
  }
  CHECK_THROWS_WITH_AS(parse_command_line({"-x", "x"}), "unknown flag -x", Error);
  CHECK_FALSE(parse_command_line({}).options.script);
  CHECK_FALSE(parse_command_line({"-"}).options.script == "x");
}

TEST_CASE("flags of other launchers are met with ours") {
  const std::pair<const char*, const char*> meant[] = {{"-n", "--nproc_per_node"},
                                                       {"-np", "--nproc_per_node"},
                                                       {"--nprocs=2", "--nproc_per_node"},
                                                       {"--num-processes=2", "--nproc_per_node"},
                                                       {"-H", "--hosts"},
                                                       {"--machine_rank=1", "--rank"},
                                                       {"-machinefile", "--hostfile"},
                                                       {"-hostfile=f", "--hostfile"},
                                                       {"-host", "--hosts"},
                                                       {"-master-addr=h", "--master_addr"},
                                                       {"-rank", "--rank"},
                                                       {"--ntasks=2", "--nproc_per_node"},
                                                       {"-N", "--nnodes"},
                                                       {"-w", "--hosts"},
                                                       {"-bind-to", "--bind"},
                                                       {"--cpu-bind=none", "--bind"}};
  for (const auto& [word, flag] : meant) {
    try {
      parse_command_line({word, "x"});
      FAIL("accepted");
    } catch (const Error& error) {
      CHECK(error.hint() == "did you mean " + std::string(flag) + "?");
    }
  }
}

TEST_CASE("flags of other launchers that say nothing here are told to be left out") {
  for (const char* word : {"-x", "--oversubscribe", "--allow-run-as-root", "-mca", "--mca", "--label", "-l",
                           "--multi_gpu", "--map-by=slot", "-map-by", "--no_ssh"}) {
    INFO(std::string(word));
    try {
      parse_command_line({word, "x"});
      FAIL("accepted");
    } catch (const Error& error) {
      CHECK(std::string(error.hint()).starts_with("leave it out: "));
    }
  }
}

TEST_CASE("a flag is given once, and with its value") {
  const auto refusal = [](const std::vector<std::string>& arguments) -> std::string {
    try {
      parse_command_line(arguments);
    } catch (const Error& error) {
      return std::string(error.what()) + "; " + error.hint();
    }
    return "accepted";
  };
  CHECK(refusal({"--log-dir=a", "--log-dir=b", "x"}) == "--log-dir is given twice; give it once");
  CHECK(refusal({"--gpus=0", "--devices=1", "x"}) ==
        "--gpus and --devices are the same flag, given twice; give it once");
  CHECK(refusal({"--log_dir"}) == "--log_dir has no value; write it as --log_dir=DIR");
  CHECK(refusal({"--server_num", "--trainer_num=2", "x"}) ==
        "--server_num has no value; write it as --server_num=N");
}

TEST_CASE("flags without a value take none, and one in '=' if it is there") {
  const CommandLine line = parse_command_line({"--standalone", "--no-python", "--detach=false", "x", "y"});
  CHECK(line.options.values.at("standalone") == "True");
  CHECK(line.options.values.at("no_python") == "True");
  CHECK(line.options.values.at("detach") == "false");
  CHECK(line.options.script == "x");
  CHECK(parse_command_line({"--require-containment", "x"}).options.values.at("require_containment") ==
        "pidns");
  CHECK(parse_command_line({"--require-containment=cgroup2", "x"}).options.values.at("require_containment") ==
        "cgroup2");
}

TEST_CASE("torchrun's letters take their value apart, behind '=' or right behind them") {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"-r", "3"}, std::vector<std::string>{"-r3"},
        std::vector<std::string>{"-r=3"}}) {
    std::vector<std::string> arguments = {"-m"};
    arguments.insert(arguments.end(), words.begin(), words.end());
    arguments.push_back("package.train");
    const CommandLine line = parse_command_line(arguments);
    CHECK(line.options.values.at("redirects") == "3");
    CHECK(line.options.values.at("module") == "True");
    CHECK(line.options.spelled.at("module") == "-m");
    CHECK(line.options.script == "package.train");
  }
}

TEST_CASE("the beginning of a flag of Paddle's or torchrun's stands for it where nothing else begins so") {
  const CommandLine line = parse_command_line({"--nproc-per=2", "--gpu", "0", "x"});
  CHECK(line.options.values.at("nproc_per_node") == "2");
  CHECK(line.options.values.at("devices") == "0");
  CHECK(line.options.spelled.at("devices") == "--gpus");
  CHECK(line.options.notes ==
        std::vector<std::string>{"--nproc-per is read as --nproc_per_node", "--gpu is read as --gpus"});
  CHECK_THROWS_WITH_AS(parse_command_line({"--server=1", "x"}), "--server may be --server_num or --servers",
                       Error);
  CHECK_THROWS_WITH_AS(parse_command_line({"--detac", "x"}), "unknown flag --detac", Error);
  CHECK_THROWS_WITH_AS(parse_command_line({"--n", "x"}), "unknown flag --n", Error);
}

TEST_CASE("what follows the script is never looked at, and -- ends the flags") {
  CHECK(parse_command_line({"x", "--y=", "--server_num"}).options.script_args ==
        std::vector<std::string>{"--y=", "--server_num"});
  CHECK(parse_command_line({"--server_num=1", "--", "-x", "y"}).options.script == "-x");
}
