"""Today's answers are those of the golden record: see ``tests/golden.py``, which also says how to change it."""

import importlib.metadata

import pytest

import golden


@pytest.mark.slow
def test_answers_are_those_of_the_record():
    differences, left_out, compared = golden.compare()
    assert not differences, "\n".join(differences)
    same_libraries = all(importlib.metadata.version(name) == version for name, version in golden.recorded_versions().items())
    assert compared > 500
    assert not left_out or not same_libraries, left_out


def test_comparison_sees_a_value_a_flag_and_an_error():
    facts, arrays = golden.read()["SVR: background"]
    assert not list(golden.differences(facts, arrays, facts, arrays))
    moved = {**arrays, "values": arrays["values"] * (1.0 + 1e-9)}
    assert any("values" in text for text in golden.differences(facts, arrays, facts, moved))
    assert any("exact" in text for text in golden.differences(facts, arrays, {**facts, "exact": False}, arrays))
    refused = {"error": "InputError", "message": "no"}
    assert any("InputError" in text for text in golden.differences(facts, arrays, refused, {}))
