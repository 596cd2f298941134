"""Jobs of many processes: more is said between fleetrun and fleetrun-init than their socket holds."""


def test_a_thousand_processes_that_end_at_once_are_all_started_and_all_reported(work):
    job = work.run("--nproc_per_node=1000", "/bin/true")
    assert job.status == 0, job.err[-2000:]
    assert "replicas 1000, status running" in job.err
    assert not job.survivors()
