"""How users have ssh and their hosts: one function a case, which changes the hosts of a Lab for it.

What a case is called is told with blanks. `hosts` is what --hosts gets; `ranks` the size of the job;
`wanted` a pattern of the error, where the job cannot run, which has to name `named`, too. `probe` are the
words of the ssh that is timed beside the job, which may take `more` seconds than others.
"""

import os
import re
import shutil
import subprocess

from fleetrun_job import find_fleetrun, wait_until
from hosts_rig import make_key

CASES = []
NOISE = "echo welcome to $(hostname)\nprintf '\\033[1mno end of line'\necho 'a warning' >&2\n"
LONG = "a-host-with-quite-a-long-name-as-clouds-make-them-0123456789abc.zone-1.europe.example.internal"


class Case:
    def __init__(self, prepare, wanted, named, hosts, ranks, probe, flags, more):
        self.prepare, self.wanted, self.named, self.more = prepare, wanted, named, more
        self.hosts, self.ranks, self.probe, self.flags = hosts, ranks, probe.split(), flags.split()
        self.name = prepare.__name__.replace("_", " ")


def case(wanted=None, named="h2", hosts="h2,h3", ranks=2, probe="h2", flags="", more=0):
    def add(prepare):
        CASES.append(Case(prepare, wanted, named, hosts, ranks, probe, flags, more))
        return prepare
    return add


# ---- ~/.ssh/config


@case()
def nothing_special(lab):
    pass


@case()
def a_master_that_persists_is_configured(lab):
    lab.config(f"ControlMaster auto\nControlPath {lab.rig.home}/cm-%C\nControlPersist 60\n")


@case()
def only_the_master_that_runs_is_let_in(lab):
    """As where a second factor is asked for: one login by hand, and the rest goes through it."""
    lab.config(f"ControlPath {lab.rig.home}/cm-%C\n")
    for host in (lab.h2, lab.h3):
        lab.start(lab.h1, "ssh", "-o", "ControlMaster=yes", "-N", host.name)
    wait_until(lambda: len(list(lab.h1.home.glob("cm-*"))) == 2, "both masters")
    for host in (lab.h2, lab.h3):
        lab.sshd(host, "AuthorizedKeysFile none")


@case()
def a_masters_socket_without_a_master(lab):
    lab.config(f"ControlMaster auto\nControlPath {lab.rig.home}/cm-%h\nControlPersist 60\n")
    master = lab.start(lab.h1, "ssh", "-MN", "h2")
    wait_until(lambda: list(lab.h1.home.glob("cm-*")), "the master")
    master.kill()
    master.wait()


@case()
def a_jump_host(lab):
    lab.config("Host h2 h3\n  ProxyJump h4\n")


@case()
def two_jump_hosts_one_after_the_other(lab):
    lab.config("Host h2\n  ProxyJump h4,h3\n")


@case()
def a_jump_host_with_a_master_that_persists(lab):
    lab.config(f"Host h2 h3\n  ProxyJump h4\nHost h4\n  ControlMaster auto\n"
               f"  ControlPath {lab.rig.home}/cm-%C\n  ControlPersist 2\n")


@case(wanted="its jump host: it forwards nothing")
def a_jump_host_that_forwards_nothing(lab):
    lab.config("Host h2\n  ProxyJump h4\n")
    lab.sshd(lab.h4, "AllowTcpForwarding no")


@case(wanted="its jump host: ssh is not let in")
def a_jump_host_that_lets_nobody_in(lab):
    lab.config("Host h2\n  ProxyJump h4\n")
    lab.sshd(lab.h4, "AuthorizedKeysFile none")


@case(wanted="its jump host: it does not answer", flags="--join_timeout=3")
def a_jump_host_that_drops_all(lab):
    lab.config("Host h2\n  ProxyJump h4\n")
    lab.h4.shut()


@case(wanted="seen from its jump host, nothing listens")
def a_jump_host_that_finds_no_sshd(lab):
    lab.config("Host h2\n  ProxyJump h4\n  Port 2222\n")


