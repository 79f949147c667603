"""Whose session the pipeline uses, and what it leaves as it was."""

from __future__ import annotations

import os
import signal
import sys
import threading

import pytest

from omnigraph.spark.sessions import Pipeline, pipeline_session, spark_available

OWN = {"spark.sql.shuffle.partitions": "4"}


def rows(spark) -> int:
    return spark.range(0, 100, 1, 2).mapInArrow(lambda it: it, "id bigint").count()


def test_the_callers_session_is_used_and_not_stopped(spark):
    with pipeline_session(spark) as pipeline:
        assert pipeline.spark is spark
        assert not pipeline.owned
    assert spark.range(3).count() == 3


def test_the_active_session_is_used_and_not_stopped(spark):
    with pipeline_session() as pipeline:
        assert pipeline.spark is spark
        assert not pipeline.owned
    assert spark.range(3).count() == 3


def test_a_session_that_was_made_in_another_thread_is_found(spark):
    found: list[Pipeline] = []
    thread = threading.Thread(target=lambda: found.append(pipeline_session()))
    thread.start()
    thread.join()
    assert found[0].spark is spark
    assert not found[0].owned


def test_no_setting_of_somebody_elses_session_is_changed(spark):
    def settings() -> dict[str, str]:
        return {row["key"]: row["value"] for row in spark.sql("SET").collect()}

    before, path, handler = settings(), list(sys.path), signal.getsignal(signal.SIGINT)
    environment = dict(os.environ)
    with pipeline_session(spark):
        assert rows(spark) == 100
    assert settings() == before
    assert sys.path == path
    assert signal.getsignal(signal.SIGINT) is handler
    assert dict(os.environ) == environment


def test_a_new_session_of_the_same_application_is_served_too(spark):
    other = spark.newSession()
    with pipeline_session(other) as pipeline:
        assert pipeline.spark is other
        assert rows(other) == 100


def test_our_own_session_is_quiet_shared_and_stopped_by_the_last(spark_stopped, capfd):
    path, handler, environment = list(sys.path), signal.getsignal(signal.SIGINT), variables()
    assert spark_available()
    for _ in range(2):  # Two in a row: the second one is new.
        with pipeline_session(master="local[2]", conf=OWN) as pipeline:
            assert pipeline.owned
            spark = pipeline.spark
            with pipeline_session() as inner:
                assert inner.spark is spark
            assert rows(spark) == 100
            assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
            assert spark.conf.get("spark.sql.python.filterPushdown.enabled") == "true"
        with pytest.raises(Exception):  # noqa: B017 - whatever a stopped session says
            rows(spark)
    assert capfd.readouterr() == ("", "")
    assert sys.path == path
    assert signal.getsignal(signal.SIGINT) is handler
    assert variables() == environment


def variables() -> dict[str, str]:
    """The environment, without what PySpark writes into it whenever a context starts."""
    changed = ("SPARK_AUTH_SOCKET_TIMEOUT", "SPARK_BUFFER_SIZE")
    return {name: value for name, value in os.environ.items() if name not in changed}


def test_settings_of_our_own_session_do_not_reach_a_later_one(spark_stopped):
    with pipeline_session(master="local[2]", conf=OWN):
        pass
    spark = spark_stopped.local()
    assert spark.conf.get("spark.sql.python.filterPushdown.enabled") == "false"


def test_closing_twice_does_nothing_more(spark_stopped):
    first = pipeline_session(master="local[2]", conf=OWN)
    second = pipeline_session()
    first.close()
    first.close()
    assert second.spark.range(2).count() == 2
    second.close()
