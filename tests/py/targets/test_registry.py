"""By which name a target is known, and whose campaigns it has."""

from __future__ import annotations

from pathlib import Path

import pytest

from tornpage.cli.target import get, target_file
from tornpage.targets.registry import BUNDLED, TARGET_FILE, family_of, target_name
from tornpage.vocabulary.errors import ConfigError

MODEL = """name = "{}"
oracle = "model"
[commands]
run = "{{python}} -c '' {{dir}} {{script}}"
recover = "{{python}} -c ''"
"""


def model_file(folder: Path, name: str = "mine") -> str:
    """A user's own target that the model judges."""
    (folder / "own.toml").write_text(MODEL.format(name), "utf-8")
    return str(folder / "own.toml")


def test_a_bundled_file_is_its_target() -> None:
    """By its path or by its name: one target, in every list of runs."""
    assert target_name(str(BUNDLED / "sqlite.toml")) == "sqlite"
    assert family_of(str(BUNDLED / "sqlite.toml")) == family_of("sqlite") == "sqlite"
    assert family_of(str(BUNDLED / "leveldb.toml")) == TARGET_FILE


@pytest.mark.parametrize("name", ["sqlite", "leveldb", "engine", TARGET_FILE])
def test_no_file_takes_the_campaigns_of_another_target(name: str, tmp_path: Path) -> None:
    """A stranger's file for the model whose name is taken is refused; others have theirs."""
    with pytest.raises(ConfigError, match=rf"own\.toml: name: {name} is taken"):
        family_of(model_file(tmp_path, name))
    assert family_of(model_file(tmp_path)) == "mine"


def test_what_the_model_judges_is_for_run(tmp_path: Path) -> None:
    """Whoever wrote its file; what nobody knows is told as such."""
    for text in ("engine", "sqlite", str(BUNDLED / "sqlite.toml"), model_file(tmp_path)):
        with pytest.raises(ConfigError) as told:
            target_file(text)
        run = f"tornpage run smoke --target {text}"
        assert str(told.value) == f"{text!r} is judged by Tornpage's model: {run}"
    with pytest.raises(ConfigError, match="no target 'nosuch'"):
        target_file("nosuch")
    assert target_file("leveldb") == "leveldb"


def test_a_target_of_the_model_may_fetch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As any that has a file; the engine has none."""
    monkeypatch.setattr("tornpage.cli.target.fetch", lambda file, beside: beside / file.name)
    assert get(model_file(tmp_path)) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'mine'}\n"
    with pytest.raises(ConfigError, match="'engine' has no target file"):
        get("engine")