@case()
def a_proxy_command(lab):
    lab.config("Host h2 h3\n  ProxyCommand ssh -W %h:%p h4\n")


@case(wanted="ProxyCommand")
def a_proxy_command_that_is_not_there(lab):
    lab.config("Host h2\n  ProxyCommand /nowhere/connect %h %p\n")


@case()
def another_port_in_the_configuration(lab):
    lab.config("Host h2\n  Port 2222\n")
    lab.sshd(lab.h2, f"ListenAddress {lab.h2.address}:2222")


@case(hosts="h2:port=2222,h3", probe="-p 2222 h2")
def another_port_in_the_list(lab):
    lab.sshd(lab.h2, f"ListenAddress {lab.h2.address}:2222")


@case(hosts="me@h2,me@h3", probe="me@h2")
def another_user_in_the_list(lab):
    lab.account("/bin/bash")
    lab.config("")


@case()
def another_user_in_the_configuration(lab):
    lab.account("/bin/bash")


@case(hosts="gpu-box,h3", named="gpu-box", probe="gpu-box")
def a_name_that_only_the_configuration_knows(lab):
    lab.config(f"Host gpu-box\n  HostName {lab.h2.address}\n")


@case(hosts="node7,h3", named="node7", probe="node7")
def an_alias_by_a_pattern_with_a_token(lab):
    lab.name(lab.h2, "node7.cluster")
    lab.config("Match originalhost node* exec true\n  HostName %h.cluster\n  HostKeyAlias h2\n")


@case()
def forwardings_and_a_local_command(lab):
    lab.config("LocalForward 9000 localhost:9000\nRemoteForward 9001 localhost:9001\nForwardAgent yes\n"
               "PermitLocalCommand yes\nLocalCommand echo local\nForwardX11 yes\nVisualHostKey yes\n"
               "RequestTTY force\nLogLevel VERBOSE\n")


@case()
def a_command_of_the_configuration(lab):
    lab.config("Host h2\n  RemoteCommand tmux attach\n  RequestTTY yes\n")


@case(wanted="[Bb]ad configuration option")
def a_line_that_ssh_does_not_know(lab):
    lab.config("Host h2\n  UseKeychainn yes\n")


@case(wanted="LogLevel")
def a_quiet_ssh_that_fails(lab):
    lab.config("Host h2\n  LogLevel QUIET\n  Port 2222\n")


@case(wanted="nothing listens")
def a_talkative_ssh_that_fails(lab):
    lab.config("Host h2\n  LogLevel DEBUG3\n  Port 2222\n")


# ---- keys


@case(wanted="ssh-add")
def a_key_with_a_passphrase_and_no_agent(lab):
    lab.config(f"IdentityFile {lab.key('locked', 'secret')}\nIdentitiesOnly yes\n")


@case()
def a_key_with_a_passphrase_in_the_agent(lab):
    path = lab.key("locked", "secret")
    socket = f"{lab.rig.home}/agent"
    lab.start(lab.h1, "ssh-agent", "-D", "-a", socket, stdout=subprocess.DEVNULL)
    wait_until(lambda: (lab.h1.home / "agent").exists(), "the agent")
    lab.environment["SSH_AUTH_SOCK"] = socket
    ask = lab.h1.write("ask", "#!/bin/sh\necho secret\n", 0o755)
    lab.h1.run(["ssh-add", path], check=True, environment=lab.h1.environment(
        SSH_AUTH_SOCK=socket, SSH_ASKPASS=str(lab.rig.place / ask.name), SSH_ASKPASS_REQUIRE="force"))


@case(wanted="chmod 600")
def a_key_that_others_may_read(lab):
    path = lab.key("open")
    path.chmod(0o644)
    lab.config(f"IdentityFile {path}\nIdentitiesOnly yes\n")


@case(wanted="too many keys")
def too_many_keys_are_offered(lab):
    lab.key("right")
    names = [lab.rig.directory / f"wrong{number}" for number in range(7)]
    for name in names:
        if not name.exists():
            make_key(name)
    lab.config("".join(f"IdentityFile {name}\n" for name in names))


