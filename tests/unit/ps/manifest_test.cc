// manifest.cc implements a part of ps/snapshot.h.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "ps/snapshot.h"
#include "tests/support/ps_tables.h"
#include "tests/support/temp_dir.h"

using namespace fleetrun::ps;
using fleetrun::tests::error_of;
using fleetrun::tests::text_of;

namespace {

const Manifest kManifest{0x0123456789abcdefull, {{4096, 0x89abcdef}, {4112, 0x1234567}}};

std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace

TEST_CASE("a manifest is read as it was written") {
  const fleetrun::tests::TempDir dir;
  write_manifest(dir.path().string(), kManifest, {1, 2});
  CHECK(read_manifest(dir.path().string()) == kManifest);
  CHECK(read_text(dir.file("manifest"))
            .starts_with("fleetrun tables 1\nsave 0123456789abcdef\npart 0 bytes 4096 checksum 89abcdef\n"
                         "part 1 bytes 4112 checksum 01234567\nend "));
}

TEST_CASE("a directory without a manifest holds no save") {
  const fleetrun::tests::TempDir dir;
  const fleetrun::Error error = error_of([&] { read_manifest(dir.path().string()); });
  CHECK(error.kind() == fleetrun::ErrorKind::data);
  CHECK(std::string(error.what()) ==
        dir.file("manifest") + ": cannot be opened; there is no complete save in " + dir.path().string());
}

TEST_CASE("a manifest with any byte changed, missing or added is refused") {
  const fleetrun::tests::TempDir dir;
  write_manifest(dir.path().string(), kManifest, {0, 2});
  const std::string text = read_text(dir.file("manifest"));
  const auto refused = [&](const std::string& other) {
    std::ofstream(dir.file("manifest"), std::ios::binary) << other;
    return text_of([&] { read_manifest(dir.path().string()); }) ==
           dir.file("manifest") + ": the manifest is damaged";
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::string other = text;
    other[i] = static_cast<char>(other[i] ^ (i % 2 == 0 ? 1 : 0x20));
    REQUIRE(refused(other));
    REQUIRE(refused(text.substr(0, i)));
  }
  CHECK(refused(text + "\n"));
}

TEST_CASE("only parts of other saves are removed, and only when there is a manifest") {
  const fleetrun::tests::TempDir dir;
  const std::vector<std::string> kept{"part-0123456789abcdef-00000", "part-notes", "mine.txt",
                                      "part-1-00000"};
  const std::vector<std::string> removed{"part-0000000000000001-00000", "part-0000000000000001-00001.tmp"};
  for (const auto& names : {kept, removed}) {
    for (const std::string& name : names) std::ofstream(dir.file(name)) << "x";
  }
  remove_other_parts(dir.path().string());
  for (const std::string& name : removed) CHECK(std::filesystem::exists(dir.file(name)));
  write_manifest(dir.path().string(), kManifest, {0, 2});
  remove_other_parts(dir.path().string());
  for (const std::string& name : removed) CHECK(!std::filesystem::exists(dir.file(name)));
  for (const std::string& name : kept) CHECK(std::filesystem::exists(dir.file(name)));
}
