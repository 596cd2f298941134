"""Files where a script puts its models: those of this host (LocalFS), or of a cluster through its `hadoop`
(HDFSClient).

Both have Paddle's calls. A path that is not there, or is there already, is an ExecuteError's relative as in
Paddle: FSFileNotExistsError, FSFileExistsError.
"""

import os
import shutil
import subprocess
from typing import Any

from fleetrun._error import Error

__all__ = [
    "ExecuteError", "FSFileExistsError", "FSFileNotExistsError", "FSTimeOut", "HDFSClient", "LocalFS",
]  # fmt: skip


class ExecuteError(Exception):
    """A command of the file system failed; its text says which and why."""


class FSFileExistsError(Exception):
    """A file is there already."""


class FSFileNotExistsError(Exception):
    """A file is not there."""


class FSTimeOut(Exception):
    """A command took too long."""


class LocalFS:
    """Files of this host."""

    def ls_dir(self, fs_path: str) -> tuple[list[str], list[str]]:
        """(folders, files): the names in a folder, sorted; of a path that is not there ([], [])."""
        if not self.is_exist(fs_path):
            return [], []
        names = sorted(os.listdir(fs_path))
        folders = [name for name in names if os.path.isdir(os.path.join(fs_path, name))]
        return folders, [name for name in names if name not in folders]

    def list_dirs(self, fs_path: str) -> list[str]:
        """The folders in a folder."""
        return self.ls_dir(fs_path)[0]

    def is_exist(self, fs_path: str) -> bool:
        """Whether there is a file or folder."""
        return os.path.exists(fs_path)

    def is_file(self, fs_path: str) -> bool:
        """Whether it is a file."""
        return os.path.isfile(fs_path)

    def is_dir(self, fs_path: str) -> bool:
        """Whether it is a folder."""
        return os.path.isdir(fs_path)

    def mkdirs(self, fs_path: str) -> None:
        """Makes the folder and those above it. Throws: FileExistsError where there is a file."""
        os.makedirs(fs_path, exist_ok=True)

    def touch(self, fs_path: str, exist_ok: bool = True) -> None:
        """Makes an empty file. Throws: FSFileExistsError when it is there and may not be."""
        if self.is_exist(fs_path):
            if exist_ok:
                return
            raise FSFileExistsError(fs_path)
        with open(fs_path, "a"):
            pass

    def delete(self, fs_path: str) -> None:
        """Removes a file, or a folder with all in it; nothing where there is none."""
        if self.is_dir(fs_path):
            shutil.rmtree(fs_path)
        elif self.is_exist(fs_path):
            os.remove(fs_path)

    def mv(self, src_path: str, dst_path: str, overwrite: bool = False, test_exists: bool = False) -> None:
        """Renames. Throws: FSFileNotExistsError, FSFileExistsError."""
        if not self.is_exist(src_path):
            raise FSFileNotExistsError(src_path)
        if self.is_exist(dst_path):
            if not overwrite:
                raise FSFileExistsError(dst_path)
            self.delete(dst_path)
        os.rename(src_path, dst_path)

    rename = mv

    def cat(self, fs_path: Any = None) -> str:
        """A file's text."""
        with open(fs_path, encoding="utf-8") as file:
            return file.read()

    def need_upload_download(self) -> bool:
        """False: files are where the script is."""
        return False


