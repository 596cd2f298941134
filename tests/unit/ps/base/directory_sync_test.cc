#include "ps/base/directory_sync.h"

#include <doctest/doctest.h>

#include "tests/support/ps_tables.h"
#include "tests/support/temp_dir.h"

using fleetrun::ps::sync_directory;

TEST_CASE("a directory is synced, and one that is not there is named") {
  const fleetrun::tests::TempDir dir;
  sync_directory(dir.path().string());
  CHECK(fleetrun::tests::text_of([] { sync_directory("/no/such/place"); }) ==
        "/no/such/place: No such file or directory (open)");
}
