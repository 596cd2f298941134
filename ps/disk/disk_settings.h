// What the environment says about the rows of tables whose cold rows may leave memory:
//
//   FLEETRUN_PS_MEMORY  how much memory their rows may take together on one server: bytes, or with K, M, G or
//                       T (1024s). Default: a quarter of the host's memory,
//                       or of the control group's when that is less
//   FLEETRUN_PS_DISK    the directory for those beyond it, best on a local SSD. Default: /var/tmp
//
// RocksDB has a sixteenth as much for itself, from 16 MiB to 1 GiB, in addition.
#pragma once

#include <cstdint>
#include <vector>

#include "ps/base/table_config.h"
#include "ps/table/table_memory.h"
#include "runtime/base/environ.h"

namespace fleetrun::ps {

/// Nothing when no table needs it.
/// Throws: Error(config) for a value that is none; Error(host) naming the directory.
TableMemory table_memory_of(const Environ& environ, const std::vector<TableConfig>& tables,
                            std::uint32_t rank);

}  // namespace fleetrun::ps
