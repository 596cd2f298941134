#include "launcher/remote/agent_channel.h"

#include <doctest/doctest.h>

#include "launcher/remote/launch_order.h"
#include "launcher/remote/launcher_lines.h"
#include "launcher/remote/log_collection.h"
#include "runtime/base/error.h"

using namespace fleetrun;
using namespace fleetrun::launcher;
using namespace fleetrun::launcher::remote;

namespace {

std::vector<Addressed> samples() {
  const RemoteHost host = {
      .user = "u", .name = "h1", .port = 22, .slots = {}, .servers = {}, .devices = {}, .where = ""};
  return {{0, Hello{1, "0.1.0", "10.0.0.1 2 10.0.0.2 22", "h1"}},
          {1, Order{std::string("\0\xff\n", 3)}},
          {2, Start{{7, 8}, {host, host}, {"ssh", "-F", "x"}, "/bin/fleetrun", 8, true, "~/x"}},
          {3, Verdict{"reason", "hint"}},
          {4, Gone{"why"}},
          {4, Signal{15}},
          {5, Output{std::string(100'000, 'x')}},
          {6, Log{"WARNING", "text\nmore"}},
          {7, Ended{137, "screen"}},
          {8, Collect{".marker"}},
          {9, File{"a/b", "bytes", true}},
          {10, FilesEnd{""}},
          {0xffffffff, Bye{}},
          {11, Offer{{"from/me@h1",
                      {"from/me@h1/job"},
                      {{ship::Kind::link, "a", 1, 2, 3, 4, "b"}},
                      true,
                      "/usr/bin",
                      {"/x"}}}},
          {12, Wanted{{{0, 3}, {7, 1}}}},
          {13, ship::Piece{7, std::string("\0\n", 2)}},
          {14, Shipped{"no room", "make some"}},
          {15, Progress{1, 2}},
          {16, Hold{true}},
          {17, Dial{9}},
          {18, Bytes{9, "x"}},
          {19, Hangup{9}}};
}

LaunchOrder order_of(std::vector<std::string> arguments) {
  LaunchOrder order;
  order.version = "0.1.0";
  order.values = {{"job_id", "j"}, {"grace", "2"}};
  order.script = "train.py";
  order.script_args = std::move(arguments);
  order.environment = {{"A", "x=\ny"}, {"B", ""}};
  order.cwd = "/work dir";
  order.secret = std::string(32, '\0');
  order.coordinator = {"fe80::1", 1234};
  order.address = "10.0.0.7";
  order.node_rank = 3;
  order.node_name = "h4";
  order.nodes = {2, 16, 2};
  order.elastic = true;
  order.trainers = 0;
  order.devices = std::vector<std::string>{"0", "2"};
  return order;
}

}  // namespace

TEST_CASE("a host that asks for fleetrun is heard among what its login shell prints, once") {
  ChannelDecoder decoder(1000, true);
  decoder.append("Welcome!\n");
  CHECK_FALSE(decoder.take_wish());
  decoder.append("\nfleetrun is to");
  CHECK_FALSE(decoder.take_wish());
  decoder.append(" be sent\n");
  CHECK(decoder.take_wish());
  CHECK_FALSE(decoder.take_wish());
  decoder.append(std::string("more noise") + std::string(kMarker) + encode({3, Bye{}}));
  CHECK(decoder.next() == Addressed{3, Bye{}});
}

TEST_CASE("every frame arrives as it was sent, however its bytes are cut") {
  const auto frames = samples();
  REQUIRE(frames.size() == std::variant_size_v<Message>);
  std::string bytes;
  for (const Addressed& frame : frames) bytes += encode(frame);
  for (const std::size_t piece : {bytes.size(), std::size_t{1}, std::size_t{7}}) {
    ChannelDecoder decoder(kLongestReport, false);
    std::vector<Addressed> got;
    for (std::size_t i = 0; i < bytes.size(); i += piece) {
      decoder.append(std::string_view(bytes).substr(i, piece));
      while (auto frame = decoder.next()) got.push_back(std::move(*frame));
    }
    CHECK(got == frames);
  }
}

TEST_CASE("what a login shell prints before the marker is skipped") {
  ChannelDecoder decoder(kLongestReport, true);
  decoder.append(
      "Welcome!\n\x02"
      "fleetrun agen");
  CHECK(!decoder.next());
  decoder.append("t\x03\n" + encode({0, Bye{}}));
  CHECK(decoder.next() == Addressed{0, Bye{}});
  ChannelDecoder flooded(kLongestReport, true);
  flooded.append(std::string(kLongestNoise + 1, 'x'));
  CHECK_THROWS_AS(flooded.next(), Error);
}

TEST_CASE("garbled frames are refused, and nothing is made of a length that is not there") {
  const auto refused = [](std::string bytes, std::size_t longest = kLongestReport) {
    ChannelDecoder decoder(longest, false);
    decoder.append(bytes);
    CHECK_THROWS_AS(decoder.next(), Error);
  };
  refused(std::string(4, '\0'));                                       // shorter than its head
  refused(std::string("\xff\xff\xff\xff", 4));                         // 4 GiB
  refused(encode({0, Order{std::string(100, 'x')}}), 50);              // longer than allowed
  refused(std::string("\x05\0\0\0\0\0\0\0\x63", 9));                   // a kind that does not exist
  refused(std::string("\x06\0\0\0\0\0\0\0\x0c\x01", 10));              // more than there should be
  refused(std::string("\x09\0\0\0\0\0\0\0\x06\xff\xff\xff\x7f", 13));  // a string of 2 GiB
  refused(std::string("\x09\0\0\0\0\0\0\0\x02\xff\xff\xff\x7f", 13));  // 2 G hosts
  for (const Addressed& frame : samples()) {
    std::string bytes = encode(frame);
    for (std::size_t cut = 4; cut + 1 < bytes.size() && cut < 60; ++cut) {
      const std::uint32_t length = static_cast<std::uint32_t>(cut - 4);
      std::string shorter = bytes.substr(0, cut);
      for (int i = 0; i < 4; ++i)
        shorter[static_cast<std::size_t>(i)] = static_cast<char>(length >> (8 * i) & 255);
      refused(shorter);
    }
  }
}

TEST_CASE("an order arrives byte for byte") {
  std::string every;
  for (int byte = 0; byte < 256; ++byte) every.push_back(static_cast<char>(byte));
  const LaunchOrder order =
      order_of({"", every, "$(x)", "`id`", "a b\n'\"\\", std::string(200 << 10, 'a'), "-x", "--"});
  CHECK(decode_order(encode(order)) == order);
  LaunchOrder bare;
  CHECK(decode_order(encode(bare)) == bare);
  const std::string bytes = encode(order);
  for (std::size_t cut = 0; cut < 400; ++cut) CHECK_THROWS_AS(decode_order(bytes.substr(0, cut)), Error);
  CHECK_THROWS_AS(decode_order(bytes + "x"), Error);
}

TEST_CASE("an order becomes the configuration of a node that joins and does not coordinate") {
  LaunchOrder order = order_of({"--lr", "0.1"});
  order.values = {{"run_mode", "ps"}, {"log_dir", "log/h4"}};
  order.servers = 1;
  order.devices.reset();
  const JobConfig config = config_of(order, {{"PADDLE_TRAINER_NUM", "7"}, {"PATH", "/bin"}});
  CHECK(config.mode == Mode::ps);
  CHECK(config.server_num == 1);
  CHECK(config.trainer_num == 0);
  CHECK(config.script == "train.py");
  CHECK(config.script_args == std::vector<std::string>{"--lr", "0.1"});
  CHECK(config.log_dir == "log/h4");
  CHECK(config.host == "10.0.0.7");
  CHECK(config.rendezvous.kind == Rendezvous::Kind::master);
  CHECK(config.rendezvous.master == Endpoint{"fe80::1", 1234});
  CHECK(!config.rendezvous.may_coordinate);
  CHECK(config.rendezvous.secret == order.secret);
  CHECK(config.rendezvous.node_rank == 3);
  CHECK(config.rendezvous.node_name == "h4");
  CHECK(config.rendezvous.nodes == NodeCount{2, 16, 2});
  CHECK(config.rendezvous.elastic);
}

TEST_CASE("in a collective job the order's trainers and devices are the host's") {
  LaunchOrder order = order_of({});
  order.values = {};
  order.trainers = 2;
  const JobConfig config = config_of(order, {});
  CHECK(config.nproc_per_node == 2);
  CHECK(config.devices == std::vector<std::string>{"0", "2"});
}

TEST_CASE("settings travel, but for those of this host and of the list") {
  Options options;
  options.values = {{"hosts", "h1"}, {"grace", "3"}, {"dry_run", "text"}, {"trainer_num", "2"}};
  const auto values =
      portable_values(options, {{"PADDLE_TRAINER_NUM", "9"}, {"PADDLE_JOB_ID", "j"}, {"POD_IP", "1.2.3.4"}});
  CHECK(values == std::map<std::string, std::string, std::less<>>{
                      {"grace", "3"}, {"trainer_num", "2"}, {"job_id", "j"}});
}

TEST_CASE("exported variables are named, given, or share a beginning") {
  const Environ environ = {{"NCCL_A", "1"}, {"NCCL_B", "2"}, {"OTHER", "x"}};
  using Pairs = std::vector<std::pair<std::string, std::string>>;
  CHECK(exported_variables({"OTHER", "NEW=a=b", "EMPTY="}, environ) ==
        Pairs{{"EMPTY", ""}, {"NEW", "a=b"}, {"OTHER", "x"}});
  CHECK(exported_variables({"NCCL_*", "NCCL_B=3"}, environ) == Pairs{{"NCCL_A", "1"}, {"NCCL_B", "3"}});
  CHECK(exported_variables({"NONE_*"}, environ).empty());
  for (const char* word : {"", "1A", "A B", "*", "A-B=1", "=x", "A$"}) {
    CAPTURE(word);
    CHECK_THROWS_AS(exported_variables({word}, environ), Error);
  }
  try {
    exported_variables({"MISSING"}, environ);
    FAIL("not refused");
  } catch (const Error& error) {
    CHECK(std::string(error.what()) == "--export: MISSING is not set here");
    CHECK(error.hint() == "set it, or write MISSING=VALUE");
  }
}

TEST_CASE("a launcher's standard error is cut into records, and its end is the screen") {
  LauncherLines lines;
  const std::string stamp = "2026-01-02 03:04:05,678 ";
  CHECK(lines.take("LAUNCH INFO " + stamp + "one\nLAUNCH WARN").size() == 0);
  const auto records = lines.take("ING " + stamp + "two\nmore of it\n");
  REQUIRE(records.size() == 2);
  CHECK(records[0] == Log{"INFO", "one"});
  CHECK(records[1] == Log{"WARNING", "two\nmore of it"});
  CHECK(lines.take("fleetrun: error: x\n").empty());
  const auto end = lines.take("LAUNCH ERROR " + stamp + "Container failed !!!\nrank 0\nLAUNCH INFO " + stamp +
                              "Exit code 3\n");
  CHECK(end.empty());
  CHECK(lines.screen() == "fleetrun: error: x\nLAUNCH ERROR " + stamp +
                              "Container failed !!!\nrank 0\nLAUNCH INFO " + stamp + "Exit code 3\n");
}

TEST_CASE("logs are taken below their directory only") {
  CHECK(is_log_path("workerlog.0"));
  CHECK(is_log_path("pod/a/b/events.jsonl"));
  for (const char* path : {"", "/x", "../x", "a/../b", "a//b", "a/", ".", "a/./b", "a/b/c/d/e"}) {
    CAPTURE(path);
    CHECK(!is_log_path(path));
  }
  CHECK(!is_log_path(std::string_view("a\0b", 3)));
}
