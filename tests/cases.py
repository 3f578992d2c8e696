"""Cases of one test that need no test each: of thousands the bookkeeping costs minutes.

    @cases("status", [400, 401])
    def test_a_refusal(status: int) -> None: ...

Written like `pytest.mark.parametrize`, for tests that take no fixtures. Every case is
tried, and each that fails is told under its name.
"""

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence

Test = Callable[..., None]


def cases(
    names: str | Sequence[str], values: Iterable[object], ids: Iterable[str] = ()
) -> Callable[[Test], Test]:
    """Return what makes one test of all the cases of a function.

    Raises:
        ExceptionGroup: in the test, with what every case that fails has raised.
    """
    called = names.replace(",", " ").split() if isinstance(names, str) else [*names]
    each = [_arguments(called, value) for value in values]
    told: Sequence[object] = [*ids] or each
    assert each, "no case at all"
    assert len(told) == len(each)

    def decorate(test: Test) -> Test:
        @functools.wraps(test)
        def all_of_them(**others: object) -> None:
            failed: list[Exception] = []
            for name, arguments in zip(told, each, strict=True):
                try:
                    test(**arguments, **others)
                except Exception as error:  # noqa: BLE001 - told at the end
                    error.add_note(f"in the case {name}")
                    failed.append(error)
            if failed:
                raise ExceptionGroup(f"{len(failed)} of {len(each)} cases", failed)

        signature = inspect.signature(test)
        left = [
            each for name, each in signature.parameters.items() if name not in called
        ]
        all_of_them.__dict__["__signature__"] = signature.replace(parameters=left)
        return all_of_them

    return decorate


def _arguments(names: Sequence[str], value: object) -> Mapping[str, object]:
    if len(names) == 1:
        return {names[0]: value}
    assert isinstance(value, Iterable)
    return dict(zip(names, value, strict=True))