@case(wanted="ssh-copy-id")
def a_password_is_asked_for(lab):
    ask = lab.h1.write("ask", "#!/bin/sh\ntouch asked\nsleep 1000\n", 0o755)
    lab.environment.update(SSH_ASKPASS=str(lab.rig.place / ask.name), DISPLAY=":0",
                           SSH_ASKPASS_REQUIRE="force")
    lab.sshd(lab.h2, "AuthorizedKeysFile none", "PasswordAuthentication yes",
             "KbdInteractiveAuthentication yes")


@case(wanted="host key is not known")
def a_host_key_that_is_not_known(lab):
    lab.config("Host h2\n  UserKnownHostsFile /dev/null\n")


@case()
def a_new_host_key_that_is_taken(lab):
    lab.config("Host h2\n  UserKnownHostsFile /dev/null\n  StrictHostKeyChecking accept-new\n")


@case(wanted="ssh-keygen -R")
def a_host_key_that_has_changed(lab):
    known, other = lab.rig.directory / "known_hosts", lab.rig.directory / "other"
    if not other.exists():
        make_key(other)
    lines = [line for line in lab.known.splitlines(True) if not line.startswith("h2,")]
    known.write_text("".join(lines) + f"h2,{lab.h2.address} {other.with_suffix('.pub').read_text()}")


@case(wanted="not let in")
def a_user_who_is_not_let_in(lab):
    lab.sshd(lab.h2, "PermitRootLogin no")


# ---- what the host says, and its shells


@case()
def a_banner_and_a_message_of_the_day(lab):
    banner = lab.rig.directory / "banner"
    banner.write_text("Permission denied to all who are not known here.\nNo such file or directory.\n" * 40)
    lab.sshd(lab.h2, f"Banner {banner}", "PrintMotd yes", "PrintLastLog yes")


@case(wanted="there is no /nowhere/fleetrun", flags="--path=/nowhere/fleetrun")
def a_banner_is_not_the_reason(lab):
    banner = lab.rig.directory / "banner"
    banner.write_text("Connection closed by the operator: Permission denied to strangers.\n")
    lab.sshd(lab.h2, f"Banner {banner}")


@case()
def bash_that_talks(lab):
    lab.account("/bin/bash", _bashrc=NOISE, _bash_profile=NOISE)


@case()
def bash_that_talks_for_a_megabyte(lab):
    lab.account("/bin/bash", _bashrc="head -c 1000000 /dev/zero | tr '\\0' x\n")


@case(wanted="exit")
def bash_that_exits(lab):
    lab.account("/bin/bash", _bashrc="exit 0\n")


@case(wanted="by hand")
def bash_that_exits_with_a_status(lab):
    lab.account("/bin/bash", _bashrc="module load cuda || exit 3\n")


@case()
def bash_that_becomes_another_shell_at_a_terminal(lab):
    lab.account("/bin/bash", _bashrc="case $- in *i*) exec fish;; esac\n[ -t 0 ] && exec zsh\n")


@case(wanted="shell", flags="--join_timeout=3")
def bash_that_always_becomes_zsh(lab):
    lab.account("/bin/bash", _bashrc="exec zsh\n")


@case(wanted="wait for input", flags="--join_timeout=3")
def bash_that_asks_something(lab):
    lab.account("/bin/bash", _bashrc="read -p 'which project? ' project\n[ -n \"$project\" ] || exit 1\n")


@case()
def bash_that_takes_five_seconds(lab):
    lab.account("/bin/bash", _bashrc="sleep 5\n")


@case()
def bash_whose_start_fails(lab):
    lab.account("/bin/bash", _bashrc="source /nowhere/conda.sh\nset -u\necho $NOT_SET\nfalse\n")


@case(wanted="nologin|not available|shell")
def nologin(lab):
    lab.account("/usr/sbin/nologin")


