// Real commands through QueueDataset: every way in which one can fail, and what must not outlive it.
#include "dataset/pipes/pipe_command.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <iterator>
#include <thread>

#include "dataset/pipes/process_group.h"
#include "dataset/queue/queue_dataset.h"
#include "runtime/base/error.h"
#include "tests/support/temp_dir.h"

namespace fleetrun::dataset {
namespace {

using namespace std::chrono_literals;

QueueDatasetOptions options_for(std::string command, std::vector<std::string> files) {
  return {.slots = {{.name = "s", .type = SlotType::int64, .dense = false, .width = 1}},
          .pipe = {.command = std::move(command)},
          .batch_size = 2,
          .files = std::move(files)};
}

std::vector<std::int64_t> ids_of(QueueDataset& dataset) {
  dataset.start(false);
  std::vector<std::int64_t> ids;
  Batch batch;
  while (dataset.next(0, batch))
    ids.insert(ids.end(), batch.slots[0].ints.begin(), batch.slots[0].ints.end());
  return ids;
}

Error error_of(QueueDatasetOptions options) {
  QueueDataset dataset(std::move(options));
  try {
    ids_of(dataset);
  } catch (const Error& error) {
    return error;
  }
  return Error(ErrorKind::usage, "no error");
}

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

/// Whether the process ends within a minute.
bool ends(pid_t pid) {
  const UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!process) return errno == ESRCH;
  pollfd watched = {process.value(), POLLIN, 0};
  return ::poll(&watched, 1, 60000) == 1;
}

/// Reads a line from a FIFO: the pid that a command wrote there. Blocks until it does.
pid_t pid_from(const std::string& fifo) {
  std::ifstream stream(fifo);
  pid_t pid = 0;
  stream >> pid;
  return pid;
}

std::string make_fifo(const tests::TempDir& directory, const char* name = "fifo") {
  REQUIRE(::mkfifo(directory.file(name).c_str(), 0600) == 0);
  return directory.file(name);
}

using Ids = std::vector<std::int64_t>;

TEST_CASE("the file is the command's standard input, whole shell pipelines work, each file has its own") {
  const tests::TempDir directory;
  const std::string a = directory.write("a", "5\n6\n"), b = directory.write("b", "7");
  QueueDataset dataset(options_for("sed 's/^/1 /' | sed -n 'p;$s/.*/1 0/p'", {a, b}));
  CHECK(ids_of(dataset) == Ids{5, 6, 0, 7, 0});
  CHECK(ids_of(dataset) == Ids{5, 6, 0, 7, 0});
}

TEST_CASE("a .gz file is unpacked first, for cat and for a command") {
  const tests::TempDir directory;
  directory.write("a", "1 5\n1 6\n");
  REQUIRE(::system(("gzip " + directory.file("a")).c_str()) == 0);
  QueueDataset plain(options_for("cat", {directory.file("a.gz")}));
  CHECK(ids_of(plain) == Ids{5, 6});
  QueueDataset filtered(options_for("sed s/5/8/", {directory.file("a.gz")}));
  CHECK(ids_of(filtered) == Ids{8, 6});
}

TEST_CASE("a .gz file that is none fails, naming file and gzip's reason") {
  const tests::TempDir directory;
  const std::string file = directory.write("a.gz", "1 5\n");
  const Error here = error_of(options_for("cat", {file}));
  CHECK(here.kind() == ErrorKind::data);
  CHECK(std::string(here.what()) == file + ": is not in gzip format: incorrect header check, at byte 2");
  CHECK(here.hint() == "a file whose name says how it is packed must be a whole file of that kind");
  const Error piped = error_of(options_for("sed s/5/6/", {file}));
  CHECK(piped.kind() == ErrorKind::data);
  CHECK(std::string(piped.what()).starts_with(file + ": gzip exited with 1; its standard error ends:\n    "));
  CHECK(contains(piped.what(), "not in gzip format"));
  CHECK(piped.hint() == here.hint());
}

TEST_CASE("a .zst file is unpacked first, for cat and for a command") {
  const tests::TempDir directory;
  const std::string file = directory.write("a", "1 5\n1 6\n");
  REQUIRE(::system(("zstd -q " + file + " -o " + file + ".zst").c_str()) == 0);
  QueueDataset plain(options_for("cat", {file + ".zst"}));
  CHECK(ids_of(plain) == Ids{5, 6});
  QueueDataset filtered(options_for("sed s/5/8/", {file + ".zst"}));
  CHECK(ids_of(filtered) == Ids{8, 6});
}

TEST_CASE("a .bz2 or .xz file is unpacked where no command is; a command gets it as it is") {
  const tests::TempDir directory;
  const std::string file = directory.write("a", "1 5\n1 6\n"), bad = directory.write("bad.bz2", "1 5\n");
  REQUIRE(::system(("bzip2 -k " + file + " && xz -k " + file).c_str()) == 0);
  for (const std::string& packed : {file + ".bz2", file + ".xz"}) {
    QueueDataset plain(options_for("cat", {packed}));
    CHECK(ids_of(plain) == Ids{5, 6});
  }
  QueueDataset filtered(options_for("bzip2 -dc | sed s/5/8/", {file + ".bz2"}));
  CHECK(ids_of(filtered) == Ids{8, 6});
  const Error error = error_of(options_for("cat", {bad}));
  CHECK(std::string(error.what()).starts_with(bad + ": bzip2 exited with 2; its standard error ends:\n    "));
  CHECK(error.hint() == "a file whose name says how it is packed must be a whole file of that kind");
  REQUIRE(::system(("mv " + file + ".bz2 " + file + ".x").c_str()) == 0);
  CHECK(contains(error_of(options_for("cat", {file + ".x"})).what(), "bzip2 bytes where text should be"));
}

TEST_CASE("an exit status other than 0 fails although all data came, with the last lines of standard error") {
  const tests::TempDir directory;
  const std::string file = directory.write("a", "1 5\n1 6\n");
  const Error error = error_of(options_for("cat; echo one >&2; echo two >&2; exit 3", {file}));
  CHECK(error.kind() == ErrorKind::data);
  CHECK(std::string(error.what()) == file +
                                         ": the pipe command 'cat; echo one >&2; echo two >&2; exit 3' "
                                         "exited with 3; its standard error ends:\n"
                                         "    one\n    two");
  CHECK(error.hint().empty());
}

TEST_CASE("a command that is not found says so") {
  const tests::TempDir directory;
  const Error error = error_of(options_for("no-such-command-here", {directory.write("a", "1 5\n")}));
  CHECK(contains(error.what(), "the pipe command 'no-such-command-here' exited with 127"));
  CHECK(contains(error.what(), "command not found"));
  CHECK(error.hint() ==
        "127 means that a program was not found: check its name, and the PATH of this process");
}

TEST_CASE("a command that is no program says so") {
  const tests::TempDir directory;
  const Error error = error_of(options_for(directory.path().string(), {directory.write("a", "1 5\n")}));
  CHECK(contains(error.what(), "exited with 126"));
  CHECK(error.hint() == "126 means that a program could not be run: is it executable?");
}

TEST_CASE("a signal is named") {
  const tests::TempDir directory;
  const std::string file = directory.write("a", "1 5\n");
  CHECK(contains(error_of(options_for("kill -KILL $$", {file})).what(), "' was killed by SIGKILL"));
  CHECK(contains(error_of(options_for("cat; kill -TERM $$", {file})).what(), "' was killed by SIGTERM"));
}

TEST_CASE("half a line and then a failure is the command's failure, not the line's") {
  const tests::TempDir directory;
  const Error error = error_of(options_for("printf '1 5\\n1 6\\n2 '; exit 9", {directory.write("a", "")}));
  CHECK(contains(error.what(), "exited with 9"));
}

TEST_CASE("half a line and then a good end is a bad line of the command's output") {
  const tests::TempDir directory;
  const std::string file = directory.write("a", "");
  const Error error = error_of(options_for("printf '1 5\\n2 6'", {file}));
  CHECK(error.what() == file + ":2:4: slot 's': 2 values announced, the line ends after 1");
  REQUIRE(error.context().size() == 1);
  CHECK(error.context()[0] == "reading the output of the pipe command 'printf '1 5\\n2 6''");
}

TEST_CASE("a stage of a pipeline that fails is not hidden by the next one") {
  const tests::TempDir directory;
  CHECK(contains(error_of(options_for("(cat; exit 4) | cat", {directory.write("a", "1 5\n")})).what(),
                 "exited with 4"));
}

TEST_CASE("a command may leave its input unread, and a stage may stop an earlier one") {
  const tests::TempDir directory;
  std::string text;
  for (int i = 0; i < 300000; ++i) text.append("1 5\n");
  const std::string file = directory.write("a", text);
  QueueDataset unread(options_for("echo 1 9", {file}));
  CHECK(ids_of(unread) == Ids{9});
  QueueDataset first(options_for("cat | head -n 1", {file}));
  CHECK(ids_of(first) == Ids{5});
  REQUIRE(::system(("gzip -1 " + file).c_str()) == 0);
  QueueDataset packed(options_for("head -n 1", {file + ".gz"}));
  CHECK(ids_of(packed) == Ids{5});
}

TEST_CASE("a program and its arguments, without a shell") {
  const tests::TempDir directory;
  QueueDatasetOptions options = options_for("", {directory.write("a", "1 5\n1 6\n")});
  options.pipe.argv = {"sed", "s/5/$HOME 7;/; s/ .HOME//; s/;//"};
  QueueDataset dataset(options);
  CHECK(ids_of(dataset) == Ids{7, 6});
  options.pipe.argv = {"sh", "-c", "exit 9"};
  CHECK(contains(error_of(options).what(), ": the pipe command 'sh -c 'exit 9'' exited with 9"));
  options.pipe.argv = {"no-such-program-here"};
  const Error error = error_of(options);
  CHECK(error.kind() == ErrorKind::spawn);
  CHECK(std::string(error.what()) == "cannot start no-such-program-here: No such file or directory");
}

TEST_CASE("a remote file is what its download command prints, unpacked by its name, then piped") {
  const tests::TempDir directory;
  const std::string text = directory.write("far", "1 5\n1 6\n");
  REQUIRE(::system(("gzip -k " + text).c_str()) == 0);
  const std::string fetch = "sh -c 'echo \"$1\" >> " + directory.file("log") + "; cat " +
                            directory.path().string() + "/${1##*/}' fetch";
  QueueDatasetOptions options = options_for("cat", {"s3://a bucket/far", "hdfs:/$(x)/far.gz"});
  options.pipe.remote.download_command = fetch;
  QueueDataset plain(options);
  CHECK(ids_of(plain) == Ids{5, 6, 5, 6});
  std::ifstream log(directory.file("log"));
  std::string first, second;
  std::getline(log, first);
  std::getline(log, second);
  CHECK(first == "s3://a bucket/far");
  CHECK(second == "hdfs:/$(x)/far.gz");
  options.pipe.command = "sed s/5/8/";
  QueueDataset filtered(options);
  CHECK(ids_of(filtered) == Ids{8, 6, 8, 6});
  options.pipe.remote.download_command = "echo no such object >&2; false";
  const Error error = error_of(options);
  CHECK(std::string(error.what()) ==
        "s3://a bucket/far: the download command 'echo no such object >&2; false' exited with 1; its "
        "standard error "
        "ends:\n    no such object");
}

TEST_CASE("a command that unpacks what is unpacked already is told so") {
  const tests::TempDir directory;
  const std::string text = directory.write("a", "1 5\n");
  REQUIRE(::system(("gzip -k " + text).c_str()) == 0);
  const Error error = error_of(options_for("zcat | cat", {text + ".gz"}));
  CHECK(contains(error.what(), "the pipe command 'zcat | cat' exited with 1"));
  CHECK(error.hint() ==
        "a file whose name ends in .gz or .zst is unpacked before the command gets it: leave that out");
}

TEST_CASE("a command that prints nothing for the pipe_timeout is killed, and is an error") {
  const tests::TempDir directory;
  const std::string fifo = make_fifo(directory);
  QueueDatasetOptions options =
      options_for("echo $$ > " + fifo + "; cat; exec sleep 1000", {directory.write("a", "1 5\n")});
  options.pipe.timeout = 20ms;
  pid_t command = 0;
  std::thread listener([&] { command = pid_from(fifo); });
  const Error error = error_of(options);
  listener.join();
  CHECK(error.kind() == ErrorKind::timeout);
  CHECK(contains(error.what(), "' has printed nothing for 20 ms, the pipe_timeout"));
  CHECK(error.hint() == "see why it waits, or allow it more by pipe_timeout");
  CHECK(ends(command));
}

TEST_CASE("what has left the command's process group by setsid is killed too") {
  const tests::TempDir directory;
  const std::string fifo = make_fifo(directory);
  QueueDataset dataset(
      options_for("setsid sh -c 'setsid sleep 1000 > /dev/null 2>&1 & echo $! > " + fifo + "'; cat",
                  {directory.write("a", "1 5\n")}));
  pid_t background = 0;
  std::thread listener([&] { background = pid_from(fifo); });
  const Ids ids = ids_of(dataset);
  listener.join();
  CHECK(ids == Ids{5});
  CHECK(ends(background));
}

TEST_CASE("a command that left its process group itself is killed, not waited for") {
  ProcessGroup group({"PATH=/usr/bin:/bin"});
  group.start({"setsid", "sleep", "1000"}, {0, 1, 2});
}

TEST_CASE("what has left the group is found in the midst of execve(), too") {
  const tests::TempDir directory;
  const std::string fifo = make_fifo(directory);
  const std::string again = directory.write("again", "exec /bin/sh \"$0\"\n");
  const std::string command = "setsid /bin/sh -c 'echo $$ > " + fifo + "; exec /bin/sh " + again + "' & cat";
  for (int round = 0; round < 50; ++round) {  // each was missed with a chance of some percent
    pid_t executing = 0;
    std::thread listener([&] { executing = pid_from(fifo); });
    const Pipe input = make_pipe();
    {
      ProcessGroup group({"PATH=/usr/bin:/bin"});
      group.start({"/bin/sh", "-c", command}, {input.reader.value(), 1, 2});
      listener.join();
    }
    REQUIRE(ends(executing));
  }
}

TEST_CASE("a flood on standard error blocks nothing") {
  const tests::TempDir directory;
  QueueDataset dataset(options_for("head -c 3000000 /dev/zero | tr '\\0' x >&2; echo >&2; cat",
                                   {directory.write("a", "1 5\n")}));
  const int own = ::dup(STDERR_FILENO);
  const int null = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  ::dup2(null, STDERR_FILENO);
  const Ids ids = ids_of(dataset);
  ::dup2(own, STDERR_FILENO);
  ::close(own);
  ::close(null);
  CHECK(ids == Ids{5});
}

TEST_CASE("what a background process writes in time is read") {
  const tests::TempDir directory;
  const std::string fifo = make_fifo(directory);
  QueueDataset dataset(
      options_for("cat; (read line < " + fifo + "; echo 1 6) &", {directory.write("a", "1 5\n")}));
  dataset.start(false);
  std::ofstream(fifo) << "go\n";
  Batch batch;
  Ids ids;
  while (dataset.next(0, batch))
    ids.insert(ids.end(), batch.slots[0].ints.begin(), batch.slots[0].ints.end());
  CHECK(ids == Ids{5, 6});
}

TEST_CASE("a silent background process that holds the output is killed, and is an error") {
  const tests::TempDir directory;
  const std::string fifo = make_fifo(directory);
  const std::string command = "sleep 1000 & echo $! > " + fifo + "; cat";
  pid_t background = 0;
  std::thread listener([&] { background = pid_from(fifo); });
  const auto source = open_byte_source({.file = directory.write("a", "1 5\n"),
                                        .pipe = {.command = command, .linger = 20ms},
                                        .environment = {"PATH=/usr/bin:/bin"}});
  std::vector<char> room(100);
  std::string text;
  try {
    while (const std::size_t bytes = source->read(room)) text.append(room.data(), bytes);
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::data);
    CHECK(contains(
        error.what(),
        "ended, but a background process that it left kept its output open for 20 ms without writing"));
    CHECK(error.hint() == "end the command with `wait`, or send the background process's output elsewhere");
  }
  listener.join();
  CHECK(text == "1 5\n");
  CHECK(ends(background));
}

