"""The step of the build that pyproject.toml cannot say: a wheel carries workloads/, reports/ and the table of
invariants in tornpage/data, where tornpage.vocabulary.paths looks for them. A checkout, also one installed
as editable, uses its own."""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

CARRIED = ("workloads", "reports", "marking", "docs/INVARIANTS.md")


class BuildWithData(build_py):
    """Builds from nothing, so that no module of an earlier build comes along; copies the folders."""

    def run(self) -> None:
        if self.editable_mode:
            super().run()
            return
        shutil.rmtree(self.build_lib, ignore_errors=True)
        super().run()
        for name in CARRIED:
            copy = Path(self.build_lib, "tornpage", "data", name)
            copy.parent.mkdir(parents=True, exist_ok=True)
            (shutil.copytree if Path(name).is_dir() else shutil.copyfile)(name, copy)


setup(cmdclass={"build_py": BuildWithData}, options={"build": {"build_base": "build/wheel"}})
