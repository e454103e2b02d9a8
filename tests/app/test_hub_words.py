"""What the hub's rows say."""

import pytest

from app.viewmodels import hub_words
from engine.library import formats
from engine.library.hub import Found


@pytest.mark.parametrize("method", ["awq", "gptq", "bitsandbytes", "compressed-tensors"])
def test_a_row_says_before_anything_is_got_what_cannot_run_here(monkeypatch, method):
    """MEM-2: in search."""
    found = Found("org/model", 7, False, None, method)
    monkeypatch.setattr(formats, "installed", lambda package: False)
    said = hub_words.refusal(found)
    assert said.startswith("Cannot run on this computer: needs ")
    assert said.endswith(f" for weights quantised with {method}")
    assert "pip" not in said
    monkeypatch.setattr(formats, "installed", lambda package: True)
    assert hub_words.refusal(found) == ""


@pytest.mark.parametrize("method", [None, "fp8", "mxfp4"])
def test_what_needs_nothing_more_is_not_refused(monkeypatch, method):
    monkeypatch.setattr(formats, "installed", lambda package: False)
    assert hub_words.refusal(Found("org/model", 7, False, None, method)) == ""
