"""Hosts for tests: each its own network, host name, processes, and mounts,
joined by one switch that can be pulled apart.

    with Rig(directory, hosts=4) as rig:
        h1, h2, h3, h4 = rig.hosts                      # 10.77.0.1 ... 10.77.0.4, known to each other by name
        h1.run(["ssh", "h2", "hostname"]).stdout    # a real sshd, a key for root, known host keys
        job = h1.start("--hosts=h1,h2", "train.py")     # fleetrun
        h2.link(up=False)                               # the cable is out: nothing arrives, nobody is told

A host is a set of Linux namespaces that a process of its own holds (hosts_rig_init.py); so is the switch.
Nothing has a name outside of them, no port or file is shared by accident, and all of it is gone when the
process that made it is, even if that was killed. Needs root: why_not() says what is missing.

`rig.place` is the directory that has the same path on every host and another content on each (`host.files` is
how it is reached from here), `rig.shared` is the same for all, as a shared disk is. Root's home is each
host's own, or with shared_home=True the same.
"""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import sys
import time

from fleetrun_job import DEADLINE, clean_environment, find_fleetrun, wait_until

HERE = pathlib.Path(__file__).resolve().parent
NETWORK = "10.77.0."
PROGRAMS = {"ip": "iproute2", "nft": "nftables", "nsenter": "util-linux", "sshd": "openssh-server",
            "ssh": "openssh-client"}
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def why_not():
    """What this machine lacks for hosts; None when they can be made."""
    if os.geteuid() != 0:
        return "hosts are made of namespaces, which only root may make"
    missing = [package for program, package in PROGRAMS.items() if not shutil.which(program, path=PATH)]
    if missing:
        return f"hosts need the packages {', '.join(missing)}"
    probe = subprocess.run(["unshare", "--net", "--uts", "--pid", "--ipc", "--fork", "sh", "-c",
                            "ip link add br0 type bridge && ip link add v0 type veth peer name v1"],
                           capture_output=True, text=True, env={"PATH": PATH})
    if probe.returncode != 0:
        return f"this kernel makes no hosts: {probe.stderr.strip()}"
    return None


class Process(subprocess.Popen):
    """A process of a host. What is started is nsenter;
    `real` is the pid, seen from here, of the program itself."""

    def __init__(self, host, argv, **options):
        self.host = host
        super().__init__(argv, **options)
        self._real = None

    @property
    def real(self):
        if self._real is None:
            self._real = wait_until(lambda: self.poll() is not None and -1 or first_child(self.pid),
                                    "the start of a program")
        return self._real

    def send(self, number):
        """To the program itself; subprocess's own send_signal() would be for nsenter."""
        if self.real > 0:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.real, number)

    def kill(self):
        self.send(signal.SIGKILL)


def first_child(pid):
    """The pid of the program that nsenter `pid` runs, once it is that; else None."""
    try:
        found = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        if found and not os.readlink(f"/proc/{found[0]}/exe").endswith("/nsenter"):
            return int(found[0])
    except OSError:
        pass
    return None


class Job:
    """A fleetrun on a host, with its output in files."""

    def __init__(self, host, arguments, environment, directory, count):
        self.host, self.directory = host, directory
        self.out_file, self.err_file = (host.rig.directory / f"{host.name}.{count}.{kind}"
                                        for kind in ("out", "err"))
        with open(self.out_file, "wb") as out, open(self.err_file, "wb") as err:
            # SIGTSTP stops nobody in the process group of tests whose shell has ended.
            self.process = host.popen([find_fleetrun(), *map(str, arguments)], environment=environment,
                                      directory=directory, stdout=out, stderr=err, process_group=0)

    @property
    def out(self):
        return self.out_file.read_text(errors="replace")

    @property
    def err(self):
        return self.err_file.read_text(errors="replace")

    def finish(self, seconds=DEADLINE):
        try:
            self.status = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"fleetrun on {self.host.name} goes on after {seconds} s\n"
                                 f"{self.out}{self.err}") from None
        return self

    def signal(self, number):
        self.process.send(number)

    def says(self, text, seconds=DEADLINE):
        """Waits until its standard error (or output) holds `text`."""
        def found():
            return text in self.err or text in self.out
        try:
            wait_until(lambda: found() or self.process.poll() is not None, text, seconds)
            assert found(), f"fleetrun ended with {self.process.returncode} and did not say {text!r}"
        except AssertionError as wrong:
            raise AssertionError(f"{wrong}; on {self.host.name} it said:\n{self.out}{self.err}") from None
        return self


