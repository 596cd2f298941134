#include "dataset/text/multi_slot_parser.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <utility>

namespace fleetrun::dataset {
namespace {

Slot ids(std::string name) {
  return {.name = std::move(name), .type = SlotType::int64, .dense = false, .width = 1};
}
Slot dense_ids(std::string name, std::int64_t width) {
  return {.name = std::move(name), .type = SlotType::int64, .dense = true, .width = width};
}
Slot dense_floats(std::string name, std::int64_t width) {
  return {.name = std::move(name), .type = SlotType::float32, .dense = true, .width = width};
}

/// f: two floats, s: any number of ids, y: one id.
std::vector<Slot> example_slots() {
  return {dense_floats("f", 2), ids("s"), dense_ids("y", 1)};
}

using Ints = std::vector<std::int64_t>;
using Floats = std::vector<float>;
using Offsets = std::vector<std::size_t>;

Batch parsed(const std::vector<Slot>& slots, std::string_view text) {
  Batch batch;
  const auto fault = parse_multi_slot(slots, text, batch);
  CAPTURE(text);
  REQUIRE_MESSAGE(!fault, (fault ? to_string(*fault) : ""));
  return batch;
}

std::string fault_of(const std::vector<Slot>& slots, std::string_view text) {
  Batch batch;
  const auto fault = parse_multi_slot(slots, text, batch);
  return fault ? to_string(*fault) : "none";
}

/// The batches and the fault that come of `text` cut into the pieces that `next_size` says.
template <class NextSize>
std::pair<std::vector<Batch>, std::string> streamed(const std::vector<Slot>& slots, std::string_view text,
                                                    std::size_t batch_size, NextSize next_size) {
  MultiSlotParser parser(slots);
  std::vector<Batch> batches;
  Batch batch;
  parser.begin_batch(batch, batch_size);
  bool ended = false;
  for (;;) {
    const auto outcome = parser.parse();
    if (outcome == MultiSlotParser::Outcome::bad) {
      parser.end_batch();
      batches.push_back(batch);
      return {batches, to_string(parser.fault())};
    }
    if (outcome == MultiSlotParser::Outcome::full) {
      parser.end_batch();
      batches.push_back(batch);
      parser.begin_batch(batch, batch_size);
      continue;
    }
    if (ended) break;
    const std::span<char> room = parser.room();
    const std::size_t bytes = std::min({static_cast<std::size_t>(next_size()), text.size(), room.size()});
    std::memcpy(room.data(), text.data(), bytes);
    parser.commit(bytes);
    text.remove_prefix(bytes);
    if (text.empty()) {
      parser.end_input();
      ended = true;
    }
  }
  if (parser.end_batch() > 0) batches.push_back(batch);
  return {batches, "none"};
}

TEST_CASE("the values of each slot, with the ends of the examples of a sparse one") {
  const Batch batch = parsed(example_slots(), "2 0.5 -1.25 3 7 8 9 1 1\n2 1e-3 nan 1 -3 1 0\n");
  CHECK(batch.rows == 2);
  CHECK(batch.slots[0].floats[0] == 0.5F);
  CHECK(batch.slots[0].floats[1] == -1.25F);
  CHECK(batch.slots[0].floats[2] == 1e-3F);
  CHECK(batch.slots[0].offsets.empty());
  CHECK(batch.slots[1].ints == Ints{7, 8, 9, -3});
  CHECK(batch.slots[1].offsets == Offsets{0, 3, 4});
  CHECK(batch.slots[2].ints == Ints{1, 0});
}

TEST_CASE("batches of two over three lines: the values that Paddle makes of its own sample") {
  const std::vector<Slot> slots = {ids("slot1"), ids("slot2"), ids("slot3"), ids("slot4")};
  const std::string_view text = "1 1 2 3 3 4 5 5 5 5 1 1\n1 2 2 3 4 4 6 6 6 6 1 2\n1 3 2 3 5 4 7 7 7 7 1 3\n";
  const auto [batches, fault] = streamed(slots, text, 2, [] { return 1000; });
  CHECK(fault == "none");
  REQUIRE(batches.size() == 2);
  CHECK(batches[0].rows == 2);
  CHECK(batches[0].slots[0].ints == Ints{1, 2});
  CHECK(batches[0].slots[1].ints == Ints{3, 3, 3, 4});
  CHECK(batches[0].slots[1].offsets == Offsets{0, 2, 4});
  CHECK(batches[0].slots[2].ints == Ints{5, 5, 5, 5, 6, 6, 6, 6});
  CHECK(batches[0].slots[2].offsets == Offsets{0, 4, 8});
  CHECK(batches[0].slots[3].ints == Ints{1, 2});
  CHECK(batches[1].rows == 1);
  CHECK(batches[1].slots[1].ints == Ints{3, 5});
  CHECK(batches[1].slots[2].ints == Ints{7, 7, 7, 7});
}

TEST_CASE("separators: several, tabs, carriage returns, at either end, and no last line feed") {
  const Batch plain = parsed(example_slots(), "2 0.5 1.5 2 7 8 1 1\n");
  for (const char* text : {"2 0.5 1.5 2 7 8 1 1", "2 0.5 1.5 2 7 8 1 1\r\n", "2\t0.5\t1.5\t2\t7\t8\t1\t1\t\n",
                           "  2  0.5   1.5 \t2 7\v8\f1 1   \n", "2 0.5 1.5 2 7 8 1 1\r"})
    CHECK(parsed(example_slots(), text) == plain);
}

TEST_CASE("ids keep all their 64 bits") {
  const Batch batch =
      parsed({ids("s")}, "5 0 -1 18446744073709551615 9223372036854775808 1234567890123456789\n");
  CHECK(batch.slots[0].ints == Ints{0, -1, -1, INT64_MIN, 1234567890123456789});
}

TEST_CASE("an empty text has no rows") {
  const Batch batch = parsed(example_slots(), "");
  CHECK(batch.rows == 0);
  CHECK(batch.slots[1].offsets == Offsets{0});
}

TEST_CASE("faults name line, column and slot") {
  struct Row {
    std::string_view text;
    std::string_view fault;
  };
  using namespace std::string_view_literals;
  const Row table[] = {
      {"\n", "1:1: the line is empty"},
      {" \t\r\n", "1:4: the line is empty"},
      {"2 1 2 1 7 1 1\n\n", "2:1: the line is empty"},
      {"0 1 7 1 1\n", "1:1: slot 'f': a count of 0; an example needs at least 1 value in each slot"},
      {"2 1 2 0 1 1\n", "1:7: slot 's': a count of 0; an example needs at least 1 value in each slot"},
      {"2 1 2 00 1 1\n", "1:7: slot 's': a count of 0; an example needs at least 1 value in each slot"},
      {"2 1 2 1 7\n", "1:10: slot 'y': the line ends before it"},
      {"2 1\n", "1:4: slot 'f': 2 values announced, the line ends after 1"},
      {"2 1 2 3 7 8\n2 1 2 1 7 1 1\n", "1:12: slot 's': 3 values announced, the line ends after 2"},
      {"3 1 2 3 1 7 1 1\n", "1:2: slot 'f': 3 values where its width is 2"},
      {"1 1 1 7 1 1\n", "1:2: slot 'f': 1 value where its width is 2"},
      {"2 1 2 1 7 1 1 9\n", "1:15: the line goes on with '9' after the last slot, 'y'"},
      {"2 1 2 1 7.9 1 1\n", "1:9: slot 's': '7.9' is not a whole number"},
      {"2 1 x 1 7 1 1\n", "1:5: slot 'f': 'x' is not a number"},
      {"2 1 0x 1 7 1 1\n", "1:5: slot 'f': '0x' is not a number"},
      {"2 1 1 1 0x10 1 1\n", "1:9: slot 's': '0x10' is not a whole number"},
      {"2 1 1,5 1 7 1 1\n", "1:5: slot 'f': '1,5' is not a number"},
      {"2 1 1e400 1 7 1 1\n", "1:5: slot 'f': '1e400' is too large for float32"},
      {"2 1 2 1 18446744073709551616 1 1\n", "1:9: slot 's': '18446744073709551616' does not fit 64 bits"},
      {"2 1 2 x 7 1 1\n", "1:7: slot 's': 'x' is not a count of values"},
      {"2 1 2 -1 7 1 1\n", "1:7: slot 's': '-1' is not a count of values"},
      {"2 1 2 +1 7 1 1\n", "1:7: slot 's': '+1' is not a count of values"},
      {"2 1 2 1.0 7 1 1\n", "1:7: slot 's': '1.0' is not a count of values"},
      {"2 1 2 99999999999999999999 1\n",
       "1:7: slot 's': the count '99999999999999999999' does not fit 64 bits"},
      {"2 1 2 2147483647 1\n", "1:19: slot 's': 2147483647 values announced, the line ends after 1"},
      {"2 1 2 18446744073709551615 1\n",
       "1:29: slot 's': 18446744073709551615 values announced, the line ends after 1"},
      {"2 1 2 1 7 1 1\n2 1 2 1 \xFF 1 1\n", "2:9: slot 's': '\\xFF' is not a whole number"},
      {"\xEF\xBB\xBF"
       "2 1 2 1 7 1 1\n",
       "1:1: slot 'f': '\\xEF\\xBB\\xBF"
       "2' is not a count of values"},
      {"2 1 2 1 7 1 1\r2 1 2 1 7 1 1\r", "1:15: the line goes on with '2' after the last slot, 'y'"},
      {"2 1 2 1 7\0 1 1\n"sv, "1:9: slot 's': '7\\x00' is not a whole number"},
      {"2 1 2 1 7 1 1\0\n"sv, "1:13: slot 'y': '1\\x00' is not a whole number"},
      {"2 1 2 1 7 1 1 \0\n"sv, "1:15: the line goes on with '\\x00' after the last slot, 'y'"},
  };
  for (const Row& row : table) {
    CAPTURE(row.text);
    CHECK(fault_of(example_slots(), row.text) == row.fault);
  }
}

TEST_CASE("an unused slot is passed over, whatever its values are, and has no place in the batch") {
  std::vector<Slot> slots = example_slots();
  slots[1].used = false;
  const Batch batch = parsed(slots, "2 0.5 1 3 x 7.9 \xFF 1 1\n2 1.5 2\t1\t-\t1 0\r\n");
  REQUIRE(batch.slots.size() == 2);
  CHECK(batch.slots[0].floats == Floats{0.5F, 1, 1.5F, 2});
  CHECK(batch.slots[1].ints == Ints{1, 0});
  slots = {ids("a"), dense_ids("b", 2)};
  slots[1].used = false;
  CHECK(parsed(slots, "1 7 1 no").slots[0].ints == Ints{7});
  CHECK(fault_of(slots, "1 7 2 8\n") == "1:8: slot 'b': 2 values announced, the line ends after 1");
  CHECK(fault_of(slots, "1 7 0\n") ==
        "1:5: slot 'b': a count of 0; an example needs at least 1 value in each slot");
  CHECK(fault_of(slots, "1 7\n") == "1:4: slot 'b': the line ends before it");
  CHECK(fault_of(slots, "1 7 1 a b\n") == "1:9: the line goes on with 'b' after the last slot, 'b'");
  CHECK(fault_of(slots, std::string_view("1 7 1 a\0b\n", 10)) == "1:7: slot 'b': 'a\\x00b' has a NUL byte");
}

TEST_CASE("prefixes: an id, a content and a log key, one per row, cut with the rows") {
  const std::vector<Slot> slots = {ids("s")};
  Batch batch;
  const std::string key = "00000000000" + std::string("1ff") + "0a" + "ffffffffffffffff" + "77";
  REQUIRE_FALSE(
      parse_multi_slot(slots, "1 one 1 #1,x 2 7 8\n1\ttwo  1 b 1 9", batch, {.id = true, .content = true}));
  CHECK(batch.prefixes.ids == std::vector<std::string>{"one", "two"});
  CHECK(batch.prefixes.contents == std::vector<std::string>{"#1,x", "b"});
  CHECK(batch.prefixes.log_keys.empty());
  CHECK(batch.slots[0].ints == Ints{7, 8, 9});
  const std::string text = "1 " + key + " 1 7\n1 short 1 7\n";
  const auto fault = parse_multi_slot(slots, text, batch, {.log_key = true});
  REQUIRE(fault);
  CHECK(to_string(*fault) == "2:3: 'short' is not a log key of 32 or more hexadecimal digits");
  CHECK(batch.prefixes.log_keys == std::vector<LogKey>{{UINT64_MAX, 0x1ff, 0x0a}});
  CHECK(batch.prefixes.ids == std::vector<std::string>{key});
  CHECK(batch.prefixes.contents.empty());
}

TEST_CASE("a prefix that is not there is a fault of the line") {
  const std::vector<Slot> slots = {ids("s")};
  using namespace std::string_view_literals;
  const auto fault_with_id = [&](std::string_view text) {
    Batch batch;
    const auto fault = parse_multi_slot(slots, text, batch, {.id = true});
    return fault ? to_string(*fault) : "none";
  };
  CHECK(fault_with_id("2 7 8\n") == "1:1: '2' where '1' announces the line's id");
  CHECK(fault_with_id("1\n") == "1:2: the line ends before its id");
  CHECK(fault_with_id("1 a\n") == "1:4: slot 's': the line ends before it");
  CHECK(fault_with_id("\n") == "1:1: the line is empty");
  CHECK(fault_with_id("1 \0 1 7\n"sv) == "1:3: '\\x00' has a NUL byte");
}

TEST_CASE("the rows before a bad line stay, nothing of the bad line does") {
  Batch batch;
  REQUIRE(parse_multi_slot(example_slots(), "2 1 2 2 7 8 1 1\n2 3 4 2 9 10 1 x\n", batch));
  CHECK(batch == parsed(example_slots(), "2 1 2 2 7 8 1 1\n"));
}

TEST_CASE("a line of the greatest length is read, one byte more is a fault, cut or whole") {
  const std::string fits = std::string("1 7").append(97, ' ');
  for (const std::size_t piece : {std::size_t{7}, std::size_t{1000}}) {
    for (const bool line_feed : {true, false}) {
      for (const bool garbage : {true, false}) {
        for (const std::size_t extra : {0, 1, 50}) {
          CAPTURE(piece);
          CAPTURE(extra);
          const std::vector<Slot> slots = {ids("s")};
          MultiSlotParser parser(slots, {.max_line_bytes = 100});
          Batch batch;
          parser.begin_batch(batch, 10);
          std::string text = fits + std::string(extra, ' ') + (line_feed ? "\n" : "");
          if (garbage && extra > 0) text[1] = 'x';
          auto outcome = MultiSlotParser::Outcome::more;
          for (std::size_t at = 0; at < text.size() && outcome == MultiSlotParser::Outcome::more;
               at += piece) {
            const std::size_t bytes = std::min(piece, text.size() - at);
            std::memcpy(parser.room().data(), text.data() + at, bytes);
            parser.commit(bytes);
            outcome = parser.parse();
          }
          if (outcome == MultiSlotParser::Outcome::more) {
            parser.end_input();
            outcome = parser.parse();
          }
          if (extra == 0) {
            CHECK(outcome == MultiSlotParser::Outcome::more);
            CHECK(parser.end_batch() == 1);
          } else {
            REQUIRE(outcome == MultiSlotParser::Outcome::bad);
            CHECK(to_string(parser.fault()) == "1:101: the line is longer than 100 bytes");
          }
        }
      }
    }
  }
}

TEST_CASE("behind a bad line the next one is read, wherever the bytes are cut") {
  const std::vector<Slot> slots = {ids("s")};
  const std::string text = "1 7\n1 x\n\n1 8\n" + std::string(300, '9') + "\n1 9\n2 5";
  for (std::size_t piece = 1; piece <= text.size(); ++piece) {
    MultiSlotParser parser(slots, {.max_line_bytes = 100});
    Batch batch;
    std::vector<std::string> faults;
    parser.begin_batch(batch, 10);
    bool ended = false;
    for (std::size_t at = 0;;) {
      const auto outcome = parser.parse();
      REQUIRE(outcome != MultiSlotParser::Outcome::full);
      if (outcome == MultiSlotParser::Outcome::bad) {
        faults.push_back(to_string(parser.fault()));
        parser.skip_bad_line();
        continue;
      }
      if (ended) break;
      const std::size_t bytes = std::min(piece, text.size() - at);
      std::memcpy(parser.room().data(), text.data() + at, bytes);
      parser.commit(bytes);
      at += bytes;
      if (at == text.size()) parser.end_input();
      ended = at == text.size();
    }
    parser.end_batch();
    CAPTURE(piece);
    REQUIRE(batch.slots[0].ints == Ints{7, 8, 9});
    REQUIRE(batch.slots[0].offsets == Offsets{0, 1, 2, 3});
    REQUIRE(faults == std::vector<std::string>{"2:3: slot 's': 'x' is not a whole number",
                                               "3:1: the line is empty",
                                               "5:101: the line is longer than 100 bytes",
                                               "7:4: slot 's': 2 values announced, the line ends after 1"});
  }
}

TEST_CASE("a line of 64 MB is a fault after 16 MiB, and what is behind it is read") {
  const std::vector<Slot> slots = {ids("s")};
  MultiSlotParser parser(slots);
  Batch batch;
  parser.begin_batch(batch, 10);
  std::size_t max = 0;
  int faults = 0;
  for (std::size_t left = std::size_t{64} << 20; left > 0;) {
    const std::span<char> room = parser.room();
    const std::size_t bytes = std::min(room.size(), left);
    max = std::max(max, bytes);
    std::memset(room.data(), '1', bytes);
    parser.commit(bytes);
    left -= bytes;
    if (parser.parse() == MultiSlotParser::Outcome::bad) {
      ++faults;
      CHECK(to_string(parser.fault()) == "1:16777217: the line is longer than 16777216 bytes");
      parser.skip_bad_line();
    }
  }
  CHECK(faults == 1);
  CHECK(max <= 2 * kMaxLineBytes);
  std::memcpy(parser.room().data(), "\n1 5\n", 5);
  parser.commit(5);
  CHECK(parser.parse() == MultiSlotParser::Outcome::more);
  CHECK(parser.end_batch() == 1);
  CHECK(batch.slots[0].ints == Ints{5});
}

TEST_CASE("packed bytes at the start of an input are named") {
  Batch batch;
  for (const char* text : {"\x1F\x8B\x08 1\n1 7\n", "\x28\xB5\x2F\xFD 1\n"}) {
    const auto fault = parse_multi_slot(std::vector<Slot>{ids("s")}, text, batch);
    REQUIRE(fault);
    CHECK(fault->packed);
    CHECK(to_string(*fault) == (text[0] == '\x1F' ? "1:1: gzip bytes where text should be"
                                                  : "1:1: zstd bytes where text should be"));
  }
  const auto later = parse_multi_slot(std::vector<Slot>{ids("s")}, "1 7\n\x1F\x8B\n", batch);
  REQUIRE(later);
  CHECK_FALSE(later->packed);
}

TEST_CASE("a count in the text allocates nothing") {
  Batch batch;
  REQUIRE(parse_multi_slot(std::vector<Slot>{ids("s")}, "2147483647 1\n", batch));
  CHECK(batch.slots[0].ints.capacity() < 100000);
}

TEST_CASE("wherever the bytes are cut, the batches and the fault are the same") {
  const std::string_view samples[] = {
      "2 0.5 -1.25 3 7 8 9 1 1\n2 1e-3 4 1 -3 1 0\r\n2 12345.678 1 2 123456789012345678 4 1 1",
      "2 0.5 1.25 1 7 1 1\n2 0.5 1.25 1 7 1 1 5\n2 0.5 1.25 1 7 1 1\n",
      "2 0.5 1.25 1 7 1 1\n\n",
      "2 0.5 1.25 1 7 1",
  };
  for (const std::string_view text : samples) {
    for (const std::size_t batch_size : {1, 2, 5}) {
      const auto whole = streamed(example_slots(), text, batch_size, [] { return 100000; });
      for (std::size_t cut = 0; cut <= text.size(); ++cut) {
        bool first = true;
        const auto parts = streamed(example_slots(), text, batch_size, [&] {
          return std::exchange(first, false) ? std::max<std::size_t>(cut, 1) : std::size_t{100000};
        });
        REQUIRE(parts == whole);
      }
      REQUIRE(streamed(example_slots(), text, batch_size, [] { return 1; }) == whole);
    }
  }
}

TEST_CASE("random text of many lines, cut at random, over refilled batches") {
  std::mt19937 random(3);
  std::string text;
  for (int line = 0; line < 5000; ++line) {
    text.append("2 ").append(std::to_string(random() % 1000)).append(".");
    text.append(std::to_string(random() % 100000)).append(" 0.25 ");
    const unsigned count = 1 + random() % 5;
    text += std::to_string(count);
    for (unsigned i = 0; i < count; ++i) text.append(" ").append(std::to_string(random() >> (random() % 32)));
    text.append(" 1 ").append(std::to_string(random() % 2)).append("\n");
  }
  const auto whole = streamed(example_slots(), text, 1000, [] { return 1000000; });
  CHECK(whole.second == "none");
  CHECK(whole.first.size() == 5);
  for (int round = 0; round < 20; ++round)
    REQUIRE(streamed(example_slots(), text, 1000, [&] { return 1 + random() % 5000; }) == whole);
}

}  // namespace
}  // namespace fleetrun::dataset
