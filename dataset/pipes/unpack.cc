#include "dataset/pipes/unpack.h"

#include <zlib.h>
#include <zstd.h>

#include <new>
#include <vector>

#include "runtime/base/error.h"

namespace fleetrun::dataset {
namespace {

constexpr std::size_t kPackedBytes = std::size_t{256} << 10;

/// One direction of zlib or libzstd: takes from the front of `packed` and fills the front of `room`.
class Unpacker {
 public:
  virtual ~Unpacker() = default;
  /// The bytes that it put into `room`; `fault` is set when the input is not packed so.
  virtual std::size_t unpack(std::span<const char>& packed, std::span<char> room, std::string& fault) = 0;
  /// Whether the input may end here.
  virtual bool is_whole() const noexcept = 0;
};

class GzipUnpacker : public Unpacker {
 public:
  GzipUnpacker() {
    constexpr int gzip_header = 16;
    if (::inflateInit2(&stream_, MAX_WBITS + gzip_header) != Z_OK) throw std::bad_alloc();
  }
  ~GzipUnpacker() override { ::inflateEnd(&stream_); }
  GzipUnpacker(const GzipUnpacker&) = delete;
  GzipUnpacker& operator=(const GzipUnpacker&) = delete;

  std::size_t unpack(std::span<const char>& packed, std::span<char> room, std::string& fault) override {
    // Zeros behind a stream fill a block of a tape or a store: gzip passes over them, too.
    while (whole_ && !packed.empty() && packed.front() == 0) packed = packed.subspan(1);
    if (whole_ && !packed.empty()) ::inflateReset(&stream_);
    stream_.next_in = reinterpret_cast<unsigned char*>(const_cast<char*>(packed.data()));
    stream_.avail_in = static_cast<unsigned>(packed.size());
    stream_.next_out = reinterpret_cast<unsigned char*>(room.data());
    stream_.avail_out = static_cast<unsigned>(room.size());
    if (packed.empty() && whole_) return 0;
    const int result = ::inflate(&stream_, Z_NO_FLUSH);
    packed = packed.subspan(packed.size() - stream_.avail_in);
    whole_ = result == Z_STREAM_END;
    if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR)
      fault = stream_.msg ? stream_.msg : "a fault of the data";
    return room.size() - stream_.avail_out;
  }
  bool is_whole() const noexcept override { return whole_; }

 private:
  z_stream stream_{};
  bool whole_ = false;
};

class ZstdUnpacker : public Unpacker {
 public:
  ZstdUnpacker() : stream_(::ZSTD_createDStream()) {
    if (!stream_) throw std::bad_alloc();
  }
  ~ZstdUnpacker() override { ::ZSTD_freeDStream(stream_); }
  ZstdUnpacker(const ZstdUnpacker&) = delete;
  ZstdUnpacker& operator=(const ZstdUnpacker&) = delete;

  std::size_t unpack(std::span<const char>& packed, std::span<char> room, std::string& fault) override {
    ZSTD_inBuffer in = {packed.data(), packed.size(), 0};
    ZSTD_outBuffer out = {room.data(), room.size(), 0};
    const std::size_t result = ::ZSTD_decompressStream(stream_, &out, &in);
    packed = packed.subspan(in.pos);
    if (::ZSTD_isError(result)) fault = ::ZSTD_getErrorName(result);
    if (in.pos > 0 || out.pos > 0) whole_ = result == 0;
    return out.pos;
  }
  bool is_whole() const noexcept override { return whole_; }

 private:
  ZSTD_DStream* stream_;
  bool whole_ = false;
};

class UnpackedSource : public ByteSource {
 public:
  UnpackedSource(std::unique_ptr<ByteSource> packed, Packing packing, std::string file)
      : source_(std::move(packed)), packing_(packing), file_(std::move(file)), buffer_(kPackedBytes) {
    if (packing == Packing::gzip)
      unpacker_ = std::make_unique<GzipUnpacker>();
    else
      unpacker_ = std::make_unique<ZstdUnpacker>();
  }

  std::size_t read(std::span<char> room) override {
    for (;;) {
      if (left_.empty() && !ended_) {
        const std::size_t bytes = source_->read(buffer_);
        ended_ = bytes == 0;
        left_ = {buffer_.data(), bytes};
        taken_ += bytes;
      }
      std::string fault;
      const std::size_t bytes = unpacker_->unpack(left_, room, fault);
      if (!fault.empty()) fail("is not in " + std::string(to_string(packing_)) + " format: " + fault);
      if (bytes > 0) return bytes;
      if (!ended_ || !left_.empty()) continue;
      if (!unpacker_->is_whole())
        fail("ends in the middle of its " + std::string(to_string(packing_)) + " data");
      return 0;
    }
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(ErrorKind::data, file_ + ": " + what + ", at byte " + std::to_string(taken_ - left_.size()),
                "a file whose name says how it is packed must be a whole file of that kind");
  }

  std::unique_ptr<ByteSource> source_;
  const Packing packing_;
  const std::string file_;
  std::vector<char> buffer_;
  std::span<const char> left_;
  std::uint64_t taken_ = 0;
  bool ended_ = false;
  std::unique_ptr<Unpacker> unpacker_;
};

}  // namespace

std::optional<Packing> packing_of(std::string_view file) noexcept {
  if (file.ends_with(".gz")) return Packing::gzip;
  if (file.ends_with(".zst")) return Packing::zstd;
  return std::nullopt;
}

std::string_view to_string(Packing packing) noexcept {
  return packing == Packing::gzip ? "gzip" : "zstd";
}

std::string_view unpacker_of(std::string_view file) noexcept {
  if (file.ends_with(".bz2")) return "bzip2";
  if (file.ends_with(".xz")) return "xz";
  return {};
}

std::unique_ptr<ByteSource> unpacked(std::unique_ptr<ByteSource> packed, Packing packing, std::string file) {
  return std::make_unique<UnpackedSource>(std::move(packed), packing, std::move(file));
}

}  // namespace fleetrun::dataset