class Host:
    """One of the hosts. Its faults are undone by Rig.reset()."""

    def __init__(self, rig, number):
        self.rig, self.number = rig, number
        self.name, self.address = f"h{number}", f"{NETWORK}{number}"
        self.own = rig.directory / self.name
        self.files, self.home = self.own / "place", self.own / "home"
        self.started, self.frozen, self.holder, self.net = 0, set(), None, None
        for folder in (self.files, self.home):
            folder.mkdir(parents=True)
        if rig.sshd:
            self.write_ssh_files()
        self.power_on()

    def write_ssh_files(self):
        """The daemon's configuration and key, and root's key, which all hosts let in."""
        ssh = self.home / ".ssh"
        ssh.mkdir(mode=0o700)
        key = self.own / "host_key"
        make_key(key)
        (self.own / "sshd_config").write_text(
            f"ListenAddress {self.address}:22\nHostKey {key}\n"
            f"AuthorizedKeysFile {self.rig.directory}/key.pub\nStrictModes no\n"
            "PidFile none\nUsePAM no\nUseDNS no\nPermitRootLogin prohibit-password\n"
            "PasswordAuthentication no\n"
            "KbdInteractiveAuthentication no\nPrintMotd no\n")
        (ssh /
         "config").write_text(f"IdentityFile {self.rig.directory}/key\n"
                              f"UserKnownHostsFile {self.rig.directory}/known_hosts\n")
        with open(self.rig.directory / "known_hosts", "a") as known:
            known.write(f"{self.name},{self.address} {key.with_suffix('.pub').read_text()}")

    # ---- programs

    def enter(self, argv, directory=None):
        place = str(directory or self.rig.place)
        return ["nsenter", f"--target={self.init}", "--mount", "--uts", "--ipc", "--net", "--pid", "--root",
                f"--wdns={place}",
                "--", *map(str, argv)]

    def environment(self, **more):
        """What a login shell of root on this host would have."""
        kept = {name: value for name, value in clean_environment().items()
                if name in ("LANG", "LC_ALL", "TERM", "PYTHONPATH")}
        return {**kept, "PATH": f"{os.path.dirname(find_fleetrun())}:{PATH}", "HOME": str(self.rig.home),
                "USER": "root",
                "LOGNAME": "root", "SHELL": "/bin/sh", **more}

    def popen(self, argv, environment=None, directory=None, **options):
        options.setdefault("stdin", subprocess.DEVNULL)
        return Process(self, self.enter(argv, directory), env=environment or self.environment(), **options)

    def run(self, argv, seconds=DEADLINE, check=False, environment=None, directory=None, **options):
        options.setdefault("capture_output", True)
        options.setdefault("text", True)
        if "input" not in options:
            options.setdefault("stdin", subprocess.DEVNULL)
        done = subprocess.run(self.enter(argv, directory), env=environment or self.environment(),
                              timeout=seconds, **options)
        assert not check or done.returncode == 0, f"{argv} on {self.name}: {done.stdout}{done.stderr}"
        return done

    def start(self, *arguments, environment=None, directory=None):
        """fleetrun, in `rig.place` unless said otherwise."""
        self.started += 1
        job = Job(self, arguments, environment, directory,
                  f"{self.number}-{self.started}-{time.monotonic_ns()}")
        self.rig.jobs.append(job)
        return job

    def fleetrun(self, *arguments, seconds=DEADLINE, **options):
        return self.start(*arguments, **options).finish(seconds)

    def read(self, path):
        """The bytes of a file as this host sees it."""
        return pathlib.Path(f"/proc/{self.init}/root{path}").read_bytes()

    def write(self, name, text, mode=0o644):
        """A file in this host's rig.place."""
        path = self.files / name
        path.write_text(text)
        path.chmod(mode)
        return path

    # ---- what is there

    def pids(self):
        """Every process of this host but its first and its sshd: known by the network they live in."""
        return {pid for pid in pids_of(self.net) if pid not in (self.init, self.sshd)}

    def processes(self):
        return {pid: command(pid) for pid in self.pids()}

    def listeners(self):
        """{(address, port)} that listen here, sshd's left out."""
        found = set()
        for kind in ("tcp", "tcp6"):
            for line in pathlib.Path(f"/proc/{self.init}/net/{kind}").read_text().splitlines()[1:]:
                words = line.split()
                address, _, port = words[1].partition(":")
                if words[3] == "0A" and int(port, 16) != 22:
                    found.add((readable_address(address), int(port, 16)))
        return found

    # ---- faults

    def link(self, up):
        """The cable of this host, at the switch: without it nothing arrives or leaves, and nobody is told."""
        if self.holder is not None:
            self.rig.switch_run("ip", "link", "set", f"to-{self.name}", "up" if up else "down")

    def deaf_to(self, *others):
        """Drops everything that the others send to this host; what it sends goes on."""
        self.cut(*(f"ip saddr {other.address} drop" for other in others))

    def shut(self, *rules):
        """Lets in nothing but answers, as a laptop or a login node behind a firewall or NAT, and what the
        rules let in."""
        self.cut("iif lo accept", "ct state established,related accept", *rules, policy="drop")

    def cut(self, *rules, policy="accept"):
        """A firewall: nft's rules for what arrives."""
        self.nft("add table inet cut\n"
                 f"add chain inet cut in {{ type filter hook input priority -300; policy {policy}; }}\n" +
                 "".join(f"add rule inet cut in {rule}\n" for rule in rules))

    def hears(self):
        """The end of cut(), and of who calls it."""
        self.nft("add table inet cut\ndelete table inet cut\n")

    def nft(self, text):
        self.run(["nft", "-f", "-"], check=True, input=text)

    def freeze(self):
        """Stops every process where it is; the kernel goes on and acknowledges what arrives."""
        while True:
            new = pids_of(self.net) - self.frozen - {self.init}
            if not new:
                return
            for pid in new:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGSTOP)
                self.frozen.add(pid)

    def thaw(self):
        # nsenter stops with what it runs, and has to go on with it.
        for pid in self.frozen | entered(self.net):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        self.frozen = set()

    def kill_processes(self):
        """SIGKILL to all but the host itself and its sshd."""
        groups = control_groups(self.pids())
        while pids := self.pids():
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.002)
        remove_groups(groups)

    def power_off(self):
        """The host is gone without a word to the others: its cable first, then everything that runs."""
        if self.holder is not None:
            self.link(up=False)
            groups = control_groups(pids_of(self.net))
            os.kill(self.init, signal.SIGKILL)
            self.thaw()
            self.holder.wait(DEADLINE)
            # The kernel would do this too, some time.
            self.rig.switch_run("ip", "link", "delete", f"to-{self.name}", check=False)
            self.holder = None
            remove_groups(groups)

    def power_on(self):
        rig = self.rig
        home = rig.directory / "home" if rig.shared_home else self.home
        mounts = [[rig.directory / "etc", "/etc"], [self.files, rig.place], [home, rig.home]]
        self.holder, self.init = rig.hold(self.name, mounts, ["/run/sshd", "/run/user", "/run/user/0"])
        self.net = os.readlink(f"/proc/{self.init}/ns/net")
        self.frozen = set()
        # The same hardware address each time: others remember it.
        rig.switch_run("ip", "-batch", "-", input=(
            f"link add to-{self.name} type veth peer name eth0 address 02:00:0a:4d:00:{self.number:02x} "
            f"netns {self.init}\n"
            f"link set to-{self.name} master br0 up\n"))
        self.run(["ip", "-batch", "-"], check=True, directory="/", input=(
            f"link set lo up\nlink set eth0 up\naddr add {self.address}/24 dev eth0\n"))
        self.sshd = None
        if rig.sshd:
            self.start_sshd()

    def start_sshd(self, *more):
        """Its daemon, in place of the one that runs; `more`: lines of its configuration."""
        if self.sshd is not None:
            os.kill(self.sshd, signal.SIGKILL)
            wait_until(lambda: self.sshd not in pids_of(self.net), f"the end of sshd of {self.name}")
        text = (self.own / "sshd_config").read_text()
        (self.own / "sshd_config.now").write_text("".join(f"{line}\n" for line in more) + text)
        with open(self.own / "sshd.log", "wb") as log:
            daemon = self.popen([shutil.which("sshd", path=PATH), "-D", "-e", "-f",
                                 self.own / "sshd_config.now"], directory="/", stderr=log)
        self.sshd = daemon.real
        wait_until(lambda: daemon.poll() is not None
                   or "Server listening" in (self.own / "sshd.log").read_text(),
                   f"sshd of {self.name}")
        assert daemon.poll() is None, (self.own / "sshd.log").read_text()

    def clean(self):
        """As it was when it was new."""
        if self.holder is None:
            self.power_on()
        self.thaw()
        self.kill_processes()
        self.link(up=True)
        self.hears()
        for folder in (self.files, self.home):
            for entry in folder.iterdir():
                if entry.name != ".ssh":
                    shutil.rmtree(entry, ignore_errors=True) if entry.is_dir() else entry.unlink()
        self.run(["sh", "-c", "rm -rf /run/user/0/* /dev/shm/*"], check=True, directory="/")


