#include "ps/saving/manifest.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "ps/base/block_file.h"
#include "tests/support/ps_tables.h"
#include "tests/support/temp_dir.h"

using namespace fleetrun::ps;
using fleetrun::tests::error_of;
using fleetrun::tests::TempDir;
using fleetrun::tests::text_of;

namespace {

Manifest some_manifest() {
  return {0x0123456789abcdefull, SaveMode::delta, 7, "00ff", {{{4096, 0x89abcdef}, {18, 1}}, {}}};
}

Manifest manifest_of(std::uint64_t save, std::uint64_t generation, const std::string& run = "aa") {
  return {save, SaveMode::all, generation, run, {{{18, 1}}}};
}

std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void write_text(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

}  // namespace

TEST_CASE("a manifest is read as it was written") {
  const TempDir dir;
  commit_manifest(dir.path().string(), some_manifest(), 1);
  CHECK(read_manifest(dir.file("manifest")) == some_manifest());
  CHECK(
      read_text(dir.file("manifest"))
          .starts_with("fleetrun tables 2\nsave 0123456789abcdef\nmode 1\nepoch 0000000000000007\nrun 00ff\n"
                       "servers 2\npart 0 pieces 2\npiece 4096 0000000089abcdef\npiece 18 0000000000000001\n"
                       "part 1 pieces 0\nend "));
  CHECK(!read_manifest(dir.file("none")));
}

TEST_CASE("a manifest with any byte changed, missing or added is refused") {
  const TempDir dir;
  commit_manifest(dir.path().string(), some_manifest(), 0);
  const std::string text = read_text(dir.file("manifest"));
  const auto refused = [&](const std::string& other) {
    write_text(dir.file("manifest"), other);
    return error_of([&] { read_manifest(dir.file("manifest")); }).kind() == fleetrun::ErrorKind::data;
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::string other = text;
    other[i] = static_cast<char>(other[i] ^ (1 << i % 8));
    REQUIRE(refused(other));
    REQUIRE(refused(text.substr(0, i)));
  }
  CHECK(refused(text + "\n"));
  CHECK(refused(text + text));
}

TEST_CASE("a manifest that claims what cannot be is refused, and costs nothing") {
  const TempDir dir;
  const auto refusal = [&](const std::string& text) {
    write_text(dir.file("manifest"), text);
    return text_of([&] { read_manifest(dir.file("manifest")); });
  };
  const std::string damaged = dir.file("manifest") + ": the manifest is damaged";
  CHECK(refusal("") == damaged);
  CHECK(refusal("{\"a\":[[[[[[[[[[[[") == damaged);
  CHECK(refusal(std::string(100000, '[')) == damaged);
  CHECK(
      refusal("fleetrun tables 2\nsave -1\nservers 99999999999\npart 0 pieces 4294967295\nend 00000000\n") ==
      damaged);
  CHECK(refusal("fleetrun tables 2\npart 0 pieces 1\npiece ../../etc/passwd 0\nend 00000000\n") == damaged);
  CHECK(refusal("fleetrun tables 2\nrun " + std::string(5000, 'a') + "\nend 00000000\n") == damaged);
  CHECK(refusal("fleetrun tables 3\n") ==
        dir.file("manifest") + ": the tables are in format 3, this program reads 2");
  CHECK(refusal("fleetrun tables 1\nsave 1\n") ==
        dir.file("manifest") + ": the tables are in format 1, this program reads 2");
  std::filesystem::resize_file(dir.file("manifest"), std::uintmax_t{1} << 40);  // sparse
  CHECK(text_of([&] { read_manifest(dir.file("manifest")); }).find("more than the") != std::string::npos);
}

TEST_CASE("the save before the newest is kept as the previous one") {
  const TempDir dir;
  const std::string directory = dir.path().string();
  for (std::uint64_t save = 1; save <= 3; ++save) {
    // Each of two servers of one directory commits it.
    commit_manifest(directory, manifest_of(save, 0), 0);
    commit_manifest(directory, manifest_of(save, 0), 1);
  }
  CHECK(read_manifest(manifest_path(directory)) == manifest_of(3, 0));
  CHECK(read_manifest(previous_manifest_path(directory)) == manifest_of(2, 0));
  write_text(dir.file("manifest"), "damaged");
  commit_manifest(directory, manifest_of(4, 0), 0);
  CHECK(read_manifest(manifest_path(directory)) == manifest_of(4, 0));
  CHECK(read_manifest(previous_manifest_path(directory)) == manifest_of(2, 0));
}

TEST_CASE("an earlier world of the same run does not save over a later one") {
  const TempDir dir;
  const std::string directory = dir.path().string();
  commit_manifest(directory, manifest_of(1, 5), 0);
  const fleetrun::Error error = error_of([&] { commit_manifest(directory, manifest_of(2, 4), 0); });
  CHECK(error.kind() == fleetrun::ErrorKind::config);
  CHECK(std::string(error.what()) ==
        directory + " holds a save of the job's world 5; this server is of world 4");
  CHECK(error.hint() == "nothing is lost: the newer world continues");
  CHECK(read_manifest(manifest_path(directory)) == manifest_of(1, 5));
  commit_manifest(directory, manifest_of(2, 0, "bb"), 0);
  CHECK(read_manifest(manifest_path(directory)) == manifest_of(2, 0, "bb"));
}

TEST_CASE("numbers of saves go on after the highest file that is there") {
  const TempDir dir;
  const std::string directory = dir.path().string();
  CHECK(next_save(dir.file("none")) == 1);
  write_text(piece_path({directory, 0x1f, {}, 3, {}}, 0, 0), "x");
  write_text(piece_path({directory, 2, {}, 9, {}}, 0, 0), "x");
  write_text(dir.file("part-ffffffffffffffff"), "x");
  CHECK(next_save(directory) == 0x20);
}

TEST_CASE("only pieces that no manifest names and nobody writes are removed") {
  const TempDir dir;
  const std::string directory = dir.path().string();
  const auto piece = [&](std::uint64_t save, std::uint64_t generation) {
    return piece_path({directory, save, {}, generation, {}}, 0, 0);
  };
  commit_manifest(directory, manifest_of(1, 2), 0);
  commit_manifest(directory, manifest_of(2, 2), 0);
  const std::vector<std::string> kept{piece(1, 2), piece(2, 2), dir.file("part-notes"), dir.file("mine.txt"),
                                      dir.file("part-1-00000")};
  const std::vector<std::string> removed{piece(3, 2), piece(1, 1)};
  for (const auto& names : {kept, removed}) {
    for (const std::string& name : names) write_text(name, "x");
  }
  BlockWriter writing(piece(4, 2));
  remove_other_pieces(directory);
  for (const std::string& name : kept) CHECK(std::filesystem::exists(name));
  for (const std::string& name : removed) CHECK(!std::filesystem::exists(name));
  writing.check_still_there();
  write_text(removed[0], "x");
  std::filesystem::rename(manifest_path(directory), dir.file("taken"));
  remove_other_pieces(directory);
  CHECK(std::filesystem::exists(removed[0]));
  write_text(manifest_path(directory), "damaged");
  remove_other_pieces(directory);
  CHECK(std::filesystem::exists(removed[0]));
}

TEST_CASE("the modes are Paddle's numbers") {
  CHECK(save_mode_of(0) == SaveMode::all);
  CHECK(save_mode_of(3) == SaveMode::checkpoint);
  const fleetrun::Error error = error_of([] { save_mode_of(4); });
  CHECK(std::string(error.what()) == "there is no save mode 4");
  CHECK(error.hint() == "0 saves all, 1 a delta, 2 a base, 3 a checkpoint");
}

TEST_CASE("a manifest's digest tells it from others") {
  CHECK(digest_of(some_manifest()) == digest_of(some_manifest()));
  CHECK(digest_of(manifest_of(1, 2)) != digest_of(manifest_of(2, 2)));
}