TEST_CASE("a background process that does not hold the output is killed when the command has ended") {
  const tests::TempDir directory;
  const std::string fifo = make_fifo(directory);
  QueueDataset dataset(options_for("sleep 1000 > /dev/null 2>&1 & echo $! > " + fifo + "; cat",
                                   {directory.write("a", "1 5\n")}));
  pid_t background = 0;
  std::thread listener([&] { background = pid_from(fifo); });
  const Ids ids = ids_of(dataset);
  listener.join();
  CHECK(ids == Ids{5});
  CHECK(ends(background));
}

TEST_CASE("stop() kills a command that never ends, with all that it started") {
  const tests::TempDir directory;
  const std::string fifo = make_fifo(directory);
  QueueDataset dataset(
      options_for("trap '' TERM; (trap '' TERM; echo $BASHPID > " + fifo + "; sleep 1000) | cat",
                  {directory.write("a", "")}));
  dataset.start(false);
  const pid_t inner = pid_from(fifo);
  REQUIRE(inner > 0);
  dataset.stop();
  CHECK(ends(inner));
}

TEST_CASE("an error of one reader kills the other's command") {
  const tests::TempDir directory;
  const std::string fifo = make_fifo(directory), start = make_fifo(directory, "start");
  const std::string command = "read word; if [ $word = bad ]; then read go < " + start +
                              "; exit 5; fi; echo $$ > " + fifo + "; exec sleep 1000";
  QueueDatasetOptions options =
      options_for(command, {directory.write("a", "good\n"), directory.write("b", "bad\n")});
  options.threads = 2;
  QueueDataset dataset(options);
  dataset.start(false);
  const pid_t other = pid_from(fifo);
  std::ofstream(start) << "go\n";
  Batch batch;
  for (const std::size_t reader : {0, 1}) {
    try {
      while (dataset.next(reader, batch)) {
      }
      FAIL("no error");
    } catch (const Error& error) {
      CHECK(contains(error.what(), "exited with 5"));
    }
  }
  CHECK(ends(other));
}