class Rig:
    """A switch and its hosts."""

    def __init__(self, directory, hosts=4, sshd=True, shared_home=False):
        self.directory = pathlib.Path(directory).resolve()
        self.sshd, self.shared_home = sshd, shared_home
        self.place, self.shared, self.home = (self.directory / name for name in ("place", "shared", "root"))
        for folder in (self.place, self.shared, self.home, self.directory / "home"):
            folder.mkdir(parents=True)
        self.hosts, self.jobs, self.holders = [], [], []
        try:
            self.write_files(hosts)
            _, self.switch = self.hold("switch", [], [])
            self.switch_run("ip", "-batch", "-",
                            input="link set lo up\nlink add br0 type bridge\nlink set br0 up\n")
            for number in range(1, hosts + 1):
                self.hosts.append(Host(self, number))
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def write_files(self, hosts):
        # A copy of /etc, since a bare system may have no file to mount one over.
        subprocess.run(["cp", "-a", "/etc", str(self.directory / "etc")], check=True)
        names = "".join(f"{NETWORK}{number} h{number}\n" for number in range(1, hosts + 1))
        rewrite(self.directory / "etc" / "hosts", "127.0.0.1 localhost\n" + names)
        users = [line for line in pathlib.Path("/etc/passwd").read_text().splitlines()
                 if not line.startswith("root:")]
        rewrite(self.directory / "etc" / "passwd",
                "\n".join([f"root:*:0:0:root:{self.home}:/bin/sh", *users]) + "\n")
        if self.sshd:
            make_key(self.directory / "key")

    def hold(self, name, mounts, folders):
        """A new set of namespaces: the process that holds them, and the pid of their first process."""
        spec = {"name": name, "parent": os.getpid(), "mounts": [[str(a), str(b)] for a, b in mounts],
                "folders": folders}
        holder = subprocess.Popen([sys.executable, "-I", "-S", str(HERE / "hosts_rig_init.py"),
                                   json.dumps(spec)],
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  cwd="/", text=True)
        self.holders.append(holder)
        words = holder.stdout.readline().split()
        if not words:
            raise RuntimeError(f"{name} could not be made: {holder.communicate()[1]}")
        return holder, int(words[1])

    def switch_run(self, *argv, check=True, **options):
        done = subprocess.run(["nsenter", f"--target={self.switch}", "--net", "--", *argv],
                              capture_output=True, text=True,
                              env={"PATH": PATH}, timeout=DEADLINE, **options)
        assert not check or done.returncode == 0, f"{argv}: {done.stderr}"

    def partition(self, *sides):
        """Nothing passes between the sides; each is a list of hosts."""
        for side in sides:
            others = [host for other in sides if other is not side for host in other]
            for host in side:
                host.deaf_to(*others)

    def heal(self):
        for host in self.hosts:
            host.hears()
            host.link(up=True)

    def share_secret(self, *hosts):
        """The file with which launchers meet, on these hosts (all of them when none is named)."""
        text = os.urandom(32).hex() + "\n"
        for host in hosts or self.hosts:
            folder = (self.directory / "home" if self.shared_home else host.home) / ".config" / "fleetrun"
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            (folder / "secret").write_text(text)
            (folder / "secret").chmod(0o600)
        return bytes.fromhex(text)

    @contextlib.contextmanager
    def capture(self):
        """Every frame that passes the switch meanwhile: a Capture, to be read after the block."""
        found = Capture(self)
        try:
            yield found
        finally:
            found.stop()

    def reset(self):
        """Ends what runs, heals what was broken, and empties the hosts' disks."""
        for job in self.jobs:
            if job.process.poll() is None:
                job.process.kill()
        for host in self.hosts:
            host.clean()
        for job in self.jobs:
            job.process.wait(DEADLINE)
        self.jobs.clear()
        for entry in self.shared.iterdir():
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()

    def close(self):
        for host in self.hosts:
            if host.net is not None:
                host.power_off()
        for holder in self.holders:
            if holder.poll() is None:
                holder.kill()
            holder.communicate()
        for job in self.jobs:
            job.process.wait(DEADLINE)


