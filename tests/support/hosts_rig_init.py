"""The first process of a host of hosts_rig: makes the namespaces, mounts what is the host's own, and reaps.

Its arguments are one JSON object: {"name": ..., "mounts": [[from, to], ...], "folders": [...]}. It says
"ready PID" on its standard output, with the pid (of the outer namespace) of the process that is pid 1 in the
host. The host ends with it: the kernel kills every process of a pid namespace whose first process has ended,
and takes the network devices away. It ends itself when the process that started it does, however that ends.
"""

import ctypes
import json
import os
import signal
import sys

NEWNS, NEWUTS, NEWIPC, NEWPID, NEWNET = 0x00020000, 0x04000000, 0x08000000, 0x20000000, 0x40000000
MS_BIND, MS_REC, MS_PRIVATE = 0x1000, 0x4000, 0x40000
PR_SET_PDEATHSIG = 1

libc = ctypes.CDLL(None, use_errno=True)
libc.mount.argtypes = (ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_ulong, ctypes.c_char_p)


def check(status, what):
    if status != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{what}: {os.strerror(error)}")


def mount(source, target, kind=None, flags=0):
    words = [word.encode() if word is not None else None for word in (source, target, kind)]
    check(libc.mount(*words, flags, None), f"mount {source} on {target}")


def end_with_parent(parent):
    check(libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0), "prctl")
    if parent and os.getppid() != parent:
        os._exit(1)


def keep_mounts_here():
    """No mount made in this namespace shows outside."""
    try:
        mount(None, "/", None, MS_REC | MS_PRIVATE)
        return
    except OSError:
        pass
    # In a change root, / is not a mount point: it is made private from outside of it.
    inside = os.open("/", os.O_RDONLY | os.O_DIRECTORY)
    os.chroot("/proc")
    os.fchdir(inside)
    while os.stat(".").st_ino != os.stat("..").st_ino or os.stat(".").st_dev != os.stat("..").st_dev:
        os.chdir("..")
    os.chroot(".")
    mount(None, "/", None, MS_REC | MS_PRIVATE)
    os.fchdir(inside)
    os.chroot(".")
    os.close(inside)


def be_a_host(spec):
    libc.sethostname(spec["name"].encode(), len(spec["name"]))
    mount("proc", "/proc", "proc")
    mount("tmpfs", "/run", "tmpfs")
    mount("tmpfs", "/dev/shm", "tmpfs")
    os.chmod("/dev/shm", 0o1777)
    for source, target in spec["mounts"]:
        mount(source, target, None, MS_BIND)
    for folder in spec["folders"]:
        os.makedirs(folder, mode=0o700, exist_ok=True)


def reap():
    while True:
        try:
            os.wait()
        except ChildProcessError:
            signal.sigwait({signal.SIGCHLD})


def main():
    spec = json.loads(sys.argv[1])
    end_with_parent(spec["parent"])
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the tests, which clean up
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    check(libc.unshare(NEWNS | NEWUTS | NEWIPC | NEWPID | NEWNET), "unshare")
    told, tell = os.pipe()
    child = os.fork()
    if child == 0:
        end_with_parent(0)
        keep_mounts_here()
        be_a_host(spec)
        os.write(tell, b".")
        os.close(tell)
        os.close(1)
        reap()
    os.close(tell)
    if os.read(told, 1):
        print(f"ready {child}", flush=True)
        os.close(1)
    os.waitpid(child, 0)


if __name__ == "__main__":
    main()