TEST_CASE("a trainer that is killed leaves no command behind") {
  const tests::TempDir directory;
  const std::string fifo = make_fifo(directory);
  const std::string file = directory.write("a", "");
  const pid_t trainer = ::fork();
  if (trainer == 0) {
    QueueDataset dataset(
        options_for("trap '' TERM HUP PIPE; echo $$ > " + fifo + "; while :; do sleep 1000; done", {file}));
    dataset.start(false);
    for (;;) ::pause();
  }
  const pid_t command = pid_from(fifo);
  REQUIRE(command > 0);
  ::kill(trainer, SIGKILL);
  ::waitpid(trainer, nullptr, 0);
  CHECK(ends(command));
}

// Signals 1 to 16 only: glibc starts children with its own 32 and 33 ignored.
TEST_CASE("the command gets default signals, though this process ignores and blocks some") {
  const tests::TempDir directory;
  sigset_t blocked, before;
  ::sigemptyset(&blocked);
  ::sigaddset(&blocked, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &blocked, &before);
  const auto pipe_before = ::signal(SIGPIPE, SIG_IGN);
  QueueDataset dataset(
      options_for("awk '/^Sig(Blk|Ign)/ && $2 !~ /0000$/ {bad = 1} END {print 1, bad + 0}' /proc/self/status",
                  {directory.write("a", "")}));
  const Ids ids = ids_of(dataset);
  ::signal(SIGPIPE, pipe_before);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  CHECK(ids == Ids{0});
}