class Capture:
    """What passed the switch, as hosts_rig_capture.py wrote it down."""

    def __init__(self, rig):
        self.path = rig.directory / f"capture-{time.monotonic_ns()}"
        script = [sys.executable, "-I", "-S", str(HERE / "hosts_rig_capture.py"), str(self.path)]
        self.process = subprocess.Popen(["nsenter", f"--target={rig.switch}", "--net", "--", *script],
                                        stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == "ready\n"

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
            said = self.process.communicate(timeout=DEADLINE)[0]
            self.lost = int(said.split()[-1])

    def frames(self):
        data, at = self.path.read_bytes(), 0
        while at < len(data):
            (size,) = struct.unpack_from("<I", data, at)
            yield data[at + 4:at + 4 + size]
            at += 4 + size

    def streams(self):
        """{(from, port, to, port): bytes} of every TCP connection, each direction by itself."""
        pieces = {}
        for frame in self.frames():
            if frame[12:14] != b"\x08\x00" or frame[23] != 6:
                continue
            ip, size = frame[14:], struct.unpack_from(">H", frame, 16)[0]
            tcp = ip[(ip[0] & 15) * 4:size]
            ports = struct.unpack_from(">HH", tcp)
            key = (".".join(map(str, ip[12:16])), ports[0], ".".join(map(str, ip[16:20])), ports[1])
            sequence, body = struct.unpack_from(">I", tcp, 4)[0], tcp[(tcp[12] >> 4) * 4:]
            if tcp[13] & 2:
                pieces[key] = {"first": sequence + 1}
            elif body:
                stream = pieces.setdefault(key, {"first": sequence})
                stream[(sequence - stream["first"]) % 2**32] = body
        return {key: join_pieces(stream) for key, stream in pieces.items()}


def join_pieces(stream):
    """One direction of a connection from its segments by offset; what was sent twice is there once."""
    data = bytearray()
    for offset in sorted(key for key in stream if key != "first"):
        body = stream[offset]
        if offset + len(body) > len(data):
            data[min(offset, len(data)):] = body
    return bytes(data)


def rewrite(path, text):
    path.unlink(missing_ok=True)  # it may be a link to somewhere else
    path.write_text(text)


def make_key(path):
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(path)], check=True)


