// An Error as bytes, whole: kind, text, hint and context, each with its length.
#pragma once

#include <cstddef>
#include <span>

#include "ps/base/message.h"
#include "runtime/base/error.h"

namespace fleetrun::ps {

std::size_t encoded_size(const Error& error);
/// `out` has encoded_size() bytes.
void encode_error(const Error& error, Message& out);
/// Throws: Error(data) for bytes that are none.
Error decode_error(std::span<const std::byte> bytes);

}  // namespace fleetrun::ps
