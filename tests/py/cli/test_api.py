"""The functions of the Python API: what they make of a summary."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from tornpage import api
from tornpage.vocabulary.errors import TornpageError

SCRIPT = "create table t a:bigint primary a\n"


@pytest.mark.parametrize(
    ("findings", "code", "errors", "told"),
    [
        ((), 0, (), None),
        (("a finding",), 1, (), None),
        (("a finding",), 2, ("worker 1 died",), None),
        ((), 2, ("worker 1 died", "no space"), "run 7: worker 1 died; no space"),
        ((), 3, (), "run 7: no crash state of the script was judged"),
    ],
    ids=["clean", "found", "found before an error", "an error", "vacuous"],
)
def test_no_findings_means_that_states_were_judged(
    findings: tuple[str, ...],
    code: int,
    errors: tuple[str, ...],
    told: str | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An empty list is a pass; where nothing could break, it raises and says why."""
    summary = SimpleNamespace(
        findings=findings, errors=errors, exit_code=lambda: code, run=SimpleNamespace(id=7)
    )
    monkeypatch.setattr(api, "_run", lambda *_: summary)
    if told is None:
        assert list(api.powerloss("engine", SCRIPT, out=tmp_path)) == list(findings)
        return
    with pytest.raises(TornpageError) as raised:
        api.powerloss("engine", SCRIPT, out=tmp_path)
    assert str(raised.value) == told