def pids_of(net, outside=False):
    """The living processes of a host, whose link to its network reads `net`;
    outside: those of here that entered it."""
    found, here = set(), os.readlink("/proc/self/ns/pid")
    for entry in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if (os.readlink(f"/proc/{entry}/ns/net") != net
                or (os.readlink(f"/proc/{entry}/ns/pid") == here) != outside):
                continue
            if pathlib.Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX":
                found.add(int(entry))
    return found


def entered(net):
    return pids_of(net, outside=True)


def control_groups(pids):
    """The control groups that jobs made for these processes:
    those who would remove them may be killed too."""
    found = set()
    for pid in pids:
        with contextlib.suppress(OSError):
            for line in pathlib.Path(f"/proc/{pid}/cgroup").read_text().splitlines():
                path = line.partition("::")[2].strip("/")
                if path.partition("/")[0].startswith("fleetrun-"):
                    found.add(path)
    return found


def remove_groups(groups):
    mounts = [line.split()[4] for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines()
              if " - cgroup2 " in line]
    for path in sorted(groups, key=len, reverse=True):
        for top in mounts:
            with contextlib.suppress(OSError):
                os.rmdir(f"{top}/{path}")


def command(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(
            errors="replace").strip()
    except OSError:
        return ""


def readable_address(text):
    """An address of /proc/net/tcp: hexadecimal, each four bytes in the order of this machine."""
    words = [bytes.fromhex(text[at:at + 8])[::-1] for at in range(0, len(text), 8)]
    return ".".join(map(str, words[0])) if len(words) == 1 else b"".join(words).hex()
