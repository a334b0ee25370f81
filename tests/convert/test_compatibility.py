"""The matrix of what each engine serves: current, complete, and true where it is known."""

from __future__ import annotations

import pytest
from scripts.compatibility_page import (
    CONVERTED,
    PUBLISHED,
    REFUSED,
    RELEASES,
    SERVED,
    UNKNOWN,
    Matrix,
    Outcome,
    answering,
    matrix,
    page,
)

from eyas.dialects import WRITABLE
from eyas.engines import ENGINES
from eyas.engines.sglang.contract import contract_of
from eyas.engines.version import version_of

EXACT = {SERVED, CONVERTED}


@pytest.fixture(scope="module")
def found() -> Matrix:
    return matrix()


def cells(found: Matrix, part: str, kind: str) -> dict[tuple[str, str], Outcome]:
    """The outcomes of `kind` in `part` of the page, by the dialect and the column's title."""
    return {
        (specimen.dialect, column.title): column.outcomes[index]
        for column in found.parts[part]
        for index, specimen in enumerate(found.made)
        if specimen.kind == kind
    }


def marks(found: Matrix, part: str, kind: str) -> set[str]:
    return {outcome.mark for outcome in cells(found, part, kind).values()}


def test_the_published_page_is_generated(found: Matrix) -> None:
    hint = "run: python -m scripts.compatibility_page"
    assert PUBLISHED.read_text(encoding="utf-8") == page(found), hint


def test_every_cell_says_something_and_each_kind_of_answer_occurs(found: Matrix) -> None:
    outcomes = [one for part in found.parts.values() for column in part for one in column.outcomes]
    assert {outcome.mark for outcome in outcomes} == {SERVED, CONVERTED, REFUSED, UNKNOWN}
    for outcome in outcomes:
        assert bool(outcome.note) == (outcome.mark in (CONVERTED, REFUSED))
    assert all(len(c.outcomes) == len(found.made) for part in found.parts.values() for c in part)


def test_every_dialect_that_is_written_states_a_drafter(found: Matrix) -> None:
    assert {specimen.dialect for specimen in found.made} == set(WRITABLE)
    for name in WRITABLE:
        stated = cells(found, "From dialect to dialect", "DFlash" if name == "dflash" else "plain")
        assert stated[name, name].mark == SERVED


def test_columns_cover_each_contract(found: Matrix) -> None:
    for engine in ENGINES:
        assert RELEASES[engine.name][0] == engine.oldest
        assert RELEASES[engine.name][-1] == engine.newest
        known = [version_of(version) for version in RELEASES[engine.name]]
        assert known == sorted(set(known))


def test_versions_are_taken_for_alike_only_where_their_contracts_are() -> None:
    (sglang,) = (engine for engine in ENGINES if engine.name == "sglang")
    number = version_of(sglang.oldest)
    for one in RELEASES["sglang"]:
        for other in RELEASES["sglang"]:
            fields = [
                {
                    name: getattr(contract_of(version_of(version), ""), name)
                    for name in type(contract_of(number, "")).__dataclass_fields__
                    if name not in ("number", "width_check")
                }
                for version in (one, other)
            ]
            assert (answering(sglang, one) == answering(sglang, other)) == (fields[0] == fields[1])


@pytest.mark.parametrize("part", ["SGLang", "vLLM"])
def test_a_plain_drafter_is_exact_everywhere_but_from_deepspec(found: Matrix, part: str) -> None:
    for (dialect, title), outcome in cells(found, part, "plain").items():
        if dialect != "deepspec":  # whose norms on q and k SGLang has no class for
            assert outcome.mark in EXACT, (dialect, title)


@pytest.mark.parametrize(
    ("part", "kind"),
    [
        ("SGLang", "norm_before_residual"),
        ("SGLang", "the embeddings captured"),
        ("SGLang", "norms on q and k"),
        ("SGLang", "a bias on q, k and v"),
        ("SGLang", "an embedding that is not the target's"),
        ("vLLM", "a bias on fc"),
        ("llama.cpp", "fc_norm"),
        ("llama.cpp", "norm_output"),
        ("llama.cpp", "latent attention (MLA)"),
        ("llama.cpp", "five states"),
        ("llama.cpp", "the last state, no fc"),
    ],
)
def test_what_an_engine_never_computes(found: Matrix, part: str, kind: str) -> None:
    assert marks(found, part, kind) == {REFUSED}


@pytest.mark.parametrize("part", ["SGLang", "vLLM", "llama.cpp"])
@pytest.mark.parametrize("kind", ["P-EAGLE", "DFlash", "DSpark"])
def test_kinds_without_a_contract_are_not_known(found: Matrix, part: str, kind: str) -> None:
    assert marks(found, part, kind) == {UNKNOWN}


def test_what_came_with_a_version_of_sglang(found: Matrix) -> None:
    def exact_from(kind: str, dialect: str) -> str:
        titles = [
            title
            for (by, title), outcome in cells(found, "SGLang", kind).items()
            if by == dialect and outcome.mark in EXACT
        ]
        return titles[0].split(" ")[0]

    assert exact_from("its own layer ids", "specforge") == "0.5.11"
    assert exact_from("fc_norm", "specforge") == "0.5.12"
    assert exact_from("norm_output", "speculators") == "0.5.12"
    assert exact_from("norm_before_fc", "specforge") == "0.5.17"
    assert exact_from("latent attention (MLA)", "torchspec") == "0.5.12"
