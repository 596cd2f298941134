#include "launcher/remote/agent_channel.h"

#include <algorithm>
#include <type_traits>

#include "launcher/remote/wire.h"
#include "runtime/base/error.h"

namespace fleetrun::launcher::remote {
namespace {

constexpr std::size_t kHeader = 5;  // host and type

void write_host(Writer& writer, const RemoteHost& host) {
  writer.string(host.user);
  writer.string(host.name);
  writer.u32(host.port);
}

RemoteHost read_host(Reader& reader) {
  RemoteHost host;
  host.user = reader.string();
  host.name = reader.string();
  host.port = static_cast<std::uint16_t>(reader.u32());
  return host;
}

void write(Writer& writer, const Hello& hello) {
  writer.u32(hello.protocol);
  writer.string(hello.version);
  writer.string(hello.connection);
  writer.string(hello.host);
}
void write(Writer& writer, const Order& order) {
  writer.string(order.bytes);
}
void write(Writer& writer, const Start& start) {
  writer.u32(static_cast<std::uint32_t>(start.hosts.size()));
  for (std::size_t i = 0; i < start.hosts.size(); ++i) {
    writer.u32(start.numbers[i]);
    write_host(writer, start.hosts[i]);
  }
  writer.strings(start.ssh);
  writer.string(start.program);
  writer.i32(start.window);
}
void write(Writer& writer, const Verdict& verdict) {
  writer.string(verdict.reason);
  writer.string(verdict.hint);
}
void write(Writer& writer, const Gone& gone) {
  writer.string(gone.why);
}
void write(Writer& writer, const Signal& signal) {
  writer.i32(signal.number);
}
void write(Writer& writer, const Output& output) {
  writer.string(output.bytes);
}
void write(Writer& writer, const Log& log) {
  writer.string(log.level);
  writer.string(log.text);
}
void write(Writer& writer, const Ended& ended) {
  writer.i32(ended.status);
  writer.string(ended.screen);
}
void write(Writer& writer, const Collect& collect) {
  writer.string(collect.marker);
}
void write(Writer& writer, const File& file) {
  writer.string(file.path);
  writer.string(file.bytes);
  writer.boolean(file.first);
}
void write(Writer& writer, const FilesEnd& end) {
  writer.string(end.error);
}
void write(Writer&, const Bye&) {}

void read(Reader& reader, Hello& hello) {
  hello.protocol = reader.u32();
  hello.version = reader.string();
  hello.connection = reader.string();
  hello.host = reader.string();
}
void read(Reader& reader, Order& order) {
  order.bytes = reader.string();
}
void read(Reader& reader, Start& start) {
  constexpr std::size_t kMin = 16;  // of a number, two lengths and a port
  for (std::size_t left = reader.count(kMin); left > 0; --left) {
    start.numbers.push_back(reader.u32());
    start.hosts.push_back(read_host(reader));
  }
  start.ssh = reader.strings();
  start.program = reader.string();
  start.window = reader.i32();
}
void read(Reader& reader, Verdict& verdict) {
  verdict.reason = reader.string();
  verdict.hint = reader.string();
}
void read(Reader& reader, Gone& gone) {
  gone.why = reader.string();
}
void read(Reader& reader, Signal& signal) {
  signal.number = reader.i32();
}
void read(Reader& reader, Output& output) {
  output.bytes = reader.string();
}
void read(Reader& reader, Log& log) {
  log.level = reader.string();
  log.text = reader.string();
}
void read(Reader& reader, Ended& ended) {
  ended.status = reader.i32();
  ended.screen = reader.string();
}
void read(Reader& reader, Collect& collect) {
  collect.marker = reader.string();
}
void read(Reader& reader, File& file) {
  file.path = reader.string();
  file.bytes = reader.string();
  file.first = reader.boolean();
}
void read(Reader& reader, FilesEnd& end) {
  end.error = reader.string();
}
void read(Reader&, Bye&) {}

/// The alternative with the index `type`, read.
template <std::size_t Index = 0>
Message read_message(std::size_t type, Reader& reader) {
  if constexpr (Index == std::variant_size_v<Message>) {
    throw Error(ErrorKind::data, "a launcher's message is of a kind that does not exist");
  } else {
    if (type != Index) return read_message<Index + 1>(type, reader);
    std::variant_alternative_t<Index, Message> message;
    read(reader, message);
    reader.end();
    return message;
  }
}

}  // namespace

std::string encode(const Addressed& frame) {
  Writer body;
  body.u32(frame.host);
  body.u8(static_cast<std::uint8_t>(frame.message.index()));
  std::visit([&](const auto& message) { write(body, message); }, frame.message);
  Writer whole;
  whole.string(body.take());
  return whole.take();
}

bool ChannelDecoder::find_marker() {
  const std::size_t found = buffer_.find(kMarker);
  if (found != std::string::npos) {
    buffer_.erase(0, found + kMarker.size());
    return marked_ = true;
  }
  if (buffer_.size() > kLongestNoise)
    throw Error(ErrorKind::data, "the host prints without end before fleetrun is started there");
  return false;
}

std::optional<Addressed> ChannelDecoder::next() {
  constexpr std::size_t kLength = 4;
  if (!marked_ && !find_marker()) return std::nullopt;
  if (buffer_.size() < kLength) return std::nullopt;
  const std::size_t length = Reader(buffer_).u32();
  if (length < kHeader || length > longest_)
    throw Error(ErrorKind::data, "a launcher's message of " + std::to_string(length) + " bytes");
  if (buffer_.size() < kLength + length) return std::nullopt;
  Reader reader(std::string_view(buffer_).substr(kLength, length));
  Addressed frame;
  frame.host = reader.u32();
  const std::uint8_t type = reader.u8();
  frame.message = read_message(type, reader);
  buffer_.erase(0, kLength + length);
  return frame;
}

}  // namespace fleetrun::launcher::remote