/// Runs that a command has written to `log`, a line each.
std::size_t lines_of(const std::string& log) {
  std::ifstream stream(log);
  return static_cast<std::size_t>(std::count(std::istreambuf_iterator<char>(stream), {}, '\n'));
}

TEST_CASE("the next pass's pipes start while a pass ends, are used by it, and end with the dataset") {
  const tests::TempDir directory;
  const std::string fifo = make_fifo(directory), log = directory.file("log");
  std::vector<std::string> files = {directory.write("a", "1 5\n"), directory.write("b", "1 6\n"),
                                    directory.write("c", "1 7\n")};
  QueueDatasetOptions options = options_for("echo run >> " + log + "; cat", files);
  options.starts_next_epoch = true;
  QueueDataset dataset(options);
  CHECK(ids_of(dataset) == Ids{5, 6, 7});
  dataset.stop();  // of a pass that is over: what was started ahead stays
  for (int pass = 2; pass <= 4; ++pass) CHECK(ids_of(dataset) == Ids{5, 6, 7});
  const std::size_t runs = lines_of(log);
  CHECK(runs >= 12);  // the last one that was started may not have come so far
  CHECK(runs <= 13);

  options.pipe.command =
      "cat; if [ -e " + log + ".2 ]; then echo $$ > " + fifo + "; exec sleep 1000; fi; > " + log + ".2";
  options.files.resize(1);
  pid_t idle = 0;
  {
    QueueDataset other(options);
    CHECK(ids_of(other) == Ids{5});
    idle = pid_from(fifo);
    REQUIRE(idle > 0);
  }
  CHECK(ends(idle));
}

