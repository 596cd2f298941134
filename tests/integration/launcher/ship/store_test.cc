#include "launcher/ship/store.h"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <thread>

#include <doctest/doctest.h>

#include "launcher/ship/read_tree.h"
#include "launcher/ship/sender.h"
#include "launcher/ship/start_script.h"
#include "runtime/base/codec.h"
#include "runtime/base/error.h"
#include "tests/support/temp_dir.h"

using namespace fleetrun;
using namespace fleetrun::launcher::ship;
namespace fs = std::filesystem;

namespace {

std::string content(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

/// A folder here, and a store as a host has it.
struct Trip {
  tests::TempDir here, there;
  TreeChoice choice;
  bool removed = false;

  Trip() {
    fs::create_directories(here.path() / "job/sub");
    here.write("job/a.py", "one");
    here.write("job/sub/b.txt", "two");
    here.write("job/empty", "");
  }

  std::shared_ptr<Cargo> cargo() const {
    auto cargo = std::make_shared<Cargo>();
    cargo->list.prefix = "from/me@h1";
    cargo->list.removed = removed;
    for (const char* part : {"from", "from/me@h1"}) {
      cargo->list.items.push_back({Kind::directory, part, 0700, 0, 0, 0, ""});
      cargo->sources.push_back("/");
    }
    add_tree(*cargo, here.file("job"), choice);
    return cargo;
  }

  fs::path place() const { return there.path() / "from/me@h1" / here.file("job").substr(1); }

  /// How many files were sent.
  std::size_t send(Store& store) const {
    const auto whole = cargo();
    // Over the wire and back.
    codec::Writer writer;
    writer(whole->list);
    const std::string bytes = writer.take();
    codec::Reader reader(bytes);
    List list;
    reader(list);
    reader.end();
    REQUIRE(list == whole->list);
    Sender sender(whole, store.begin(list));
    std::size_t files = 0;
    std::optional<std::uint32_t> last;
    while (auto piece = sender.next()) {
      files += last == piece->item ? 0 : 1;
      last = piece->item;
      store.take(*piece);
    }
    CHECK(sender.sent() == sender.total());
    REQUIRE(store.is_whole());
    store.finish();
    return files;
  }
  std::size_t send() const {
    Store store(there.path().string());
    return send(store);
  }
};

}  // namespace

TEST_CASE("a folder comes as it is, and the second time nothing is sent") {
  Trip trip;
  fs::permissions(trip.here.path() / "job/a.py", fs::perms::owner_all);
  fs::create_symlink("sub/b.txt", trip.here.path() / "job/link");
  fs::create_symlink(trip.here.file("job/sub"), trip.here.path() / "job/whole");
  trip.here.write("outside", "from outside");
  fs::create_symlink("../outside", trip.here.path() / "job/followed");
  CHECK(trip.send() == 4);
  CHECK(content(trip.place() / "a.py") == "one");
  CHECK((fs::status(trip.place() / "a.py").permissions() & fs::perms::owner_exec) != fs::perms::none);
  CHECK(fs::last_write_time(trip.place() / "a.py") == fs::last_write_time(trip.here.path() / "job/a.py"));
  CHECK(fs::file_size(trip.place() / "empty") == 0);
  CHECK(content(trip.place() / "link") == "two");
  CHECK(content(trip.place() / "whole/b.txt") == "two");
  CHECK(fs::read_symlink(trip.place() / "whole") == trip.place() / "sub");
  CHECK(content(trip.place() / "followed") == "from outside");
  CHECK_FALSE(fs::is_symlink(trip.place() / "followed"));
  CHECK(trip.send() == 0);
}

TEST_CASE("only what differs is sent, by content") {
  Trip trip;
  CHECK(trip.send() == 3);
  const auto time = fs::last_write_time(trip.here.path() / "job/a.py");
  trip.here.write("job/a.py", "uno");  // of the same size, and as old
  fs::last_write_time(trip.here.path() / "job/a.py", time);
  CHECK(trip.send() == 1);
  CHECK(content(trip.place() / "a.py") == "uno");
  fs::last_write_time(trip.here.path() / "job/a.py",
                      time - std::chrono::hours(1));  // as if it were another one
  CHECK(trip.send() == 0);
  CHECK(fs::last_write_time(trip.place() / "a.py") == time - std::chrono::hours(1));
  std::ofstream(trip.place() / "sub/b.txt") << "2wo";  // somebody there
  CHECK(trip.send() == 1);
  CHECK(content(trip.place() / "sub/b.txt") == "two");
  fs::remove(trip.there.path() / "from/me@h1.index");
  CHECK(trip.send() == 0);
}

TEST_CASE("what is gone here goes there, and what was made there stays") {
  Trip trip;
  trip.send();
  std::ofstream(trip.place() / "model") << "weights";
  std::ofstream(trip.place() / "sub/b.txt") << "changed there";
  fs::remove(trip.here.path() / "job/a.py");
  fs::remove(trip.here.path() / "job/sub/b.txt");
  CHECK(trip.send() == 0);
  CHECK_FALSE(fs::exists(trip.place() / "a.py"));
  CHECK(content(trip.place() / "sub/b.txt") == "changed there");
  CHECK(content(trip.place() / "model") == "weights");
}

TEST_CASE("a file may become a folder, and a folder a file") {
  Trip trip;
  trip.send();
  fs::remove(trip.here.path() / "job/a.py");
  fs::create_directory(trip.here.path() / "job/a.py");
  trip.here.write("job/a.py/in", "deep");
  fs::remove_all(trip.here.path() / "job/sub");
  trip.here.write("job/sub", "flat");
  trip.send();
  CHECK(content(trip.place() / "a.py/in") == "deep");
  CHECK(content(trip.place() / "sub") == "flat");
}

TEST_CASE("what others make anew, environments and named patterns stay here") {
  Trip trip;
  for (const char* folder : {"job/.git", "job/__pycache__", "job/env", "job/sub/data", "job/log"}) {
    fs::create_directories(trip.here.path() / folder);
    trip.here.write(std::string(folder) + "/x", "x");
  }
  trip.here.write("job/env/pyvenv.cfg", "home = /usr/bin");
  trip.here.write("job/c.ckpt", "x");
  trip.choice.left_out = {"*.ckpt", "sub/data"};
  trip.choice.not_inside = {trip.here.file("job/log")};
  CHECK(trip.send() == 3);
}

TEST_CASE("what was sent is removed, and nothing else") {
  Trip trip;
  trip.removed = true;
  {
    Store store(trip.there.path().string());
    trip.send(store);
    std::ofstream(trip.place() / "model") << "weights";
    std::ofstream(trip.place() / "a.py") << "edited there";
    store.remove();
  }
  CHECK(content(trip.place() / "model") == "weights");
  CHECK(content(trip.place() / "a.py") == "edited there");
  CHECK_FALSE(fs::exists(trip.place() / "sub"));
  CHECK_FALSE(fs::exists(trip.place() / "empty"));
}

TEST_CASE("nothing is removed while another job uses it") {
  Trip trip;
  Store other(trip.there.path().string()), store(trip.there.path().string());
  trip.send(store);
  store.remove();
  CHECK(content(trip.place() / "a.py") == "one");
}

TEST_CASE("what was sent is removed when another job lets go of it") {
  Trip trip;
  std::optional<Store> other(std::in_place, trip.there.path().string());
  Store store(trip.there.path().string());
  trip.send(store);
  std::thread removing([&] { store.remove(); });
  other.reset();
  removing.join();
  CHECK_FALSE(fs::exists(trip.place() / "a.py"));
}

TEST_CASE("a file that changes on its way is refused and does not lie there") {
  Trip trip;
  const auto cargo = trip.cargo();
  Store store(trip.there.path().string());
  Sender sender(cargo, store.begin(cargo->list));
  trip.here.write("job/a.py", "ONE");
  CHECK_THROWS_WITH_AS(while (auto piece = sender.next()) store.take(*piece),
                       doctest::Contains("a.py changed while it was sent"), Error);
  CHECK_FALSE(fs::exists(trip.place() / "a.py"));
}

TEST_CASE("a list that leads out of the store is refused") {
  tests::TempDir there;
  for (const char* path : {"../x", "/etc/x", "a/../../x", "", "a//b"}) {
    Store store(there.path().string());
    List list;
    list.prefix = "from/me@h1";
    list.items.push_back({Kind::directory, path, 0700, 0, 0, 0, ""});
    CHECK_THROWS_AS(store.begin(list), Error);
  }
}

TEST_CASE("the script that a host runs is one word for any login shell") {
  const Launcher launcher{0x0123456789abcdefULL, 7, "x86_64"};
  CHECK(launcher_folder(launcher) == "launcher-0123456789abcdef");
  const std::string script = start_script("~/x/y", launcher, "agent --stdin");
  CHECK(script.starts_with("exec /bin/sh -c '"));
  CHECK(script.find('\'', 17) == script.size() - 1);
  for (const char bad : {'!', '\\', '\n', '`'}) CHECK(script.find(bad) == std::string::npos);
  CHECK(script.find("d=$HOME/x/y;") != std::string::npos);
  for (const char* root : {"x", "/tmp/$x", "/tmp/a b", "~x/y", "/tmp/'x", "-x"})
    CHECK_THROWS_AS(start_script(root, launcher, "agent"), Error);
}

TEST_CASE("what the script ends with is said with what to do") {
  CHECK(explain_start(kNoPlace, "", "mkdir: cannot create directory: Read-only file system").reason ==
        "fleetrun cannot be put there: mkdir: cannot create directory: Read-only file system");
  const std::string old = "fleetrun: /lib/libc.so.6: version `GLIBC_2.36' not found";
  CHECK(explain_start(kDoesNotRun, old, old).hint.starts_with("its C library is older"));
  CHECK(explain_start(kDoesNotRun, "sh: fleetrun: not found", "")
            .hint.starts_with("its C library is not glibc"));
  CHECK(explain_start(kDoesNotRun, "sh: fleetrun: Permission denied", "").hint.find("noexec") !=
        std::string::npos);
}
