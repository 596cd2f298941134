#include "launcher/cluster/messages.h"

#include <doctest/doctest.h>

#include <set>

#include "launcher/cluster/journal.h"
#include "runtime/base/error.h"

using namespace fleetrun;
using namespace fleetrun::launcher;

namespace {

const std::string kNode = "00112233445566778899aabbccddeeff", kRun = "ffeeddccbbaa99887766554433221100";

World two_hosts() {
  World world;
  world.generation = 7;
  world.attempt = 2;
  world.run = kRun;
  world.members = {{kNode, "h1", "abcdef", {"10.0.0.1", 9000}, {"10.0.0.1", {1, 2}, {3}, 4}, 0, 0},
                   {"b", "h2", "ghijkl", {"10.0.0.2", 9001}, {"fe80::1", {65'535}, {}, 0}, 2, 1}};
  return world;
}

NodeFailure a_failure() {
  NodeFailure failure{
      "trainer 3", 1, FailureKind::out_of_memory, "was killed", "oom", "screen", -5, 17, 99, true, false};
  return failure;
}

std::vector<Message> one_of_each() {
  Hello hello;
  hello.version = "0.1.0";
  hello.job_id = "job";
  hello.node = kNode;
  hello.name = "h1";
  hello.pod = "abcdef";
  hello.connection = 3;
  hello.successor = {"h1", 9000};
  hello.offer = {"h1", {1, 2}, {3}, 4};
  hello.run = kRun;
  hello.promised = 9;
  hello.formed = 8;
  hello.world = 7;
  hello.rank = 1;
  hello.fenced = true;
  hello.nodes = {2, 8, 2};
  const Configuration configuration{8, 1, kNode, {kNode, "b"}};
  JobEnd end{1, "trainer 3 on h2 exited with 1", "h2", a_failure()};
  WorldList list{
      std::make_shared<World>(two_hosts()),
      kNode,
      {{{FailureKind::hang, "trainer 1", "x", std::chrono::milliseconds(5), 12}, RestartScope::group, "h2"}}};
  // Not one braced list: g++ 12 takes what is in it for uninitialised.
  const Endpoint h2{"h2", 9001};
  std::vector<Message> all;
  all.emplace_back(hello);
  all.emplace_back(Hello{});
  all.emplace_back(Ready{3, {"h", {1}, {}, 2}});
  all.emplace_back(Running{3});
  all.emplace_back(Failing{3, "trainer 3"});
  all.emplace_back(Failed{3, a_failure(), Instant(-12)});
  all.emplace_back(Done{3});
  all.emplace_back(Stop{2});
  all.emplace_back(TimeUp{});
  all.emplace_back(Leave{"stopped by its user"});
  all.emplace_back(KnowsEnd{});
  all.emplace_back(AskList{3});
  all.emplace_back(Standing{configuration, {configuration}});
  all.emplace_back(Welcome{"0.1.0", kRun, kNode, true, true, 500, 2500});
  all.emplace_back(Refused{"no", "do that", 125});
  all.emplace_back(Waiting{"waiting for 1 of 4 hosts"});
  all.emplace_back(Parked{"the job is full"});
  all.emplace_back(Redirect{h2, "it leaves", configuration});
  all.emplace_back(Prepare{4, "h2 was lost", true, configuration, configuration});
  WorldNews news;
  news.generation = 4;
  news.rank = 2;
  news.rendezvous = h2;
  news.update = true;
  all.emplace_back(news);
  all.emplace_back(list);
  all.emplace_back(End{end, true});
  all.emplace_back(End{});
  Redirect redirect;
  redirect.coordinator = h2;
  all.emplace_back(redirect);
  all.emplace_back(NotYet{});
  all.emplace_back(AskStanding{});
  all.emplace_back(Acting{"job", kRun, 5, h2});
  all.emplace_back(Beat{Instant(1), Instant(2), Instant(3)});
  return all;
}

bool refused(std::string_view bytes) {
  try {
    decode(bytes);
    return false;
  } catch (const Error& error) {
    return error.kind() == ErrorKind::data;
  }
}

}  // namespace

TEST_CASE("every message comes back as it was") {
  std::set<std::size_t> seen;
  std::set<std::string_view> names;
  for (const Message& message : one_of_each()) {
    const std::string bytes = encode(message);
    const Message back = decode(bytes);
    CAPTURE(name_of(message));
    CHECK(back.index() == message.index());
    CHECK(encode(back) == bytes);
    CHECK(SharedMessage(message).bytes() == bytes);
    seen.insert(message.index());
    names.insert(name_of(message));
  }
  CHECK(seen.size() == std::variant_size_v<Message>);
  CHECK(names.size() == std::variant_size_v<Message>);
}

TEST_CASE("the fields of messages survive, negative numbers and identities of any form too") {
  const std::vector<Message> all = one_of_each();
  CHECK(std::get<Hello>(decode(encode(all[0]))) == std::get<Hello>(all[0]));
  CHECK(std::get<Hello>(decode(encode(all[1]))) == Hello{});
  const auto failed = std::get<Failed>(decode(encode(Failed{3, a_failure(), Instant(-12)})));
  CHECK(failed.failure == a_failure());
  CHECK(failed.died == Instant(-12));
  const auto list =
      std::get<WorldList>(decode(encode(WorldList{std::make_shared<World>(two_hosts()), kNode, {}})));
  CHECK(*list.world == two_hosts());
  CHECK(list.world->hash() == two_hosts().hash());
}

TEST_CASE("every truncation of every message is refused, and so is a byte too many") {
  for (const Message& message : one_of_each()) {
    const std::string bytes = encode(message);
    CAPTURE(name_of(message));
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      // A hello of a foreign protocol is read as far as its version; this one's protocol is ours.
      CHECK_MESSAGE(refused(std::string_view(bytes).substr(0, size)), size);
    }
    CHECK(refused(bytes + '\0'));
  }
  CHECK(refused(""));
  CHECK(refused(std::string(1, '\x7f')));
}

TEST_CASE("a changed byte is read as another message or refused, never worse") {
  for (const Message& message : one_of_each()) {
    const std::string bytes = encode(message);
    for (std::size_t at = 0; at < bytes.size(); ++at) {
      for (const char value : {'\0', '\1', '\x7f', '\xff'}) {
        std::string changed = bytes;
        changed[at] = value;
        if (refused(changed)) continue;
        const Message back = decode(changed);
        if (!std::holds_alternative<Hello>(back)) CHECK(encode(back) == changed);
      }
    }
  }
}

TEST_CASE("counts are checked against the bytes that are there, before anything is allocated") {
  std::string bytes = encode(Ready{3, {"h", {}, {}, 2}});
  const std::size_t count = 1 + 8 + 4 + 1;  // type, generation, length of host, host
  for (std::size_t i = 0; i < 4; ++i) bytes[count + i] = '\xff';
  CHECK(refused(bytes));

  Prepare prepare;
  prepare.proposed.nodes.assign(kMaxMembers, "");
  CHECK(std::get<Prepare>(decode(encode(prepare))).proposed.nodes.size() == kMaxMembers);
  prepare.proposed.nodes.push_back("");
  CHECK_THROWS_AS(encode(prepare), Error);
}

TEST_CASE("texts end at 64 KiB") {
  CHECK(std::get<Waiting>(decode(encode(Waiting{std::string(kMaxText, 'x')}))).text.size() == kMaxText);
  CHECK_THROWS_WITH_AS(encode(Waiting{std::string(kMaxText + 1, 'x')}),
                       "a message cannot be read: a text of it is longer than 64 KiB", Error);
  std::string bytes = encode(Waiting{std::string(kMaxText, 'x')}) + 'x';
  bytes[1] = 1;  // the length, one more than is allowed
  CHECK(refused(bytes));
}

TEST_CASE("a hello of another protocol is read as far as its version") {
  Hello hello = std::get<Hello>(one_of_each()[0]);
  hello.protocol = 99;
  hello.version = "9.9";
  const auto back = std::get<Hello>(decode(encode(hello) + "whatever comes then"));
  CHECK(back.protocol == 99);
  CHECK(back.version == "9.9");
  CHECK(back.job_id.empty());
}

TEST_CASE("a member takes about a hundred bytes of a list, and the news of a world less than two hundred") {
  World world;
  world.run = kRun;
  for (int i = 0; i < 1'000; ++i)
    world.members.push_back({kNode,
                             "node-" + std::to_string(i),
                             "abcdef",
                             {"10.10.10.10", 40'000},
                             {"10.10.10.10", {40'001, 40'002}, {}, 40'003},
                             i,
                             0});
  CHECK(encode(WorldList{std::make_shared<World>(world), kNode, {}}).size() < 120'000);
  WorldNews news;
  news.run = kRun;
  news.rendezvous = {"10.10.10.10", 77};
  news.hash = world.hash();
  CHECK(encode(news).size() < 200);
}

TEST_CASE("a journal comes back as it was, and is refused in parts") {
  Journal journal{"job",
                  kRun,
                  9,
                  std::make_shared<World>(two_hosts()),
                  kNode,
                  {},
                  {9, 2, kNode, {"b"}},
                  {{9, 2, kNode, {"b"}}}};
  journal.past.push_back(
      {{FailureKind::crash, "trainer 1", "x", std::chrono::milliseconds(5), {}}, RestartScope::nobody, "h"});
  const std::string bytes = encode(journal);
  const Journal back = decode_journal(bytes);
  CHECK(encode(back) == bytes);
  CHECK(*back.world == two_hosts());
  CHECK(back.past.front().host == "h");
  CHECK(back.promised == journal.promised);
  for (std::size_t size = 0; size < bytes.size(); ++size)
    CHECK_THROWS_AS(decode_journal(bytes.substr(0, size)), Error);
  CHECK(encode(decode_journal(encode(Journal{}))) == encode(Journal{}));
}
