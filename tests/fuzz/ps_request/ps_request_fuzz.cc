// Requests to a parameter server: whatever the bytes, each is answered once,
// with an answer or an Error, and the server goes on serving.
//
//   input  0xff | bytes of a whole request         or requests one after the other, as a trainer sends them:
//          {method u8, flags u8, size u16, body}…  flags: 1 another incarnation, 2 an observer, 4 stale
//
// Saving and loading are left out: their bodies name directories.

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "ps/client/channel_client.h"
#include "ps/server/server.h"

using namespace fleetrun;
using namespace fleetrun::ps;

namespace {

constexpr std::uint64_t kIncarnation = 7;

TableConfig table(std::uint32_t id, std::string name, TableConfig::Kind kind, std::uint64_t width) {
  TableConfig config;
  config.id = id;
  config.name = std::move(name);
  config.kind = kind;
  config.width = width;
  return config;
}

std::vector<TableConfig> tables() {
  std::vector<TableConfig> all{table(0, "emb", TableConfig::Kind::sparse, 2),
                               table(1, "ctr", TableConfig::Kind::sparse, 2),
                               table(2, "fc", TableConfig::Kind::dense, 3)};
  all[1].accessor.kind = Accessor::Kind::ctr;
  all[1].rule.kind = UpdateRule::Kind::adam;
  all[1].admission = {Admission::Kind::count, 2};
  return all;
}

void check(bool holds) {
  if (!holds) std::abort();
}

bool names_directories(wire::Method method) {
  using enum wire::Method;
  return method >= save_begin && method <= load_abort;
}

/// How often it was answered, and whether the last answer was one.
struct Answers {
  int count = 0;
  bool good = false;
};

void handle(Server& server, std::span<const std::byte> request, const std::shared_ptr<Answers>& answers) {
  Reader reader(request);
  wire::Header header;
  try {
    header = wire::read_header(reader);
  } catch (const Error&) {
    return;
  }
  if (names_directories(header.method)) return;
  server.handle(header, std::move(reader), [answers](Outcome outcome) {
    ++answers->count;
    answers->good = std::holds_alternative<Message>(outcome);
  });
}

Message draft(std::uint8_t method, std::uint8_t flags, std::span<const std::uint8_t> body) {
  wire::Header header{static_cast<wire::Method>(method % wire::kMethodCount), 0, 0, kIncarnation, 0, 0};
  if ((flags & 1) != 0) ++header.incarnation;
  if ((flags & 2) != 0) header.trainer = wire::kObserver;
  if ((flags & 4) != 0) header.generation = 1;
  wire::Draft made = wire::draft(header, body.size());
  made.writer.array(body);
  return std::move(made.message);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Server server({.tables = tables()});
  auto hello = std::make_shared<Answers>();
  handle(server, make_hello({.tables = tables()}, kIncarnation, 0, 1).bytes(), hello);
  check(hello->count == 1 && hello->good);
  // Bodies live until they are answered.
  std::vector<Message> requests;
  std::vector<std::shared_ptr<Answers>> all;
  if (size > 0 && data[0] == 0xff) {
    requests.emplace_back(size - 1);
    if (size > 1) std::memcpy(requests.back().data(), data + 1, size - 1);
    all.push_back(std::make_shared<Answers>());
    handle(server, requests.back().bytes(), all.back());
    size = 0;
  }
  while (size >= 4) {
    const std::size_t body = std::min<std::size_t>(data[2] | (data[3] << 8), size - 4);
    requests.push_back(draft(data[0], data[1], {data + 4, body}));
    all.push_back(std::make_shared<Answers>());
    handle(server, requests.back().bytes(), all.back());
    data += 4 + body;
    size -= 4 + body;
  }
  server.close();
  for (const auto& answers : all) check(answers->count <= 1);
  const auto stat = std::make_shared<Answers>();
  const Message looks = wire::draft({wire::Method::stat, wire::kObserver, 0, 1, 0, 0}, 0).message;
  handle(server, looks.bytes(), stat);
  check(stat->count == 1 && stat->good);
  return 0;
}
