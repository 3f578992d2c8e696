"""The table of models, and that every script keeps to what the wire can carry."""

from tests.cases import cases
from threads.practice.asks import Ask
from threads.practice.models import PRACTICE_MODELS, PracticeModel
from threads.practice.steps import Abort, Answer, Fail, Finish, Silence

ENDINGS = {
    "completed",
    "length",
    "content_filter",
    "stalled",
    "truncated",
    "faulted",
    "blocked",
    "refused",
    "empty",
}


def test_every_ending_has_a_model_and_no_model_has_another() -> None:
    assert {model.ending for model in PRACTICE_MODELS} == ENDINGS


def test_no_two_models_share_an_id_or_a_name() -> None:
    assert len({model.wire_id for model in PRACTICE_MODELS}) == len(PRACTICE_MODELS)
    assert len({model.name for model in PRACTICE_MODELS}) == len(PRACTICE_MODELS)


@cases("model", PRACTICE_MODELS)
def test_each_model_is_described_in_one_line(model: PracticeModel) -> None:
    assert model.wire_id.startswith("practice/")
    assert 0 < len(model.name) <= 30
    assert 0 < len(model.description) <= 80
    assert model.description.endswith(".")
    assert "\n" not in model.description


@cases("model", PRACTICE_MODELS)
@cases("turn", [0, 1, 2])
def test_each_script_ends_and_does_nothing_after_its_end(
    model: PracticeModel, turn: int
) -> None:
    ask = Ask(model.wire_id, ({"role": "user", "content": "Hi"},), turn=turn)

    play = model.script(ask)

    if isinstance(play, Answer):
        return
    last = (Finish, Fail, Silence, Abort)
    assert [type(step) for step in play[:-1] if isinstance(step, last)] == []
