#include "ps/base/wire.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "tests/support/ps_tables.h"

using namespace fleetrun::ps;
using fleetrun::tests::text_of;

namespace {

const wire::Sections kSections{.sparse = {{3, 2, 2}, {4, 1, 0}}, .dense = {{7, 0, 3}}};

Message make_push() {
  wire::PushDraft draft = wire::draft_push({wire::Method::push, 1, 2, 99}, kSections);
  draft.keys[0][0] = 5;
  draft.keys[0][1] = ~0ull;
  std::ranges::copy(std::vector<float>{1, 2, 3, 4}, draft.gradients[0].begin());
  std::ranges::copy(std::vector<float>{7, 8, 9}, draft.dense[0].begin());
  return std::move(draft.message);
}

}  // namespace

TEST_CASE("a push arrives as it was sent") {
  const Message message = make_push();
  Reader reader(message.bytes());
  CHECK(wire::read_header(reader) == wire::Header{wire::Method::push, 1, 2, 99});
  const wire::PushRequest push = wire::read_push(reader);
  CHECK(push.sections.sparse == kSections.sparse);
  CHECK(push.sections.dense == kSections.dense);
  CHECK(std::ranges::equal(push.keys[0], std::vector<std::uint64_t>{5, ~0ull}));
  CHECK(std::ranges::equal(push.gradients[0], std::vector<float>{1, 2, 3, 4}));
  CHECK(push.keys[1].empty());
  CHECK(push.gradients[1].empty());
  CHECK(std::ranges::equal(push.dense[0], std::vector<float>{7, 8, 9}));
  CHECK(push.copies.empty());
}

TEST_CASE("a push's rate travels with it, and is no table's") {
  wire::PushDraft draft = wire::draft_push({wire::Method::push, 1, 2, 99}, kSections, {.rate = 0.25f});
  CHECK(draft.dense.size() == 1);
  CHECK(draft.encoded.size() == kSections.sparse.size() + kSections.dense.size());
  const auto read = [&draft] {
    Reader reader(draft.message.bytes());
    wire::read_header(reader);
    return wire::read_push(reader);
  };
  CHECK(read().rate == 0.25f);
  CHECK(read().sections.dense == kSections.dense);
  CHECK(read().dense.size() == 1);
  const float nothing = std::nanf("");
  std::memcpy(draft.message.data() + draft.message.size() - sizeof nothing, &nothing, sizeof nothing);
  CHECK(text_of(read) == "the rate of a push is not one finite number");
}

TEST_CASE("shows and clicks travel with the sections that have them") {
  const wire::Sections sections{.sparse = {{3, 1, 2, wire::kStatistics, 9}, {4, 1, 1}}, .dense = {}};
  wire::PushDraft draft = wire::draft_push({wire::Method::push, 1, 2, 99}, sections);
  std::ranges::copy(std::vector<float>{1, 2}, draft.shows[0].begin());
  std::ranges::copy(std::vector<float>{0, 1}, draft.clicks[0].begin());
  CHECK(draft.shows[1].empty());
  Reader reader(draft.message.bytes());
  wire::read_header(reader);
  const wire::PushRequest push = wire::read_push(reader);
  CHECK(push.sections.sparse == sections.sparse);
  CHECK(std::ranges::equal(push.shows[0], std::vector<float>{1, 2}));
  CHECK(std::ranges::equal(push.clicks[0], std::vector<float>{0, 1}));
  CHECK(push.shows[1].empty());
  CHECK(push.clicks[1].empty());
}

TEST_CASE("a pull arrives as it was sent") {
  wire::PullDraft draft = wire::draft_pull({wire::Method::pull, 0, 0, 1}, kSections);
  draft.keys[0][0] = 8;
  draft.keys[0][1] = 9;
  Reader reader(draft.message.bytes());
  CHECK(wire::read_header(reader).method == wire::Method::pull);
  const wire::PullRequest pull = wire::read_pull(reader);
  CHECK(std::ranges::equal(pull.keys[0], std::vector<std::uint64_t>{8, 9}));
  CHECK(pull.sections.dense == kSections.dense);
}

TEST_CASE("a push that is cut anywhere is refused") {
  const Message message = make_push();
  for (std::size_t size = 0; size < message.size(); ++size) {
    Reader reader(message.bytes().first(size));
    CHECK(text_of([&] {
            wire::read_header(reader);
            wire::read_push(reader);
          }).starts_with("the message is cut short"));
  }
}

TEST_CASE("bytes left over are refused") {
  const Message message = make_push();
  std::vector<std::byte> longer(message.bytes().begin(), message.bytes().end());
  longer.resize(longer.size() + 5);
  Reader reader{std::span<const std::byte>(longer)};
  wire::read_header(reader);
  CHECK(text_of([&] { wire::read_push(reader); }) == "the message is 5 bytes longer than it announces");
}

TEST_CASE("what is no request, of another version, or unknown, is refused") {
  Message message = wire::draft({wire::Method::barrier, 0, 0, 0}, 0).message;
  const auto with = [&](std::size_t at, int value) {
    std::vector<std::byte> bytes(message.bytes().begin(), message.bytes().end());
    bytes[at] = static_cast<std::byte>(value);
    Reader reader{std::span<const std::byte>(bytes)};
    return text_of([&] { wire::read_header(reader); });
  };
  CHECK(with(0, 'X') == "not a request to a fleetrun parameter server");
  CHECK(with(4, 9) == "the request has protocol version 9, this server speaks 6");
  CHECK(with(6, 200) == "unknown method 200");
}

TEST_CASE("sizes whose product wraps around are refused") {
  wire::PushDraft draft = wire::draft_push({}, {.sparse = {{0, 1, 4}}, .dense = {}});
  // keys stays 4, the width becomes 2^32 - 1; then keys becomes 2^61 + 4, whose bytes wrap to 32.
  const auto read = [&] {
    Reader reader(draft.message.bytes());
    wire::read_header(reader);
    return text_of([&] { wire::read_push(reader); });
  };
  const std::size_t width_at = 40 + 8 + 4;
  const std::uint32_t width = ~0u;
  std::memcpy(draft.message.data() + width_at, &width, sizeof width);
  CHECK(read().starts_with("the message is cut short"));
  const std::uint64_t keys = (1ull << 61) + 4;
  std::memcpy(draft.message.data() + width_at + 4, &keys, sizeof keys);
  CHECK(read().starts_with("the message is cut short"));
}

TEST_CASE("a message that would be too long is not made") {
  CHECK(text_of([] {
          wire::draft_pull({wire::Method::pull}, {.sparse = {{0, 1, 1ull << 28}}, .dense = {}});
        }) == "pull needs a message of 2147483720 bytes; the longest one is 1073741824");
}

TEST_CASE("every method has a name") {
  for (std::uint16_t method = 0; method < wire::kMethodCount; ++method) {
    CHECK(wire::to_string(static_cast<wire::Method>(method)) != "an unknown method");
  }
  CHECK(wire::to_string(wire::Method::load_abort) == "load_abort");
  CHECK(wire::to_string(wire::Method::save_end) == "save_end");
}
