#include "dataset/pipes/remote_file.h"

#include <doctest/doctest.h>

#include "runtime/base/error.h"

namespace fleetrun::dataset {
namespace {

using Words = std::vector<std::string>;

TEST_CASE("a name with a scheme is remote, and what Paddle's jobs write") {
  for (const char* name :
       {"hdfs://host:9000/a", "hdfs:/a", "afs:/a", "afs://x", "s3://bucket/a", "git+ssh://a"})
    CHECK(is_remote(name));
  for (const char* name : {"a", "/a/b", "./hdfs:/a", "a b://c", "://x", "hdfs", "dir/s3://x"})
    CHECK_FALSE(is_remote(name));
}

TEST_CASE("the download command gets the name as one argument, whatever is in it") {
  const RemoteFiles remote = {.download_command = "aws s3 cp --quiet"};
  CHECK(download_argv(remote, "s3://a/$(b) c", {}) ==
        Words{"bash", "-o", "pipefail", "-c", "aws s3 cp --quiet \"$1\"", "fleetrun-copy", "s3://a/$(b) c"});
  CHECK(download_text(remote) == "aws s3 cp --quiet");
}

TEST_CASE("hadoop reads a file system that is named, and is found in HADOOP_HOME") {
  const RemoteFiles remote = {.download_command = "cat", .fs_name = "hdfs://h:1", .fs_ugi = "me,secret"};
  const Words arguments = {"fs",   "-D",     "fs.default.name=hdfs://h:1", "-D", "hadoop.job.ugi=me,secret",
                           "-cat", "hdfs:/a"};
  Words argv = download_argv(remote, "hdfs:/a", {"HOME=/x", "HADOOP_HOME=/opt/hadoop"});
  CHECK(argv.front() == "/opt/hadoop/bin/hadoop");
  argv.erase(argv.begin());
  CHECK(argv == arguments);
  CHECK(download_argv(remote, "hdfs:/a", {"HADOOP_HOME="}).front() == "hadoop");
  CHECK(download_text(remote) == "hadoop fs -cat");
}

TEST_CASE("a remote file that nothing fetches is refused") {
  for (const char* command : {"", "cat"}) {
    try {
      download_argv({.download_command = command}, "s3://a/b", {});
      FAIL("no error");
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::config);
      CHECK(std::string(error.what()) ==
            "s3://a/b is not a file of this host, and there is no command to fetch it");
      CHECK(error.hint() ==
            "give the dataset download_cmd=COMMAND, which gets the name and prints the file, or fs_name and "
            "fs_ugi for hadoop");
    }
  }
}

}  // namespace
}  // namespace fleetrun::dataset
