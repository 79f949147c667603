"""The pipeline on a Spark Connect session, whose workers do not have omnigraph."""

from __future__ import annotations

from omnigraph.spark.sessions import pipeline_session


def test_the_package_reaches_the_workers_of_a_connect_session(spark_connect, where_omnigraph_is):
    session = spark_connect.newSession()  # Nothing was sent to this one yet.
    assert where_omnigraph_is(session) == {"nowhere"}
    with pipeline_session(session) as pipeline:
        assert pipeline.spark is session
        assert not pipeline.owned
        (place,) = where_omnigraph_is(session)
        assert ".zip/omnigraph" in place
    assert session.range(3).count() == 3


def test_the_active_connect_session_is_used_and_not_stopped(spark_connect):
    with pipeline_session() as pipeline:
        assert pipeline.spark is spark_connect
        assert not pipeline.owned
    assert spark_connect.range(3).count() == 3
