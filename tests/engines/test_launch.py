import pytest
from tests.engines.drafters import drafter, flat_config, shapes, target

from eyas.engines import EngineRef, Launch, read
from eyas.errors import UsageError
from eyas.spec import LastState, Served


def served(engine: str, *options: str) -> Served:
    result = read(
        EngineRef.parse(engine),
        drafter(flat_config(), shapes()),
        target=target(),
        launch=Launch.parse(options),
    )
    assert isinstance(result, Served)
    return result


@pytest.mark.parametrize(
    ("option", "named"),
    [
        ("speculative_algorithm", "key=value"),
        ("speculative_algoritm=EAGLE", "did you mean speculative_algorithm"),
        ("speculative_algorithm=MEDUSA", "one of: EAGLE3"),
        ("context_length=three", "whole number"),
        ("speculative_num_steps=3", "no launch option 'speculative_num_steps'"),
        ("method=eagle", "write vllm.method"),
        ("vllm.speed=1", "vllm has no launch option 'speed'"),
    ],
)
def test_a_wrong_option_is_told_what_to_type(option: str, named: str) -> None:
    with pytest.raises(UsageError, match=named):
        served("sglang@0.5.23", option)


def test_an_option_given_twice_is_refused() -> None:
    with pytest.raises(UsageError, match="twice"):
        Launch.parse(["method=eagle", "--method=eagle3"])


def test_an_option_of_another_engine_is_left_to_it() -> None:
    assert served("sglang@0.5.23", "vllm.method=eagle").refusal is None


def test_an_option_may_be_spelled_as_on_the_command_line() -> None:
    result = served("sglang@0.5.23", "--speculative-algorithm=eagle")
    assert isinstance(result.spec.conditioning, LastState)  # type: ignore[union-attr]
