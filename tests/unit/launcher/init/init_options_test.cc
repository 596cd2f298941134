#include "launcher/init/init_options.h"

#include <signal.h>

#include <doctest/doctest.h>

using namespace fleetrun;
using namespace fleetrun::launcher;

namespace {

using Words = std::vector<std::string>;

InitOptions options_of(InitDialect dialect, const Words& argv, const Environ& environment = {}) {
  const auto parsed = parse_init_options(dialect, argv, environment);
  REQUIRE(std::holds_alternative<InitOptions>(parsed));
  return std::get<InitOptions>(parsed);
}

InitAnswer answer_to(InitDialect dialect, const Words& argv) {
  const auto parsed = parse_init_options(dialect, argv, {});
  REQUIRE(std::holds_alternative<InitAnswer>(parsed));
  return std::get<InitAnswer>(parsed);
}

}  // namespace

TEST_CASE("the name decides what fleetrun-init is, and so does a command") {
  CHECK(init_dialect({"/usr/bin/tini", "3", "4"}) == InitDialect::tini);
  CHECK(init_dialect({"tini-static"}) == InitDialect::tini);
  CHECK(init_dialect({"/x/dumb-init", "true"}) == InitDialect::dumb_init);
  CHECK(init_dialect({"/x/fleetrun-init", "--", "true"}) == InitDialect::tini);
  CHECK(init_dialect({"fleetrun-init", "-g", "true"}) == InitDialect::tini);
  CHECK_FALSE(init_dialect({"fleetrun-init", "3", "1234"}));
  CHECK_FALSE(init_dialect({"fleetrun-init"}));
  CHECK_FALSE(init_dialect({}));
}

TEST_CASE("tini's options, together and apart, end at the command") {
  const InitOptions options = options_of(InitDialect::tini, {"tini", "-sgw", "-vv", "-pSIGUSR1", "-e", "143",
                                                             "-e", "0", "cat", "-v", "--", "-s"});
  CHECK(options.command == Words{"cat", "-v", "--", "-s"});
  CHECK(options.subreaper);
  CHECK(options.signal_group);
  CHECK(options.warn_reaped);
  CHECK(options.verbosity == 3);
  CHECK(options.parent_death_signal == SIGUSR1);
  CHECK(options.success.count() == 2);
  CHECK(options.success[143]);
  CHECK(options_of(InitDialect::tini, {"tini", "--", "-x"}).command == Words{"-x"});
}

TEST_CASE("tini's variables are obeyed, and orphans come to fleetrun-init under its own name") {
  const Environ environment = {
      {"TINI_SUBREAPER", ""}, {"TINI_KILL_PROCESS_GROUP", "1"}, {"TINI_VERBOSITY", "0"}};
  const InitOptions options = options_of(InitDialect::tini, {"tini", "true"}, environment);
  CHECK(options.subreaper);
  CHECK(options.signal_group);
  CHECK(options.verbosity == 0);
  CHECK_FALSE(options_of(InitDialect::tini, {"tini", "true"}).subreaper);
  CHECK(options_of(InitDialect::tini, {"fleetrun-init", "--", "true"}).subreaper);
}

TEST_CASE("what tini cannot take is refused with status 1 and a word about it") {
  CHECK(answer_to(InitDialect::tini, {"tini"}).text.starts_with("Usage: tini "));
  CHECK(answer_to(InitDialect::tini, {"tini", "-z", "true"}) ==
        InitAnswer{"tini: invalid option -- 'z'\n", 1});
  CHECK(answer_to(InitDialect::tini, {"tini", "-p"}) ==
        InitAnswer{"tini: option requires an argument -- 'p'\n", 1});
  CHECK(answer_to(InitDialect::tini, {"tini", "-p", "SIGNOTHING", "true"}).text ==
        "fleetrun-init: error: no such signal for -p: SIGNOTHING\n");
  for (const char* code : {"256", "-1", "x", ""}) {
    const InitAnswer answer = answer_to(InitDialect::tini, {"tini", "-e", code, "true"});
    CHECK(answer.status == 1);
    CHECK(answer.text.find("no exit status for -e") != std::string::npos);
  }
  CHECK(answer_to(InitDialect::tini, {"tini", "-h"}).status == 0);
  CHECK(answer_to(InitDialect::tini, {"tini", "--version"}).text.starts_with("fleetrun-init "));
}

TEST_CASE("dumb-init has a session of its own unless it is told not to, and rewrites signals") {
  const InitOptions plain = options_of(InitDialect::dumb_init, {"dumb-init", "sh", "-c", "true"});
  CHECK(plain.command == Words{"sh", "-c", "true"});
  CHECK(plain.signal_group);
  CHECK(plain.rewrite[SIGTSTP] == SIGSTOP);
  CHECK(plain.rewrite[SIGTERM] == kAsItCame);
  const InitOptions single = options_of(
      InitDialect::dumb_init, {"dumb-init", "--single-child", "--rewrite=15:2", "-r", "28:0", "--", "x"});
  CHECK_FALSE(single.signal_group);
  CHECK(single.rewrite[SIGTSTP] == kAsItCame);
  CHECK(single.rewrite[SIGTERM] == SIGINT);
  CHECK(single.rewrite[SIGWINCH] == 0);
  CHECK(single.command == Words{"x"});
  CHECK(options_of(InitDialect::dumb_init, {"dumb-init", "-r20:20", "x"}).rewrite[SIGTSTP] == SIGTSTP);
  const Environ environment = {{"DUMB_INIT_SETSID", "0"}, {"DUMB_INIT_DEBUG", "1"}};
  const InitOptions set = options_of(InitDialect::dumb_init, {"dumb-init", "x"}, environment);
  CHECK_FALSE(set.signal_group);
  CHECK(set.verbosity == 2);
}

TEST_CASE("what dumb-init cannot take is refused in its own words") {
  for (const char* rewrite : {"", "herp", "15", "15::12", "15:derp", "1:32", "0:1", "32:1"}) {
    const InitAnswer answer = answer_to(InitDialect::dumb_init, {"dumb-init", "-r", rewrite, "true"});
    CHECK(answer.status == 1);
    CHECK(answer.text.starts_with("Usage: -r option takes <signum>:<signum>"));
  }
  CHECK(answer_to(InitDialect::dumb_init, {"dumb-init", "--yolo", "true"}) ==
        InitAnswer{"dumb-init: unrecognized option '--yolo'\n", 1});
  CHECK(
      answer_to(InitDialect::dumb_init, {"dumb-init"}).text.starts_with("Usage: dumb-init [option] program"));
}