class HDFSClient:
    """Files of a cluster: each call runs `HADOOP_HOME/bin/hadoop fs -D KEY=VALUE …`. configs:
    {"fs.default.name": …, "hadoop.job.ugi": …}; time_out: milliseconds for a call. Throws: ExecuteError with
    what hadoop says, FSTimeOut."""

    def __init__(
        self, hadoop_home: str, configs: Any, time_out: int = 5 * 60 * 1000, sleep_inter: int = 1000
    ) -> None:
        self._command = [os.path.join(hadoop_home, "bin", "hadoop") if hadoop_home else "hadoop", "fs"]
        for key, value in (configs or {}).items():
            self._command += ["-D", f"{key}={value}"]
        self._seconds = time_out / 1000

    def _run(self, *arguments, may_fail=False):
        try:
            done = subprocess.run(
                [*self._command, *arguments],
                text=True,
                capture_output=True,
                timeout=self._seconds,
                stdin=subprocess.DEVNULL,
            )
        except FileNotFoundError:
            raise Error(
                "config", f"{self._command[0]} is not there", "give HDFSClient the folder that has bin/hadoop"
            ) from None
        except subprocess.TimeoutExpired:
            raise FSTimeOut(f"hadoop fs {' '.join(arguments)}: not done after {self._seconds:g} s") from None
        if done.returncode != 0 and not may_fail:
            raise ExecuteError(
                f"hadoop fs {' '.join(arguments)}: exit status {done.returncode}: "
                f"{done.stderr.strip()[-500:]}"
            )
        return done

    def _test(self, flag, fs_path):
        return self._run("-test", flag, fs_path, may_fail=True).returncode == 0

    def ls_dir(self, fs_path: str) -> tuple[list[str], list[str]]:
        """(folders, files): the names in a folder; of a path that is not there ([], [])."""
        if not self.is_exist(fs_path):
            return [], []
        folders: list[str] = []
        files: list[str] = []
        for line in self._run("-ls", fs_path).stdout.splitlines():
            fields = line.split(None, 7)
            if len(fields) == 8:
                (folders if fields[0].startswith("d") else files).append(
                    os.path.basename(fields[7].rstrip("/"))
                )
        return folders, files

    def list_dirs(self, fs_path: str) -> list[str]:
        """The folders in a folder."""
        return self.ls_dir(fs_path)[0]

    def is_exist(self, fs_path: str) -> bool:
        """Whether there is a file or folder."""
        return self._test("-e", fs_path)

    def is_dir(self, fs_path: str) -> bool:
        """Whether it is a folder."""
        return self._test("-d", fs_path)

    def is_file(self, fs_path: str) -> bool:
        """Whether it is a file."""
        return self.is_exist(fs_path) and not self.is_dir(fs_path)

    def mkdirs(self, fs_path: str) -> None:
        """Makes the folder and those above it."""
        self._run("-mkdir", "-p", fs_path)

    def touch(self, fs_path: str, exist_ok: bool = True) -> None:
        """Makes an empty file. Throws: FSFileExistsError when it is there and may not be."""
        if self.is_exist(fs_path):
            if exist_ok:
                return
            raise FSFileExistsError(fs_path)
        self._run("-touchz", fs_path)

    def delete(self, fs_path: str) -> None:
        """Removes a file, or a folder with all in it; nothing where there is none."""
        if self.is_exist(fs_path):
            self._run("-rm", "-r", fs_path)

    def upload(
        self, local_path: str, fs_path: str, multi_processes: int = 5, overwrite: bool = False
    ) -> None:
        """Copies a file or folder of this host there. Throws: FSFileNotExistsError, FSFileExistsError."""
        if not os.path.exists(local_path):
            raise FSFileNotExistsError(local_path)
        self._run("-put", *(["-f"] if overwrite else []), local_path, fs_path)

    upload_dir = upload

    def download(
        self, fs_path: str, local_path: str, multi_processes: int = 5, overwrite: bool = False
    ) -> None:
        """Copies a file or folder from there. Throws: FSFileNotExistsError."""
        if not self.is_exist(fs_path):
            raise FSFileNotExistsError(fs_path)
        self._run("-get", *(["-f"] if overwrite else []), fs_path, local_path)

    def mv(
        self, fs_src_path: str, fs_dst_path: str, overwrite: bool = False, test_exists: bool = True
    ) -> None:
        """Renames. Throws: FSFileNotExistsError, FSFileExistsError."""
        if test_exists:
            if not self.is_exist(fs_src_path):
                raise FSFileNotExistsError(fs_src_path)
            if self.is_exist(fs_dst_path) and not overwrite:
                raise FSFileExistsError(fs_dst_path)
        if overwrite:
            self.delete(fs_dst_path)
        self._run("-mv", fs_src_path, fs_dst_path)

    rename = mv

    def cat(self, fs_path: Any = None) -> str:
        """A file's text; of a path that is not there ""."""
        return self._run("-cat", fs_path).stdout if self.is_file(fs_path) else ""

    def need_upload_download(self) -> bool:
        """True: files are elsewhere."""
        return True
