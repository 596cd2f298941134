"""The hosts that the other tests run on are what they seem: apart, joined, and breakable."""

import os
import socket
import subprocess
import sys
import textwrap

import hosts_rig
from fleetrun_job import wait_until
from fxproxy import Proxy

# Answers every byte with itself.
ECHO = """
import socket, sys
server = socket.create_server((sys.argv[1], 0))
print(server.getsockname()[1], flush=True)
while True:
    peer, _ = server.accept()
    try:
        while data := peer.recv(65536):
            peer.sendall(data)
    except ConnectionError:
        pass
    peer.close()
"""
SAY = ("import socket,sys; s=socket.create_connection((sys.argv[1],int(sys.argv[2])),1); "
       "s.sendall(b'hello'); print(s.recv(9))")


def echo_on(host):
    server = host.popen([sys.executable, "-c", ECHO, host.address], stdout=subprocess.PIPE, text=True)
    return int(server.stdout.readline())


def reaches(host, other, port):
    return host.run([sys.executable, "-c", SAY, other.address, port]).returncode == 0


def test_a_host_has_its_own_name_address_disk_home_and_processes(rig):
    h1, h2, *_ = rig.hosts
    assert h1.run(["hostname"]).stdout == "h1\n"
    h1.write("file", "of h1")
    assert h1.run(["cat", rig.place / "file"]).stdout == "of h1"
    assert h2.run(["ls", rig.place, rig.home]).stdout.split() == [f"{rig.place}:", f"{rig.home}:"]
    sleeper = h1.popen(["sleep", "1000"])
    pid = sleeper.real
    assert h1.processes() == {pid: "sleep 1000"} and not h2.processes()
    assert h2.run(["sh", "-c", "cat /proc/[0-9]*/cmdline"]).stdout.count("sleep\x001000") == 0


def test_ssh_between_hosts_needs_no_options_and_checks_host_keys(rig):
    h1, *_ = rig.hosts
    done = h1.run(["ssh", "-o", "BatchMode=yes", "h2", "hostname; echo $HOME"])
    assert (done.stdout, done.stderr) == (f"h2\n{rig.home}\n", "")
    assert "StrictHostKeyChecking" not in (h1.home / ".ssh" / "config").read_text()
    stranger = h1.run(["ssh", "-o", "BatchMode=yes", "-o", "UserKnownHostsFile=/dev/null", "h2", "hostname"])
    assert stranger.returncode == 255 and "Host key verification failed" in stranger.stderr


def test_listeners_are_found_with_their_addresses(rig):
    h1, h2, *_ = rig.hosts
    port = echo_on(h2)
    assert h2.listeners() == {("10.77.0.2", port)} and h1.listeners() == set()


def test_a_cut_is_one_way_or_both(rig):
    h1, h2, h3, *_ = rig.hosts
    port = echo_on(h2)
    assert reaches(h1, h2, port) and reaches(h3, h2, port)
    h2.deaf_to(h1)
    assert not reaches(h1, h2, port) and reaches(h3, h2, port)
    h2.hears()
    assert reaches(h1, h2, port)
    h2.link(up=False)
    assert not reaches(h1, h2, port)
    h2.link(up=True)
    assert reaches(h1, h2, port)


def test_a_partition_leaves_each_side_whole(rig):
    h1, h2, h3, h4, _ = rig.hosts
    ports = {host: echo_on(host) for host in (h1, h3, h4)}
    rig.partition([h1, h2], [h3, h4])
    assert reaches(h2, h1, ports[h1]) and reaches(h3, h4, ports[h4])
    assert not reaches(h1, h3, ports[h3])
    rig.heal()
    assert reaches(h1, h3, ports[h3])


def test_a_frozen_host_acknowledges_and_does_not_answer(rig):
    h1, h2, *_ = rig.hosts
    port = echo_on(h2)
    h2.freeze()
    assert not reaches(h1, h2, port)
    h2.thaw()
    assert reaches(h1, h2, port)


def test_a_host_without_power_takes_its_processes_along(rig):
    h1, h2, *_ = rig.hosts
    running = h2.popen(["sleep", "1000"])
    pid = running.real
    h2.power_off()
    assert running.wait(10) != 0 and not os.path.exists(f"/proc/{pid}")
    h2.power_on()
    assert h1.run(["ssh", "h2", "hostname"]).stdout == "h2\n"


def test_a_capture_holds_the_bytes_of_both_directions(rig):
    h1, h2, *_ = rig.hosts
    port = echo_on(h2)
    with rig.capture() as capture:
        assert reaches(h1, h2, port)
    streams = capture.streams()
    assert capture.lost == 0
    assert [data for (*_, to), data in streams.items() if to == port] == [b"hello"]
    assert [data for (_, source, *_), data in streams.items() if source == port] == [b"hello"]


def test_hosts_end_with_the_process_that_made_them_even_if_it_is_killed(all_hosts, tmp_path):
    program = textwrap.dedent(f"""
        import sys
        sys.path.insert(0, {os.path.dirname(hosts_rig.__file__)!r})
        import hosts_rig
        rig = hosts_rig.Rig({str(tmp_path / 'rig')!r}, hosts=2)
        sleeper = rig.hosts[0].popen(["sleep", "1000"])
        print(rig.switch, rig.hosts[0].init, rig.hosts[0].sshd, sleeper.real, flush=True)
        sys.stdin.read()
    """)
    maker = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             text=True)
    pids = [int(word) for word in maker.stdout.readline().split()]
    assert len(pids) == 4
    # One that is just being executed has no command line for a moment.
    wait_until(lambda: all(hosts_rig.command(pid) for pid in pids), "the processes of the hosts")
    maker.kill()
    maker.communicate()
    wait_until(lambda: not any(hosts_rig.command(pid) for pid in pids), "the end of the hosts")


def talk(proxy, data, more=0):
    """What comes back for `data` through the proxy, until the connection ends
    or as much came back (and `more`)."""
    back = b""
    with socket.create_connection(proxy.address, 10) as connection:
        connection.settimeout(0.5)
        try:
            connection.sendall(data)
            while len(back) < len(data) + more and (piece := connection.recv(65536)):
                back += piece
        except ConnectionResetError:
            back += b"RST"
        except TimeoutError:
            back += b"..."
    return back


def test_the_proxy_does_to_bytes_what_it_is_told():
    server = subprocess.Popen([sys.executable, "-c", ECHO, "127.0.0.1"], stdout=subprocess.PIPE, text=True)
    try:
        with Proxy(to=("127.0.0.1", int(server.stdout.readline()))) as proxy:
            assert talk(proxy, b"plain") == b"plain"
            proxy.do("both slice 1")
            proxy.do("up delay 5 3")
            assert talk(proxy, b"slow") == b"slow"
            for line, said, back in (("down limit 3", b"limited", b"lim"),
                                     ("down limit 3 rst", b"limited", b"limRST"),
                                     ("up repeat 1", b"x", b"xx"), ("down hole", b"gone", b"...")):
                proxy.do("clear")
                proxy.do(line)
                assert talk(proxy, said, more=line == "up repeat 1") == back, line
            proxy.do("clear")
            proxy.do("up flip 1")
            flipped = talk(proxy, b"\0" * 64)
            assert all(bin(byte).count("1") == 1 for byte in flipped) and len(flipped) == 64
            proxy.do("clear")
            before = int(proxy.do("count").split()[2])
            proxy.do("replay")
            assert (int(proxy.do("count").split()[2]) == before
                    and talk(proxy, b"still there") == b"still there")
    finally:
        server.kill()
        server.communicate()
