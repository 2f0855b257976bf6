"""Today's answers are those of the golden record: see ``tests/golden.py``, which also says how to change it."""

import importlib.metadata

import pytest

import golden


@pytest.mark.parametrize("part", golden.PARTS)
def test_answers_are_those_of_the_record(part):
    differences, left_out, compared = golden.compare(golden.cases_of(part))
    assert not differences, "\n".join(differences)
    assert compared or left_out
    assert not left_out or not _same_libraries(), left_out


def test_no_case_of_the_record_is_forgotten():
    """A model whose library is absent is left out with all of its questions, and no other case."""
    names = {f"{name}: {question}" for name in golden.MODELS for question in golden.questions(name)}
    names |= {name for part, of in golden.OTHERS.items() for name, *_ in golden.cases_of(part)}
    assert len(names) > 500
    assert names <= golden.read().keys()
    assert not golden.read().keys() - names or not _same_libraries()


def _same_libraries():
    try:
        return all(importlib.metadata.version(name) == version for name, version in golden.recorded_versions().items())
    except importlib.metadata.PackageNotFoundError:
        return False


def test_comparison_sees_a_value_a_flag_and_an_error():
    facts, arrays = golden.read()["SVR: background"]
    assert not list(golden.differences(facts, arrays, facts, arrays))
    moved = {**arrays, "values": arrays["values"] * (1.0 + 1e-9)}
    assert any("values" in text for text in golden.differences(facts, arrays, facts, moved))
    assert any("exact" in text for text in golden.differences(facts, arrays, {**facts, "exact": False}, arrays))
    refused = {"error": "InputError", "message": "no"}
    assert any("InputError" in text for text in golden.differences(facts, arrays, refused, {}))
