"""Fail points: each action, the counting, the environment, and the rendezvous with a child."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

import pytest

from omnigraph.errors import OmnigraphError, UsageError
from omnigraph.failpoints import (
    ENV_DIRECTORY,
    ENV_POINTS,
    EXIT_CODE,
    ArmedAction,
    FailPoint,
    FailPointError,
    arm_from_environment,
    armed,
    disarm,
    hit,
)
from omnigraph.testing.clock import ManualClock
from omnigraph.testing.rendezvous import Rendezvous

POINT = FailPoint.PUBLISH_BEFORE_COMMIT
OTHER = FailPoint.PUBLISH_AFTER_COMMIT
CHILD = """
from omnigraph.failpoints import FailPoint, hit
for turn in range(3):
    print("turn", turn, flush=True)
    hit(FailPoint.PUBLISH_BEFORE_COMMIT)
print("done", flush=True)
"""


def start_child(environment):
    return subprocess.Popen(
        [sys.executable, "-c", CHILD],
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run_child(spec):
    child = start_child({ENV_POINTS: spec})
    out, err = child.communicate(timeout=60)
    return child.returncode, out.split("\n")[:-1], err


def test_nothing_happens_when_nothing_is_armed():
    for point in FailPoint:
        hit(point)


def test_raise_raises_an_error_that_no_handler_of_ours_catches():
    with armed(POINT, ArmedAction.RAISE) as arm, pytest.raises(FailPointError, match=str(POINT)):
        hit(POINT)
    assert (arm.hits, arm.fired) == (1, 1)
    assert issubclass(FailPointError, Exception)
    assert not issubclass(FailPointError, OmnigraphError)


def test_only_the_armed_point_acts_and_only_within_the_block():
    with armed(POINT, ArmedAction.RAISE):
        hit(OTHER)
    hit(POINT)


def test_skip_and_times_choose_the_hits_that_act():
    acted = []
    with armed(POINT, lambda: acted.append(arm.hits), skip=2, times=2) as arm:
        for _ in range(6):
            hit(POINT)
    assert acted == [3, 4]
    assert (arm.hits, arm.fired) == (6, 2)


def test_without_limit_every_hit_acts():
    with armed(POINT, "raise", times=None) as arm:
        for _ in range(3):
            with pytest.raises(FailPointError):
                hit(POINT)
    assert arm.fired == 3


def test_a_call_may_pass_the_same_point_again():
    calls = []

    def write_from_another_handle():
        calls.append(1)
        hit(POINT)

    with armed(POINT, write_from_another_handle):
        hit(POINT)
        hit(POINT)
    assert len(calls) == 1


def test_one_point_can_be_armed_twice():
    seen = []
    with (
        armed(POINT, lambda: seen.append("first")),
        armed(POINT, lambda: seen.append("second"), skip=1),
    ):
        hit(POINT)
        hit(POINT)
    assert seen == ["first", "second"]


def test_of_many_threads_exactly_one_hit_acts():
    acted = []
    barrier = threading.Barrier(16)

    def pass_by():
        barrier.wait()
        for _ in range(50):
            hit(POINT)

    with armed(POINT, lambda: acted.append(1), skip=100) as arm:
        threads = [threading.Thread(target=pass_by) for _ in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(acted) == 1
    assert arm.hits == 16 * 50


def test_pause_waits_for_the_go_file_through_the_injected_clock(tmp_path):
    class ReleasingClock(ManualClock):
        def sleep(self, seconds):
            super().sleep(seconds)
            assert (tmp_path / f"{POINT}.reached").exists()
            if len(self.sleeps_s) == 3:
                (tmp_path / f"{POINT}.go").touch()

    clock = ReleasingClock()
    with armed(POINT, ArmedAction.PAUSE, directory=tmp_path, clock=clock):
        hit(POINT)
    assert len(clock.sleeps_s) == 3


def test_a_pause_that_nobody_ends_gives_up(tmp_path):
    with (
        armed(POINT, ArmedAction.PAUSE, directory=tmp_path, clock=ManualClock()),
        pytest.raises(FailPointError, match="was not created"),
    ):
        hit(POINT)


@pytest.mark.parametrize(
    ("action", "options"),
    [
        ("explode", {}),
        (ArmedAction.PAUSE, {}),
        (ArmedAction.CALL, {}),
        ("raise", {"skip": -1}),
        ("raise", {"times": 0}),
    ],
)
def test_nonsense_is_refused_in_process(action, options):
    with pytest.raises(UsageError), armed(POINT, action, **options):
        pytest.fail("must not be armed")


@pytest.mark.parametrize(
    "spec",
    [
        "publish.before=kill",
        "publish.before_commit",
        "publish.before_commit=explode",
        "publish.before_commit=call",
        "publish.before_commit=pause",
        "publish.before_commit=kill;skip=many",
        "publish.before_commit=kill;later=1",
        "publish.after_commit=exit,publish.nowhere=kill",
    ],
)
def test_an_environment_with_nonsense_is_refused_and_arms_nothing(spec):
    with pytest.raises(UsageError):
        arm_from_environment({ENV_POINTS: spec})
    hit(OTHER)


def test_the_environment_arms_several_points(tmp_path):
    environment = {
        ENV_POINTS: f"{POINT}=raise;skip=1;times=1, {OTHER}=pause",
        ENV_DIRECTORY: str(tmp_path),
    }
    arms = arm_from_environment(environment)
    try:
        hit(POINT)
        with pytest.raises(FailPointError):
            hit(POINT)
        assert [arm.action for arm in arms] == [ArmedAction.RAISE, ArmedAction.PAUSE]
    finally:
        disarm(arms)
    hit(POINT)


def test_a_misspelt_point_stops_a_child_at_once():
    code, out, err = run_child("publish.befor_commit=kill")
    assert code == 1
    assert out == []
    assert "UsageError" in err
    assert "publish.before_commit" in err


def test_exit_ends_a_child_without_cleaning_up():
    assert run_child(f"{POINT}=exit") == (EXIT_CODE, ["turn 0"], "")


def test_kill_is_a_real_kill():
    assert run_child(f"{POINT}=kill;skip=1") == (-signal.SIGKILL, ["turn 0", "turn 1"], "")


def test_raise_in_a_child_is_an_ordinary_traceback():
    code, _, err = run_child(f"{POINT}=raise")
    assert code == 1
    assert "FailPointError: fail point publish.before_commit" in err


def test_a_child_pauses_until_it_is_released(tmp_path):
    meeting = Rendezvous(tmp_path)
    child = start_child(meeting.env(POINT))
    meeting.wait_reached(POINT, alive=lambda: child.poll() is None)
    assert child.poll() is None
    meeting.release(POINT)
    out, err = child.communicate(timeout=60)
    assert (child.returncode, err) == (0, "")
    assert out.endswith("done\n")


def test_a_child_that_ends_before_the_meeting_is_noticed(tmp_path):
    meeting = Rendezvous(tmp_path)
    child = start_child({})
    with pytest.raises(Exception, match="ended before it reached"):
        meeting.wait_reached(POINT, alive=lambda: child.poll() is None)
    child.communicate(timeout=60)
