"""Tests the jobs of deploy/ in which each pod is a rank. The pods are made as Kubernetes'
controllers make them."""
import time

import operators
import pytest

JOBS = [operators.indexed_job, operators.jobset]


@pytest.mark.parametrize("secrets", [{}, {"tutti-token": {"key": "", "token": "b7f1c2d3e4a5968778695a4b3c2d1e0f"}}],
                         ids=["without a token", "with a token"])
@pytest.mark.parametrize("play", JOBS)
def test_ranks_meet_though_their_names_become_known_late(play, secrets, cluster):
    started = play(cluster, secrets)
    running = [pod.start(words) for pod, words in started]
    time.sleep(2)  # the ranks look for a name that does not exist yet
    assert [rank.process.poll() for rank in running] == [None, None], "".join(rank.err for rank in running)
    cluster.publish(pod for pod, _ in started)
    for number, rank in enumerate(running):
        assert rank.wait() == 0, rank.out + rank.err
        assert f"rank {number} brings " in rank.out
        assert ("without a token" in rank.err) == (not secrets), rank.err
    assert "sum, in place: [2, 1, 10]\n" in running[0].out
