"""fleetrun doctor on hosts with real networks: what is cut, down or different shows where it is."""

import json


def diagnose(host, *arguments):
    job = host.fleetrun("doctor", "--json", *arguments)
    diagnosis = json.loads(job.out)
    assert diagnosis["well"] == (job.status == 0)
    return diagnosis


def problems(diagnosis):
    return {(tuple(f["hosts"]), f["check"]): f["what"] for f in diagnosis["findings"]
            if f["severity"] == "problem"}


def cannot_dial(diagnosis):
    return {(r["from"], r["to"]) for r in diagnosis["reaches"] if r["failure"]}


def test_hosts_that_are_well_are_well(rig):
    h1, *_ = rig.hosts
    diagnosis = diagnose(h1, "--hosts=h1,h2,h3,h4,h5")
    assert problems(diagnosis) == {}
    assert len(diagnosis["reaches"]) == 20 and cannot_dial(diagnosis) == set()
    assert [host["address"] for host in diagnosis["hosts"]] == [f"10.77.0.{n}" for n in range(1, 6)]
    assert [host["condition"]["host_name"] for host in diagnosis["hosts"]] == ["h1", "h2", "h3", "h4", "h5"]
    assert all(host["condition"]["own_name"]["addresses"] == [host["address"]] for host in diagnosis["hosts"])
    assert not any(host.pids() for host in rig.hosts[1:])


def test_the_matrix_shows_two_hosts_that_do_not_hear_each_other(rig):
    h1, h2, h3, *_ = rig.hosts
    h3.deaf_to(h2)
    diagnosis = diagnose(h1, "--hosts=h1,h2,h3,h4")
    assert cannot_dial(diagnosis) == {("h2", "h3"), ("h3", "h2")}
    assert problems(diagnosis) == {
        (("h2",), "ports"): "it cannot dial h3: no answer (a firewall?)",
        (("h3",), "ports"): "it cannot dial h2: no answer (a firewall?)"}


def test_a_firewall_in_one_direction_is_seen_as_one(rig):
    h1, h2, h3, *_ = rig.hosts
    # h3 lets h2 in at ssh's port only; h3's own connections are answered.
    h3.cut(f"ip saddr {h2.address} tcp flags & (syn | ack) == syn tcp dport != 22 drop")
    diagnosis = diagnose(h1, "--hosts=h1,h2,h3")
    assert cannot_dial(diagnosis) == {("h2", "h3")}
    assert problems(diagnosis) == {
        (("h2",), "ports"): "it cannot dial h3: no answer (a firewall?) (the other direction works)"}
    text = h1.fleetrun("doctor", "--hosts=h1,h2,h3")
    assert text.status == 125
    assert "let TCP through between all hosts of a job" in text.out


def test_a_firewall_that_opens_some_ports_only_is_seen_unless_the_job_keeps_to_them(rig):
    h1, h2, h3, *_ = rig.hosts
    h3.cut("tcp flags & (syn | ack) == syn tcp dport != { 22, 20000-20099 } drop")
    told = diagnose(h1, "--hosts=h1,h2,h3", "--port_range=20099:20100")
    assert cannot_dial(told) == {("h1", "h3"), ("h2", "h3")}
    assert problems(told) == {
        (("h1", "h2"), "ports"): "it cannot dial h3: no answer (a firewall?), at port 20100 and not at 1 "
                                 "other of the range (the other direction works)"}
    assert problems(diagnose(h1, "--hosts=h1,h2,h3", "--port_range=20000:20099")) == {}


def test_a_host_that_is_down_is_said_and_the_others_are_examined(rig):
    h1, h2, *_ = rig.hosts
    h2.power_off()
    diagnosis = diagnose(h1, "--hosts=h1,h2,h3")
    said = problems(diagnosis)
    assert list(said) == [(("h2",), "ssh")]
    assert {(r["from"], r["to"]) for r in diagnosis["reaches"]} == {("h1", "h3"), ("h3", "h1")}


def test_secrets_that_differ_and_a_master_of_nobody_are_problems(rig):
    h1, h2, h3, *_ = rig.hosts
    rig.share_secret(h1, h2)
    hosts = "--hosts=h1,h2,h3"
    said = problems(diagnose(h1, hosts, "--master=10.77.0.1:6768"))
    assert said == {(("h3",), "secret"): "there is no secret of the user"}
    assert problems(diagnose(h1, hosts, "--master=10.77.0.4:6768", "--insecure")) == {
        ((), "master"): "10.77.0.4:6768 is an address of none of these hosts"}
    assert problems(diagnose(h1, hosts, "--master=10.77.0.1:6768", "--insecure")) == {}


def test_a_way_that_takes_small_packets_only_is_told_from_one_that_takes_none(rig):
    h1, h2, h3, *_ = rig.hosts
    # As a tunnel on the way does that tells nobody of its MTU.
    h3.cut(f"ip saddr {h2.address} tcp sport != 22 tcp dport != 22 meta length > 1000 drop")
    said = problems(diagnose(h1, "--hosts=h1,h2,h3"))
    why = "small packets come through and large ones do not (MTU?)"
    assert said == {(("h2",), "ports"): f"it cannot dial h3: {why}",
                    (("h3",), "ports"): f"it cannot dial h2: {why}"}


def test_a_head_that_lets_nobody_in_is_fine_unless_it_is_one_of_the_hosts(rig):
    h1, *_ = rig.hosts
    h1.shut()
    assert problems(diagnose(h1, "--hosts=h2,h3")) == {}
    assert problems(diagnose(h1, "--hosts=h1,h2")) == {
        (("h2",), "ports"): "it cannot dial h1: no answer (a firewall?) (the other direction works)"}
