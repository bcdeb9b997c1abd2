"""Parameters of a workload that the options of the target decide."""

from __future__ import annotations

from pathlib import Path

import pytest

from tornpage.vocabulary.errors import WorkloadError
from tornpage.workloads.workload import fit_params, generate


@pytest.mark.parametrize(
    ("text", "number"),
    [("4096", 4096), ("4k", 4096), ("16K", 16384), ("1m", 1 << 20), ("2G", 2 << 30)],
)
def test_a_size_is_read_as_the_target_reads_it(text: str, number: int) -> None:
    """With k, m, g in either case, or none."""
    assert fit_params("mix", {}, {"page_size": text, "doublewrite": "on"}) == {"page_size": number}


def test_what_is_told_wins_and_what_is_not_wanted_is_left_out() -> None:
    """A parameter of the campaign goes before the target's option; smoke asks for neither."""
    assert fit_params("mix", {"page_size": 8192}, {"page_size": "4k"}) == {"page_size": 8192}
    assert fit_params("smoke", {"rows": 1}, {"page_size": "4k"}) == {"rows": 1}


@pytest.mark.parametrize("text", ["abc", "", "k", "4kk", "-4k", "4 k", "٤k", "1e3"])
def test_what_is_no_number_is_refused_by_name(text: str) -> None:
    """Option and value are in the message."""
    with pytest.raises(WorkloadError, match=f"page_size={text}: expected a number"):
        fit_params("mix", {}, {"page_size": text})


def test_a_script_in_a_file_is_the_one_that_the_run_began_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found from any folder; refused by name when it says something else by now, or is gone."""
    file = tmp_path / "x.script"
    file.write_text("checkpoint\n")
    monkeypatch.chdir(tmp_path)
    params = fit_params("file", {"path": "x.script"}, {})
    monkeypatch.chdir("/")
    assert generate("file", params, 1).text == "checkpoint\n"
    assert fit_params("file", params, {}) == params
    file.write_text("checkpoint\ncheckpoint\n")
    with pytest.raises(WorkloadError, match=r"x\.script: the script has changed"):
        generate("file", params, 1)
    file.unlink()
    with pytest.raises(WorkloadError, match=r"x\.script: No such file"):
        generate("file", params, 1)


@pytest.mark.parametrize(
    ("data", "told"), [(b"checkpoint\n\xc3", "line 2: not ASCII"), (b"nothing\n", "line 1")]
)
def test_what_is_wrong_with_a_script_is_told_with_file_and_line(
    tmp_path: Path, data: bytes, told: str
) -> None:
    """A run may have several of them."""
    file = tmp_path / "x.script"
    file.write_bytes(data)
    with pytest.raises(WorkloadError, match=rf"x\.script: .*{told}"):
        generate("file", {"path": str(file)}, 1)
