// Bytes that gzip or zstd packed, unpacked as they are read. Several packed streams one after the other are
// one, as for the programs of these names.
//
// Threads: one per source.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "dataset/pipes/byte_source.h"

namespace fleetrun::dataset {

enum class Packing { gzip, zstd };

/// What the end of a file's name says: .gz and .zst.
std::optional<Packing> packing_of(std::string_view file) noexcept;
/// "gzip" or "zstd": the program of the same name, too.
std::string_view to_string(Packing packing) noexcept;
/// The program that unpacks a file of another kind, by the end of its name: bzip2 for .bz2, xz for .xz; else
/// empty.
std::string_view unpacker_of(std::string_view file) noexcept;

/// The unpacked bytes of `packed`, which `file` names in errors. Throws (in read()): Error(data) for bytes
/// that are not packed so, and for an end in the middle; what `packed` throws.
std::unique_ptr<ByteSource> unpacked(std::unique_ptr<ByteSource> packed, Packing packing, std::string file);

}  // namespace fleetrun::dataset
