"""Whose sources a build folder is of, and that nothing else is built."""

from __future__ import annotations

from pathlib import Path

import pytest

from tornpage.lab.traced import traced_program, tree_of
from tornpage.vocabulary.errors import ConfigError


def test_a_build_folder_names_its_sources(tmp_path: Path) -> None:
    """As cmake wrote them down; copied programs have none."""
    with pytest.raises(ConfigError, match="which names the sources of its programs"):
        tree_of(tmp_path)
    cache = "CMAKE_GENERATOR:INTERNAL=Ninja\nCMAKE_HOME_DIRECTORY:INTERNAL=/a/b c\n"
    (tmp_path / "CMakeCache.txt").write_text(cache, "utf-8")
    assert tree_of(tmp_path) == Path("/a/b c")


def test_only_sources_of_the_engine_are_built(tmp_path: Path) -> None:
    """Nothing is made elsewhere."""
    with pytest.raises(ConfigError, match="is no checkout with the bundled engine"):
        traced_program(tmp_path)
    assert not any(tmp_path.iterdir())
