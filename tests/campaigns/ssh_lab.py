"""The hosts of tests/campaigns/ssh_table.py, and what a case changes about them."""

import os
import pathlib
import shutil
import subprocess


class Skip(Exception):
    """This machine lacks what the case needs."""


class Lab:
    """The hosts h1 (where the command is given) to h4, as a case changes them."""

    def __init__(self, rig):
        self.rig, self.started, self.environment, self.flags = rig, [], {}, []
        self.directory = None
        self.h1, self.h2, self.h3, self.h4 = self.hosts = rig.hosts
        self.usual = (self.h1.home / ".ssh" / "config").read_text()
        self.passwd = (rig.directory / "etc" / "passwd").read_text()
        self.known = (rig.directory / "known_hosts").read_text()
        self.names = (rig.directory / "etc" / "hosts").read_text()
        self.undo = []

    def config(self, text):
        """Before what is in ~/.ssh/config of h1."""
        (self.h1.home / ".ssh" / "config").write_text(text + "Host *\n" + self.usual)

    def sshd(self, host, *lines):
        host.start_sshd(*lines)
        self.undo.append(host.start_sshd)

    def account(self, shell, **files):
        """The user `me` on all hosts but the head: files of the home, with _ for the dot before the name."""
        if not pathlib.Path(shell).exists():
            raise Skip(f"there is no {shell}")
        home = self.rig.directory / "me"
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir()
        for name, text in files.items():
            path = home / name.replace("__", "/").replace("_", ".", 1)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        for path in (home, *home.rglob("*")):
            os.chown(path, 20001, 20001)
        (self.rig.directory / "etc" / "passwd").write_text(f"{self.passwd}me:*:20001:20001::{home}:{shell}\n")
        self.config("Host h2 h3\n  User me\n")

    def name(self, host, *names):
        with open(self.rig.directory / "etc" / "hosts", "a") as file:
            file.write(f"{host.address} {' '.join(names)}\n")

    def start(self, host, *argv, **options):
        """A program of the case's own, that may be there at the end."""
        process = host.popen(argv, **options)
        self.started.append(process)
        return process

    def hide(self, host, path):
        """An empty folder in the place of `path` on that host."""
        host.run(["mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", path], check=True, directory="/")
        self.undo.append(lambda: host.run(["umount", "-l", path], directory="/"))

    def key(self, name, passphrase=""):
        """A key of h1's own, which h2 and h3 let in alone."""
        path = self.rig.directory / name
        path.unlink(missing_ok=True)
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", passphrase, "-C", "", "-f", str(path)],
                       check=True)
        for host in (self.h2, self.h3):
            self.sshd(host, f"AuthorizedKeysFile {path}.pub")
        return path

    def close(self):
        for mend in reversed(self.undo):
            mend()
        for process in self.started:
            process.kill()
            process.wait()
        etc = self.rig.directory / "etc"
        for path, text in ((self.h1.home / ".ssh" / "config", self.usual), (etc / "passwd", self.passwd),
                           (etc / "hosts", self.names), (self.rig.directory / "known_hosts", self.known)):
            path.write_text(text)
