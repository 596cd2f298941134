"""fleet.utils: files of this host, and of a cluster through a `hadoop` that a script stands in for."""

HADOOP = """#!/bin/sh
# hadoop fs -D key=value … -COMMAND …, on files of this host.
[ "$1" = fs ] || exit 2
shift
while [ "$1" = -D ]; do echo "$2" >> "$0.configs"; shift 2; done
command=$1; shift
case $command in
  -test) exec test "$@" ;;
  -mkdir) exec mkdir "$@" ;;
  -touchz) : > "$1" ;;
  -rm) exec rm "$@" ;;
  -put|-get) if [ "$1" = -f ]; then shift; fi; exec cp -r "$@" ;;
  -mv) exec mv "$@" ;;
  -cat) exec cat "$@" ;;
  -ls) echo "Found items"; for each in "$1"/*; do
         [ -d "$each" ] && mode=drwxr-xr-x || mode=-rw-r--r--
         echo "$mode 1 user group 0 2024-01-01 00:00 $each"; done ;;
  *) echo "unknown command $command" >&2; exit 255 ;;
esac
"""


def test_files_of_this_host_and_of_a_cluster(run, tmp_path):
    (tmp_path / "hadoop/bin").mkdir(parents=True)
    (tmp_path / "hadoop/bin/hadoop").write_text(HADOOP)
    (tmp_path / "hadoop/bin/hadoop").chmod(0o755)
    run("""
from fleetrun.distributed.fleet.utils.fs import FSFileExistsError, FSFileNotExistsError, HDFSClient, LocalFS
import fleetrun.distributed.fleet as fleet

def refused(call, kind):
    try:
        call()
    except kind:
        return True
    raise AssertionError(kind)

clients = (fleet.utils.LocalFS(), fleet.utils.HDFSClient("hadoop", {"fs.default.name": "hdfs://here:9000"}))
assert not clients[0].need_upload_download() and clients[1].need_upload_download()
for number, client in enumerate(clients):
    top = f"files{number}"
    assert not client.is_exist(top) and client.ls_dir(top) == ([], [])
    client.mkdirs(top + "/a/b")
    client.touch(top + "/one")
    client.touch(top + "/one")
    refused(lambda: client.touch(top + "/one", exist_ok=False), FSFileExistsError)
    assert client.ls_dir(top) == (["a"], ["one"]) and client.list_dirs(top) == ["a"]
    assert client.is_dir(top + "/a") and client.is_file(top + "/one") and not client.is_file(top + "/a")
    with open(top + "/one", "w") as file:
        file.write("text")
    assert client.cat(top + "/one") == "text"
    client.mv(top + "/one", top + "/two")
    refused(lambda: client.mv(top + "/one", top + "/three"), FSFileNotExistsError)
    client.touch(top + "/three")
    refused(lambda: client.mv(top + "/two", top + "/three"), FSFileExistsError)
    client.mv(top + "/two", top + "/three", overwrite=True)
    assert client.cat(top + "/three") == "text"
    client.delete(top + "/a")
    client.delete(top + "/a")
    assert client.ls_dir(top) == ([], ["three"])
client.upload("files0/three", "files1/four")
client.download("files1/four", "files0/five")
assert open("files0/five").read() == "text"
refused(lambda: client.upload("nowhere", "files1/six"), FSFileNotExistsError)
refused(lambda: client.download("files1/nowhere", "files0/six"), FSFileNotExistsError)
assert set(open("hadoop/bin/hadoop.configs").read().split()) == {"fs.default.name=hdfs://here:9000"}
""")


def test_a_failing_and_a_missing_hadoop_are_named(run, tmp_path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/hadoop").write_text("#!/bin/sh\necho no such host >&2\nexit 255\n")
    (tmp_path / "bin/hadoop").chmod(0o755)
    said = run("""
import fleetrun as paddle
from fleetrun.distributed.fleet.utils.fs import ExecuteError, HDFSClient
try:
    HDFSClient(".", {}).mkdirs("/models")
except ExecuteError as error:
    print(error)
try:
    HDFSClient("nowhere", {}).mkdirs("/models")
except paddle.Error as error:
    print(error.what, "|", error.hint)
""").stdout.splitlines()
    assert said == ["hadoop fs -mkdir -p /models: exit status 255: no such host",
                    "nowhere/bin/hadoop is not there | give HDFSClient the folder that has bin/hadoop"]