@case(wanted="shell|ended with 1")
def a_shell_that_is_false(lab):
    lab.account("/bin/false")


@case(wanted="not let in|shell")
def a_shell_that_does_not_exist(lab):
    lab.account("/bin/sh")
    path = lab.rig.directory / "etc" / "passwd"
    path.write_text(path.read_text().replace("/me:/bin/sh", "/me:/bin/gone"))


@case(wanted="rbash|restricted")
def rbash(lab):
    lab.account("/bin/rbash")


@case()
def csh(lab):
    lab.account("/bin/csh", _cshrc="echo hello from csh\nsetenv A b\n")


@case()
def tcsh(lab):
    lab.account("/usr/bin/tcsh", _tcshrc="echo hello; set prompt='% '\n")


@case()
def fish(lab):
    lab.account("/usr/bin/fish", _config__fish__config_fish_="")
    lab.config("Host h2 h3\n  User me\n")


@case()
def zsh(lab):
    lab.account("/usr/bin/zsh", _zshrc="echo rc\n", _zshenv="echo env\nsetopt nounset\n")


@case()
def dash(lab):
    lab.account("/bin/dash", _profile=NOISE)


@case()
def ksh(lab):
    lab.account("/bin/ksh", _kshrc=NOISE)


@case(wanted="command of its own|ended with 0")
def sshd_runs_a_command_of_its_own(lab):
    lab.sshd(lab.h2, "ForceCommand echo backups only")


@case()
def sshd_runs_what_was_asked_for_by_a_wrapper(lab):
    lab.sshd(lab.h2, 'ForceCommand exec sh -c "$SSH_ORIGINAL_COMMAND"')


@case()
def a_home_that_does_not_exist(lab):
    lab.account("/bin/bash")
    shutil.rmtree(lab.rig.directory / "me")


@case()
def a_home_that_takes_no_files(lab):
    lab.account("/bin/bash")
    os.chown(lab.rig.directory / "me", 0, 0)


# ---- what is not there


@case(wanted="--ship")
def no_fleetrun_there(lab):
    lab.hide(lab.h2, os.path.dirname(find_fleetrun()))


@case(wanted="cannot be executed")
def a_fleetrun_that_may_not_be_executed(lab):
    folder = os.path.dirname(find_fleetrun())
    lab.hide(lab.h2, folder)
    lab.h2.run(["sh", "-c", f"echo > {folder}/fleetrun"], check=True, directory="/")


@case(wanted="--ship")
def no_script_there(lab):
    (lab.h2.files / "job.py").unlink()


@case(wanted="--chdir|--ship")
def no_such_working_directory_there(lab):
    outer = lab.rig.directory / "only-here"
    lab.directory = outer / "work"
    lab.directory.mkdir(parents=True, exist_ok=True)
    shutil.copy(lab.h1.files / "job.py", lab.directory)
    lab.hide(lab.h2, outer)


@case(wanted="log")
def a_working_directory_that_takes_no_files(lab):
    lab.account("/bin/bash")
    lab.h2.files.chmod(0o755)
    lab.undo.append(lambda: lab.h2.files.chmod(0o777))


@case(wanted="--ship=venv")
def no_python_there(lab):
    folder = lab.rig.directory / "python"
    folder.mkdir(exist_ok=True)
    python = folder / "python3"
    python.exists() or python.symlink_to("/usr/bin/python3")
    lab.flags = [f"--python={python}"]
    lab.hide(lab.h2, folder)


# ---- the network


@case()
def a_head_that_lets_nobody_in(lab):
    lab.h1.shut()


@case(hosts="h2,h1", ranks=2)
def a_head_with_a_process_that_lets_nobody_in(lab):
    """Nothing here connects between the processes."""
    lab.h1.shut()


@case(hosts="[fd77::2],[fd77::3]", named="fd77::2", probe="fd77::2")
def addresses_of_ipv6(lab):
    only_ipv6(lab)


@case(hosts="six2,six3", named="six2", probe="six2")
def names_with_ipv6_alone(lab):
    only_ipv6(lab)


