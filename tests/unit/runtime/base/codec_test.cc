#include "runtime/base/codec.h"

#include <doctest/doctest.h>

#include "runtime/base/error.h"

namespace fleetrun {
namespace {

struct Point {
  std::int32_t x = 0;
  std::optional<std::string> name;
  bool operator==(const Point&) const = default;
};

struct Path {
  std::vector<Point> points;
  std::map<std::string, std::uint16_t> ports;
  std::chrono::milliseconds time{};
  std::variant<Point, Endpoint> end;
  bool is_closed = false;
  bool operator==(const Path&) const = default;
};

template <class Archive, class Value>
void fields(Archive& archive, Value& value, const Point*) {
  archive(value.x, value.name);
}

template <class Archive, class Value>
void fields(Archive& archive, Value& value, const Path*) {
  archive(value.points, value.ports, value.time, value.end, value.is_closed);
}

template <class Value>
std::string encoded(const Value& value) {
  codec::Writer writer;
  writer(value);
  return writer.take();
}

template <class Value>
Value decoded(std::string_view bytes) {
  codec::Reader reader(bytes);
  Value value;
  reader(value);
  reader.end();
  return value;
}

/// It is refused as data, or what was read takes no more bytes than there were.
bool read_or_refused(const std::string& bytes) {
  try {
    return encoded(decoded<Path>(bytes)).size() <= bytes.size();
  } catch (const Error& error) {
    return error.kind() == ErrorKind::data;
  }
}

const Path kPath{
    {{-2, "a"}, {3, std::nullopt}}, {{"ssh", 22}}, std::chrono::milliseconds(-5), Endpoint{"h1", 80}, true};

}  // namespace

TEST_CASE("a structure is what it was, in bytes that do not depend on the machine") {
  CHECK(decoded<Path>(encoded(kPath)) == kPath);
  CHECK(encoded(Point{-2, "a"}) == std::string("\xfe\xff\xff\xff\x01\x01\0\0\0a", 10));
  CHECK(encoded(kPath.end) == std::string("\x01\x02\0\0\0h1P\0", 9));
}

TEST_CASE("bytes that were cut, lengthened or changed are refused or read, never beyond their end") {
  const std::string bytes = encoded(kPath);
  for (std::size_t size = 0; size < bytes.size(); ++size)
    CHECK_THROWS_AS(decoded<Path>(std::string_view(bytes).substr(0, size)), Error);
  CHECK_THROWS_WITH_AS(decoded<Path>(bytes + "x"), "a message cannot be read: it is too long", Error);
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    for (const char value : {'\0', '\x02', '\x7f', '\xff'}) {
      std::string changed = bytes;
      changed[at] = value;
      CHECK(read_or_refused(changed));
    }
  }
}

TEST_CASE("a list is not made longer than its bytes allow") {
  const std::string million("\x40\x42\x0f\0", 4);
  CHECK_THROWS_WITH_AS(decoded<std::vector<std::int32_t>>(million + std::string(400, '\0')),
                       "a message cannot be read: a list is longer than its bytes", Error);
  CHECK_THROWS_AS(decoded<std::vector<std::string>>(million + std::string(400, '\0')), Error);
}

TEST_CASE("an identity takes 16 bytes, and each text has one form only") {
  const auto written = [](const std::string& id) {
    codec::Writer writer;
    writer.id(id);
    return writer.take();
  };
  const auto read = [](std::string_view bytes) {
    codec::Reader reader(bytes);
    std::string id;
    reader.id(id);
    return id;
  };
  const std::string id = "0123456789abcdef0123456789abcdef";
  CHECK(written(id).size() == 17);
  CHECK(read(written(id)) == id);
  CHECK(read(written("h1")) == "h1");
  CHECK_THROWS_AS(read(std::string("\0\x20\0\0\0", 5) + id), Error);
}

TEST_CASE("frames follow each other on a stream") {
  const std::string stream = codec::framed("one") + codec::framed("two");
  CHECK(codec::first_frame(stream, 1, 10) == "one");
  CHECK(codec::first_frame(stream.substr(7), 1, 10) == "two");
  CHECK_FALSE(codec::first_frame(stream.substr(0, 6), 1, 10));
  CHECK_THROWS_WITH_AS(codec::first_frame(stream, 1, 2), "a message cannot be read: it has 3 bytes", Error);
}

}  // namespace fleetrun
