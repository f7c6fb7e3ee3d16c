"""The slot: models exchanged while groups are under way."""

from __future__ import annotations

import threading

from pipeline_fakes import FakePredictor, Keep, frames

from ptedge.runtime.counters import RunCounters, RunSource
from ptedge.runtime.pipeline import Pipeline, Rules
from ptedge.runtime.slot import LoadedModel, ModelSlot


class Closing(FakePredictor):
    """Says when it is closed; fails where it is asked afterwards."""

    closed = False

    def infer(self, feeds):  # type: ignore[no-untyped-def]
        assert not self.closed
        return super().infer(feeds)

    def close(self) -> None:
        self.closed = True


def test_switch__groups_keep_the_model_they_were_prepared_for() -> None:
    one, two = Closing(), Closing(batch=2)
    first, second = LoadedModel(one, "1"), LoadedModel(two, "2")  # type: ignore[arg-type]
    slot = ModelSlot(first)
    slot.add(second)
    group = slot.prepare([(0, (frame, 0.0)) for frame in frames(1)], slot.current)
    slot.switch(second)
    assert not slot.retire(first, seconds=0) and not one.closed
    slot.answer(group)
    assert one.groups == [1] and two.groups == []
    slot.done(group)
    assert slot.retire(first, seconds=0) and one.closed
    assert not slot.retire(second, seconds=0)
    slot.close()
    assert two.closed


def test_switch__in_the_middle_of_a_run_loses_no_frame_and_keeps_their_order() -> None:
    """Models of different batch take turns every few frames; each frame is answered once."""
    models = [LoadedModel(Closing(batch=batch), str(batch)) for batch in (1, 3, 2)]  # type: ignore[arg-type]
    slot = ModelSlot(models[0])
    for model in models[1:]:
        slot.add(model)

    def then(count: int) -> None:
        if count % 7 == 0:
            slot.switch(models[count // 7 % 3])

    for rules in (Rules(), Rules(fill=0.0)):
        keep = Keep(then=then)
        counters = RunCounters([RunSource("s", "source")])
        Pipeline([frames(200)], slot, [keep], counters, rules, threading.Event()).run()
        assert keep.indices == list(range(200))
        assert {result.version for result in keep.results} == {"1", "3", "2"}
        assert [model.groups for model in models] == [0, 0, 0]
