#include "ps/shm/error_text.h"

#include <string>

#include "ps/base/wire.h"

namespace fleetrun::ps {

std::size_t encoded_size(const Error& error) {
  std::size_t size =
      2 * sizeof(std::uint32_t) + wire::text_size(error.what()) + wire::text_size(error.hint());
  for (const std::string& context : error.context()) size += wire::text_size(context);
  return size;
}

void encode_error(const Error& error, Message& out) {
  Writer writer(out);
  writer.value(static_cast<std::uint32_t>(error.kind()));
  writer.value(static_cast<std::uint32_t>(error.context().size()));
  wire::write_text(writer, error.what());
  wire::write_text(writer, error.hint());
  for (const std::string& context : error.context()) wire::write_text(writer, context);
}

Error decode_error(std::span<const std::byte> bytes) {
  Reader reader(bytes);
  const auto kind = reader.value<std::uint32_t>();
  const auto contexts = reader.value<std::uint32_t>();
  if (kind > static_cast<std::uint32_t>(ErrorKind::data))
    throw Error(ErrorKind::data, "an error of an unknown kind");
  const std::string what = wire::read_text(reader);
  const std::string hint = wire::read_text(reader);
  Error out(static_cast<ErrorKind>(kind), what, hint);
  for (std::uint32_t i = 0; i < contexts; ++i) out.while_doing(wire::read_text(reader));
  return out;
}

}  // namespace fleetrun::ps
