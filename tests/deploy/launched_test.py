"""Tests the jobs of deploy/ that have a launcher. The pods are made as the jobs' controllers make
them."""
import operators
import pods
import pytest

JOBS = [operators.mpijob_v1, operators.mpijob_v2beta1, operators.trainjob, operators.volcano_job]
BY_SSH = [operators.mpijob_v2beta1, operators.trainjob, operators.volcano_job]


def check_result(launcher):
    assert launcher.wait() == 0, launcher.out + launcher.err
    assert launcher.out.count(" brings ") == 4, launcher.out
    assert "sum, in place: [4, 6, 60]\n" in launcher.out


def check_nothing_is_left(job):
    """Checks that the workers' only processes are those of sshd. (An agent may end a little later than the launcher.)"""
    def left():
        return [line for worker in job.workers for line in worker.processes().values() if "sshd" not in line]

    pods.eventually(lambda: not left(), "the end of all processes in the workers")


@pytest.mark.parametrize("play", JOBS)
def test_a_job_runs(play, cluster):
    job = play(cluster)
    if play in BY_SSH:
        cluster.publish([job.launcher, *job.workers])
    launcher = job.start()
    check_result(launcher)
    check_nothing_is_left(job)


@pytest.mark.parametrize("play", BY_SSH)
def test_names_may_become_known_late(play, cluster):
    """Tests a late start: the pods of workers are often made long after the launcher's pod, and
    their names are published even later."""
    job = play(cluster)
    launcher = job.start()
    launcher.wait_for_error("Could not resolve hostname")
    cluster.publish([job.launcher, job.workers[0]])
    launcher.wait_for_error("1 of 2 hosts are up")
    cluster.publish(job.workers)
    check_result(launcher)


@pytest.mark.parametrize("play", JOBS)
def test_a_killed_rank_ends_the_job(play, cluster):
    job = play(cluster)
    job.command = [word for word in job.command if word != "02_all_reduce"] + ["sleep", "1000"]
    cluster.publish([job.launcher, *job.workers])
    launcher = job.start()
    job.workers[1].kill("sleep 1000")
    assert launcher.wait() == 128 + 9, launcher.out + launcher.err
    assert "was ended by signal 9" in launcher.err and job.workers[1].name in launcher.err
    check_nothing_is_left(job)


def test_the_operators_variables_are_told(cluster):
    job = operators.mpijob_v1(cluster)
    launcher = job.start()
    check_result(launcher)
    assert ("the hosts are those of /etc/mpi/hostfile (OMPI_MCA_orte_default_hostfile), reached by /etc/mpi/kubexec.sh "
            "(OMPI_MCA_plm_rsh_agent)") in launcher.err
    assert "ignored, since only Open MPI knows their meaning: -mca pml ob1, -mca btl ^openib" in launcher.err
