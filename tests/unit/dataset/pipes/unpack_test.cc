#include "dataset/pipes/unpack.h"

#include <doctest/doctest.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "runtime/base/error.h"

namespace fleetrun::dataset {
namespace {

/// A text that comes in pieces.
class TextSource : public ByteSource {
 public:
  TextSource(std::string text, std::size_t piece) : text_(std::move(text)), piece_(piece) {}
  std::size_t read(std::span<char> room) override {
    const std::size_t bytes = std::min({piece_, room.size(), text_.size() - at_});
    std::memcpy(room.data(), text_.data() + at_, bytes);
    at_ += bytes;
    return bytes;
  }

 private:
  std::string text_;
  std::size_t piece_;
  std::size_t at_ = 0;
};

std::string gzip(const std::string& text) {
  z_stream stream{};
  REQUIRE(::deflateInit2(&stream, 1, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string out(::deflateBound(&stream, text.size()) + 100, 0);
  stream.next_in = reinterpret_cast<unsigned char*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<unsigned>(text.size());
  stream.next_out = reinterpret_cast<unsigned char*>(out.data());
  stream.avail_out = static_cast<unsigned>(out.size());
  REQUIRE(::deflate(&stream, Z_FINISH) == Z_STREAM_END);
  out.resize(stream.total_out);
  ::deflateEnd(&stream);
  return out;
}

std::string zstd(const std::string& text) {
  std::string out(::ZSTD_compressBound(text.size()), 0);
  out.resize(::ZSTD_compress(out.data(), out.size(), text.data(), text.size(), 1));
  return out;
}

std::string read_all(std::string packed, Packing packing, std::size_t piece, std::size_t room_size) {
  const auto source = unpacked(std::make_unique<TextSource>(std::move(packed), piece), packing, "part.x");
  std::string text;
  std::vector<char> room(room_size);
  while (const std::size_t bytes = source->read(room)) text.append(room.data(), bytes);
  CHECK(source->read(room) == 0);
  return text;
}

std::string error_of(std::string packed, Packing packing) {
  try {
    read_all(std::move(packed), packing, 5, 100);
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::data);
    CHECK(error.hint() == "a file whose name says how it is packed must be a whole file of that kind");
    return error.what();
  }
  return "no error";
}

std::string some_text(std::size_t size) {
  std::mt19937 random(5);
  std::string text;
  while (text.size() < size) text.append(std::to_string(random())).append(1, ' ');
  return text;
}

TEST_CASE("the end of the name says how a file is packed") {
  CHECK(packing_of("a.gz") == Packing::gzip);
  CHECK(packing_of("a.txt.zst") == Packing::zstd);
  CHECK_FALSE(packing_of("a.gz.txt"));
  CHECK_FALSE(packing_of("a.bz2"));
  CHECK_FALSE(packing_of("gz"));
}

TEST_CASE("packed bytes come out as they went in, however they are cut, one stream after the other") {
  const std::string text = some_text(100000);
  for (const Packing packing : {Packing::gzip, Packing::zstd}) {
    const auto pack = [&](const std::string& part) {
      return packing == Packing::gzip ? gzip(part) : zstd(part);
    };
    CHECK(read_all(pack(""), packing, 1, 10).empty());
    for (const std::size_t piece : {std::size_t{1}, std::size_t{7}, std::size_t{1} << 20})
      for (const std::size_t room : {std::size_t{3}, std::size_t{1} << 20})
        CHECK(read_all(pack(text) + pack("") + pack("more"), packing, piece, room) == text + "more");
  }
}

TEST_CASE("zeros that fill a block behind gzip streams are passed over, and bytes behind them are not") {
  const std::string text = some_text(1000), zeros(5000, 0);
  for (const std::size_t piece : {std::size_t{1}, std::size_t{7}, std::size_t{1} << 20}) {
    CHECK(read_all(gzip(text) + zeros, Packing::gzip, piece, 100) == text);
    CHECK(read_all(gzip(text) + zeros + gzip("more") + zeros, Packing::gzip, piece, 100) == text + "more");
  }
  CHECK(error_of(gzip(text) + zeros + "x", Packing::gzip).starts_with("part.x: "));
  CHECK(error_of(zeros, Packing::gzip).starts_with("part.x: is not in gzip format"));
}

TEST_CASE("an end in the middle, other bytes, and other bytes behind the end are faults with their place") {
  const std::string text = some_text(1000);
  const std::string gz = gzip(text), zst = zstd(text);
  CHECK(error_of("", Packing::gzip) == "part.x: ends in the middle of its gzip data, at byte 0");
  CHECK(error_of("", Packing::zstd) == "part.x: ends in the middle of its zstd data, at byte 0");
  CHECK(error_of(gz.substr(0, gz.size() - 1), Packing::gzip) ==
        "part.x: ends in the middle of its gzip data, at byte " + std::to_string(gz.size() - 1));
  CHECK(error_of(zst.substr(0, zst.size() - 1), Packing::zstd) ==
        "part.x: ends in the middle of its zstd data, at byte " + std::to_string(zst.size() - 1));
  CHECK(error_of("1 2 3\n", Packing::gzip)
            .starts_with("part.x: is not in gzip format: incorrect header check, at byte "));
  CHECK(error_of("1 2 3\n", Packing::zstd)
            .starts_with("part.x: is not in zstd format: Unknown frame descriptor"));
  CHECK(error_of(gz + "garbage", Packing::gzip).starts_with("part.x: is not in gzip format"));
  std::string changed = gz;
  changed[changed.size() / 2] = static_cast<char>(changed[changed.size() / 2] ^ 0x55);
  CHECK(error_of(changed, Packing::gzip).starts_with("part.x: is not in gzip format: "));
}

}  // namespace
}  // namespace fleetrun::dataset