TEST_CASE("a file that changed after its pipe was started ahead is read anew") {
  const tests::TempDir directory;
  const std::string file = directory.write("a", "1 5\n");
  QueueDatasetOptions options = options_for("sed p", {file});
  options.starts_next_epoch = true;
  QueueDataset dataset(options);
  CHECK(ids_of(dataset) == Ids{5, 5});
  directory.write("a", "1 66\n");
  CHECK(ids_of(dataset) == Ids{66, 66});
}

TEST_CASE("a pass that is stopped halfway leaves nothing started") {
  const tests::TempDir directory;
  QueueDatasetOptions options = options_for("sed p", {directory.write("a", "1 5\n1 6\n1 7\n")});
  options.starts_next_epoch = true;
  QueueDataset dataset(options);
  dataset.start(false);
  Batch batch;
  REQUIRE(dataset.next(0, batch));
  dataset.stop();
  CHECK(::waitpid(-1, nullptr, WNOHANG) == -1);
  CHECK(ids_of(dataset) == Ids{5, 5, 6, 6, 7, 7});
}

TEST_CASE("no descriptor and no process is left after many commands") {
  const tests::TempDir directory;
  std::vector<std::string> files;
  for (int i = 0; i < 20; ++i) files.push_back(directory.write("part" + std::to_string(i), "1 5\n"));
  const auto open_descriptors = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"),
                         std::filesystem::directory_iterator());
  };
  {
    QueueDataset dataset(options_for("sed s/5/6/", files));
    ids_of(dataset);
  }
  const auto before = open_descriptors();
  {
    QueueDataset dataset(options_for("sed s/5/6/", files));
    CHECK(ids_of(dataset) == Ids(20, 6));
  }
  CHECK(open_descriptors() == before);
  CHECK(::waitpid(-1, nullptr, WNOHANG) == -1);
}

}  // namespace
}  // namespace fleetrun::dataset
