#include "launcher/host/program_digest.h"

#include <doctest/doctest.h>

#include "tests/support/temp_dir.h"

using namespace fleetrun::launcher;

TEST_CASE("programs are the same when their files are, wherever they lie") {
  const fleetrun::tests::TempDir folder;
  const auto program = [&](const std::string& name, const std::string& text) {
    const std::string path = folder.write(name, text);
    return Program{"/usr/bin/python3", {"python3", path}, "/usr/bin/python3", path};
  };
  const Program one = program("a.py", "print(1)\n"), same = program("b.py", "print(1)\n"),
                other = program("c.py", "print(2)\n");
  CHECK(digest_of({one}) == digest_of({same}));
  CHECK(digest_of({one}) != digest_of({other}));
  CHECK(digest_of({one, other}) != digest_of({other, one}));
  CHECK(digest_of({Program{"python3", {"python3", "-m", "train"}, "python3"}}) == 0);
  CHECK(digest_of({Program{"python3", {"python3", "."}, "python3", folder.file("")}}) == 0);
  CHECK(digest_of({Program{"python3", {"python3", "gone.py"}, "python3", folder.file("gone.py")}}) == 0);
}
