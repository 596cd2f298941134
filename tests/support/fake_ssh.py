#!/usr/bin/env python3
"""Stands in for ssh: runs the command here, in a directory per host, and goes wrong as it is told to.

usage: fake_ssh.py [ssh's options] -- HOST COMMAND

$FAKE_SSH names a directory with config.json:

  hosts    {HOST: BEHAVIOUR}; "*" stands for those that are not named. A behaviour is one of
             ok          runs the command
             unknown, refused, timeout, host_key, denied, password, no_route: fails as ssh does
             busy, hung_up: the server hangs up, and says that it has no room, or nothing
             hung_up_once: at the first login
             hang        never connects; a password prompt without BatchMode hangs too
             absent      the command's program is not there (127)
             closed      the account is closed: a word and status 1
             swallow     a login script there reads standard input to its end
             drop        runs the command, and the connection breaks
                         when the file drop-HOST appears in $FAKE_SSH
  refuse   the share of first logins on a host that its sshd hangs up on
  seed     of them
  noise    printed on standard output before the command, as login scripts do
  delay    seconds before anything happens
  path     HOST's fleetrun instead of the one that is asked for
  nested   hosts have keys for each other: logins from one to another work too
  homes    every host has a home of its own, its directory in $FAKE_SSH
  shell    of the accounts, with its options
  exec     becomes the command instead of standing before it (lighter; nothing can break then)

Every login leaves a line in $FAKE_SSH/logins: HOST, what came of it, and the words of the call.
"""

import json
import os
import random
import select
import subprocess
import sys
import time

FAILURES = {
    "unknown": "ssh: Could not resolve hostname {host}: Name or service not known\r",
    "refused": "ssh: connect to host {host} port 22: Connection refused\r",
    "timeout": "ssh: connect to host {host} port 22: Connection timed out\r",
    "no_route": "ssh: connect to host {host} port 22: No route to host\r",
    "host_key": "Host key verification failed.\r",
    "denied": "me@{host}: Permission denied (publickey,password).\r",
    "hung_up":
    "kex_exchange_identification: read: Connection reset by peer\r\nConnection reset by 10.0.0.9 port 22\r",
}


def note(place, host, outcome, words):
    line = json.dumps([host, outcome, words]) + "\n"
    file = os.open(f"{place}/logins", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(file, line.encode())
    os.close(file)


def is_first(place, host):
    try:
        os.close(os.open(f"{place}/seen-{host}", os.O_CREAT | os.O_EXCL, 0o600))
        return True
    except FileExistsError:
        return False


def fail(text, status=255):
    sys.stderr.write(text + "\n")
    sys.stderr.flush()
    os._exit(status)


def pump(child, stop):
    """What sshd and the network do: pass bytes on, both ways,
    until the command has ended or `stop` appears."""
    ends = {0: child.stdin, child.stdout.fileno(): 1, child.stderr.fileno(): 2}
    while len(ends) > (1 if 0 in ends else 0):
        if os.path.exists(stop):
            os.kill(os.getpid(), 9)
        for fd in select.select(list(ends), [], [], 0.05)[0]:
            data = os.read(fd, 65536)
            target = ends[fd]
            if not data:
                if fd == 0:
                    child.stdin.close()
                del ends[fd]
                continue
            try:
                if fd == 0:
                    target.write(data)
                    target.flush()
                else:
                    while data:
                        data = data[os.write(target, data):]
            except (BrokenPipeError, ValueError):
                if fd == 0:
                    del ends[fd]
    return child.wait()


def main():
    if "FAKE_SSH" not in os.environ:
        fail("me@host: Permission denied (publickey).")
    place = os.environ["FAKE_SSH"]
    with open(f"{place}/config.json") as file:
        config = json.load(file)
    words = sys.argv[1:]
    host, command = words[words.index("--") + 1:]
    hosts = config.get("hosts", {})
    behaviour = hosts.get(host, hosts.get("*", "ok"))
    time.sleep(config.get("delay", 0))
    draw = random.Random(f"{config.get('seed', 1)} {host}").random()
    if behaviour == "hung_up_once" or draw < config.get("refuse", 0):
        kind, behaviour = ("hung_up", "ok") if behaviour == "hung_up_once" else ("busy", behaviour)
        behaviour = kind if is_first(place, host) else behaviour
    note(place, host, behaviour, words)
    if behaviour == "busy":  # heard by who listens
        fail(("debug1: kex_exchange_identification: banner line 0: Exceeded MaxStartups\r\n" if "-v" in words
              else "") + FAILURES["hung_up"].format(host=host))
    if behaviour in FAILURES:
        fail(FAILURES[behaviour].format(host=host))
    if behaviour == "password" and "BatchMode=yes" in words:
        fail(FAILURES["denied"].format(host=host))
    if behaviour in ("hang", "password"):
        time.sleep(1000)
    if behaviour == "closed":
        print("This account is currently not available.", flush=True)  # as nologin does
        os._exit(1)
    program, arguments = command.split(" ", 1)
    if behaviour == "absent":
        fail(f"bash: line 1: {program}: No such file or directory", 127)
    if behaviour == "swallow":
        while os.read(0, 65536):
            pass
        os._exit(0)
    program = config.get("path", {}).get(host, program)
    sys.stdout.write(config.get("noise", ""))
    sys.stdout.flush()
    directory = f"{place}/{host}"
    os.makedirs(directory, exist_ok=True)
    environment = dict(os.environ)
    if not config.get("nested"):
        del environment["FAKE_SSH"]  # ssh does not take it along
    environment["SSH_CONNECTION"] = "127.0.0.1 50000 127.0.0.1 22"
    environment["SSH_CLIENT"] = "127.0.0.1 50000 22"  # by it, and without SHLVL, bash reads .bashrc
    environment.pop("SHLVL", None)
    environment["FAKE_HOST"] = host
    if config.get("homes"):
        environment["HOME"] = directory
    line = [*config.get("shell", ["/bin/sh"]), "-c", f"{program} {arguments}"]
    os.chdir(directory)
    if config.get("exec"):
        os.execve(program, [program, *arguments.split(" ")], environment)
    pipe = subprocess.PIPE
    child = subprocess.Popen(line, stdin=pipe, stdout=pipe, stderr=pipe, env=environment,
                             start_new_session=True)
    os._exit(pump(child, f"{place}/drop-{host}") & 255)


main()
