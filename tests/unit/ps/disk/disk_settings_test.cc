#include "ps/disk/disk_settings.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <string>

#include "tests/support/ps_tables.h"
#include "tests/support/temp_dir.h"

using namespace fleetrun::ps;
using fleetrun::Environ;
using fleetrun::tests::error_of;
using fleetrun::tests::sparse_table;
using fleetrun::tests::TempDir;

TEST_CASE("a server has a budget and a place on disk when a table needs them") {
  const TempDir directory;
  const Environ environ{{"FLEETRUN_PS_MEMORY", "10M"}, {"FLEETRUN_PS_DISK", directory.file("rows")}};
  TableConfig table = sparse_table(3, "t", 2);
  CHECK(table_memory_of(environ, {table}, 0).budget == nullptr);
  table.on_disk = true;
  const TableMemory memory = table_memory_of(environ, {sparse_table(1, "u", 2), table}, 0);
  REQUIRE(memory.budget != nullptr);
  CHECK(memory.budget->limit() == 10 << 20);
  const auto rows = memory.cold->open(table, 2);
  CHECK_FALSE(std::filesystem::is_empty(directory.file("rows")));
}

TEST_CASE("without a budget in the environment a part of the host's memory is one") {
  const TempDir directory;
  TableConfig table = sparse_table(3, "t", 2);
  table.on_disk = true;
  const TableMemory memory = table_memory_of({{"FLEETRUN_PS_DISK", directory.file("rows")}}, {table}, 0);
  CHECK(memory.budget->limit() >= std::uint64_t{1} << 20);
}

TEST_CASE("what is not an amount of memory is refused") {
  TableConfig table = sparse_table(3, "t", 2);
  table.on_disk = true;
  const fleetrun::Error error = error_of([&] {
    table_memory_of({{"FLEETRUN_PS_MEMORY", "lots"}}, {table}, 0);
  });
  CHECK(error.kind() == fleetrun::ErrorKind::config);
  CHECK(std::string(error.what()) == "FLEETRUN_PS_MEMORY=lots is not an amount of memory");
  CHECK(error.hint() == "write bytes, or a number with K, M, G or T: FLEETRUN_PS_MEMORY=16G");
}
