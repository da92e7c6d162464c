"""The simulated pipeline: by hand without chance, against the theory of queues with it."""

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dedup_service.core.capacity.pipeline import Pipeline, PipelineStage, highest_rate, simulate

FREE = PipelineStage(0.0)
BY_HAND = Pipeline(
    fingerprinter=PipelineStage(0.001),
    shard=PipelineStage(0.002),
    resolver=PipelineStage(0.001),
    batch_pages=10,
    hop_s=0.01,
    answer_hop_s=0.01,
    work_jitter=0.0,
    hop_jitter=0.0,
)


def test_three_batches_by_hand() -> None:
    """Outcomes come at 80, 100 and 120 ms: four hops, then every 20 ms, which a batch takes in a shard."""
    run = simulate(BY_HAND, None, 30)
    assert run.pages_s == pytest.approx(20 / 0.04)
    assert (run.p50_s, run.window_share) == (pytest.approx(0.1), 0)


def test_a_window_of_one_batch_lets_one_batch_go_round_at_a_time() -> None:
    """A round takes 20 ms in the shard, 10 in the resolver and two hops; the second batch and the third wait for it."""
    run = simulate(replace(BY_HAND, window=10), None, 30)
    assert run.pages_s == pytest.approx(10 / 0.05)
    assert run.window_share == pytest.approx(2 / 3)


def test_a_window_counts_pages_and_not_batches() -> None:
    """With 15 pages, a batch of 10 needs the outcomes of the first 5 of the batch before it, and so of all of it."""
    assert highest_rate(replace(BY_HAND, window=15), 30) == highest_rate(replace(BY_HAND, window=10), 30)
    assert highest_rate(replace(BY_HAND, window=20), 30) > highest_rate(replace(BY_HAND, window=10), 30)


def test_a_batch_has_its_fixed_cost_once() -> None:
    """10 pages at 1 ms and 10 ms for the batch: 500 pages a second."""
    slow = replace(BY_HAND, fingerprinter=PipelineStage(0.001, 0.01), shard=FREE, resolver=FREE)
    assert highest_rate(slow, 1_000) == pytest.approx(500)


def test_the_first_of_the_replicas_counts_and_the_last_of_the_shards() -> None:
    """Of exponential times, the mean of the least of two is half, that of the largest of two one and a half."""
    random = replace(
        BY_HAND, fingerprinter=FREE, resolver=FREE, hop_s=0.0, answer_hop_s=0.0, work_jitter=1.0, window=10
    )
    one = highest_rate(random, 40_000)
    assert one == pytest.approx(500, rel=0.05)
    assert highest_rate(replace(random, replicas=2), 40_000) > one > highest_rate(replace(random, shards=2), 40_000)
    assert highest_rate(replace(random, shards=2), 40_000) == pytest.approx(500 / 1.5, rel=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("load", [0.3, 0.6])
def test_one_server_with_exponential_times_is_an_m_m_1_queue(load: float) -> None:
    """Time in an M/M/1 queue is exponential with mean 1 / (service rate - arrival rate)."""
    queue = Pipeline(
        fingerprinter=PipelineStage(0.001), shard=FREE, resolver=FREE, batch_pages=1, work_jitter=1.0, window=1 << 30
    )
    run = simulate(queue, 1_000 * load, 50_000)
    mean_s = 1 / (1_000 * (1 - load))
    assert run.p50_s == pytest.approx(math.log(2) * mean_s, rel=0.1)
    assert run.p99_s == pytest.approx(math.log(100) * mean_s, rel=0.15)
    assert run.pages_s == pytest.approx(1_000 * load, rel=0.02)


def test_a_pause_comes_each_so_many_pages() -> None:
    """1,000 pages a second and a pause of .5 s each 500 pages: 500 a second, wherever the stage is."""
    paused = PipelineStage(0.001, pause_s=0.5, pause_pages=500)
    others = {"shard": FREE, "resolver": FREE, "fingerprinter": FREE, "window": 1 << 30}
    for stage in ("fingerprinter", "shard"):
        assert highest_rate(replace(BY_HAND, **others | {stage: paused}), 50_000) == pytest.approx(500, rel=0.02)


def test_replicas_pause_at_different_pages() -> None:
    """While one pauses the other answers, so a pause costs less than half of what it costs a single one."""
    paused = PipelineStage(0.001, pause_s=0.1, pause_pages=2_000)
    pipeline = replace(BY_HAND, fingerprinter=FREE, resolver=FREE, shard=paused, shards=4)
    one, two = (simulate(replace(pipeline, replicas=replicas), 500, 20_000) for replicas in (1, 2))
    assert two.p99_s < one.p99_s / 2


stages = st.builds(PipelineStage, st.floats(1e-5, 1e-3), st.floats(0, 1e-2))
pipelines = st.builds(
    Pipeline,
    fingerprinter=stages,
    shard=stages,
    resolver=stages,
    fingerprinters=st.integers(1, 4),
    shards=st.sampled_from([1, 2, 4]),
    replicas=st.integers(1, 2),
    window=st.integers(50, 1_000),
    batch_pages=st.integers(1, 50),
    hop_s=st.floats(0, 0.05),
    answer_hop_s=st.floats(0, 0.05),
    work_jitter=st.just(0.0),
    hop_jitter=st.just(0.0),
)


@settings(max_examples=25, deadline=None)
@given(pipelines)
def test_no_stage_and_no_window_is_outrun(pipeline: Pipeline) -> None:
    """Without chance the highest rate is at most that of full batches in each stage, and that of the window."""
    size = pipeline.batch_pages
    round_s = pipeline.shard.batch(1) + pipeline.answer_hop_s + pipeline.resolver.batch(1) + pipeline.hop_s
    bounds = [
        size * pipeline.fingerprinters / pipeline.fingerprinter.batch(size),
        size / pipeline.shard.batch(size),
        size / pipeline.resolver.batch(size),
        pipeline.window / round_s,
    ]
    pages = 40 * max(pipeline.window, size * pipeline.fingerprinters)
    # The first page that counts and the last may be in unlike places of a round: a thirtieth at most.
    assert highest_rate(pipeline, pages) <= min(bounds) * 1.04


@settings(max_examples=25, deadline=None)
@given(pipelines, st.floats(1, 3))
def test_slower_parts_never_give_outcomes_earlier(pipeline: Pipeline, factor: float) -> None:
    """Without chance, and with all pages there at the start, every part that is slower delays the median."""
    base = simulate(pipeline, None, 2_000).p50_s
    slower = PipelineStage(pipeline.shard.page_s * factor, pipeline.shard.batch_s * factor)
    assert simulate(replace(pipeline, shard=slower), None, 2_000).p50_s >= base
    assert simulate(replace(pipeline, answer_hop_s=pipeline.answer_hop_s * factor), None, 2_000).p50_s >= base


def test_a_run_is_repeatable_by_its_seed() -> None:
    """The same seed gives the same run, another one another run."""
    random = replace(BY_HAND, work_jitter=0.5)
    assert simulate(random, 100, 2_000, seed=3) == simulate(random, 100, 2_000, seed=3)
    assert simulate(random, 100, 2_000, seed=3) != simulate(random, 100, 2_000, seed=4)