def only_ipv6(lab):
    for host in lab.hosts:
        host.run(["ip", "addr", "add", f"fd77::{host.number}/64", "dev", "eth0", "nodad"], check=True,
                 directory="/")
        lab.undo.append(lambda host=host: host.run(
            ["ip", "addr", "del", f"fd77::{host.number}/64", "dev", "eth0"], directory="/"))
    for host in (lab.h2, lab.h3):
        lab.sshd(host, f"ListenAddress [fd77::{host.number}]:22", "ListenAddress 127.0.0.1:22")
        host.run(["ip", "addr", "del", f"{host.address}/24", "dev", "eth0"], check=True, directory="/")
        lab.undo.append(lambda host=host: host.run(
            ["ip", "addr", "add", f"{host.address}/24", "dev", "eth0"], directory="/"))
    with open(lab.rig.directory / "etc" / "hosts", "a") as file:
        file.write("".join(f"fd77::{host.number} six{host.number}\n" for host in lab.hosts))
    lines = [re.sub(r"^h(\d),\S+", r"six\1,fd77::\1", line) for line in lab.known.splitlines(True)]
    (lab.rig.directory / "known_hosts").write_text("".join(lines))


@case(hosts=f"{LONG},h3", named=LONG, probe=LONG)
def a_long_name(lab):
    lab.name(lab.h2, LONG)
    lab.config(f"Host {LONG}\n  HostKeyAlias h2\n")


@case(hosts="h2,h3,h2", ranks=3)
def a_host_that_is_listed_twice(lab):
    pass


@case(hosts="localhost:1,h1:1,h2:1", ranks=3)
def localhost_beside_the_own_name(lab):
    pass


@case(hosts="h2,alias-of-h2", ranks=2)
def two_names_of_one_host(lab):
    lab.name(lab.h2, "alias-of-h2")
    lab.config("Host alias-of-h2\n  HostKeyAlias h2\n")


@case(wanted="does not answer", flags="--join_timeout=3", probe="-o ConnectTimeout=3 h2")
def a_host_that_drops_all(lab):
    lab.h2.shut()


@case(wanted="reject|nothing listens|not answer|unreachable|no route")
def a_host_that_rejects_all(lab):
    lab.h2.cut("tcp dport 22 reject with icmpx admin-prohibited")


@case(wanted="nothing listens")
def no_sshd_there(lab):
    lab.sshd(lab.h2, f"ListenAddress {lab.h2.address}:2222", "Port 2222")
    lab.h2.cut("tcp dport 22 reject with tcp reset")


@case(wanted="hung up", flags="--join_timeout=2")
def a_sshd_that_hangs_up_on_everybody(lab):
    lab.config("Host h2\n  Port 2200\n")
    serve(lab, lab.h2, "connection = s.accept()[0]; connection.close()")


@case(hosts="n[1-8]", ranks=8, probe="n1", more=8)
def a_sshd_that_lets_in_two_logins_at_a_time(lab):
    """Eight hosts behind one jump host, most of whose logins are turned away at first."""
    lab.config("Host n*\n  HostName 10.77.0.2\n  HostKeyAlias h2\n  ProxyJump h4\n")
    lab.sshd(lab.h4, "MaxStartups 2:100:2")


@case(wanted="name is not known", hosts="nobody,h3", named="nobody", probe="nobody")
def a_name_that_nobody_knows(lab):
    pass


@case(wanted="does not answer", flags="--join_timeout=4", probe="-o ConnectTimeout=4 h2")
def a_port_that_says_nothing(lab):
    lab.config("Host h2\n  Port 2200\n")
    serve(lab, lab.h2, "kept.append(s.accept())")


def serve(lab, host, what):
    """Something that is not sshd, at port 2200."""
    server = ("import socket; s = socket.create_server((\"0.0.0.0\", 2200)); print(1, flush=True)\n"
              f"kept = []\nwhile 1: {what}")
    lab.start(host, "python3", "-c", server, stdout=subprocess.PIPE).stdout.readline()
