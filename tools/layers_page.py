"""`make docs`: draws the layers of docs/ARCHITECTURE.md, from the includes of C and the imports of Python.

An arrow is drawn where a folder uses another one, and no third one does that it uses: what is further below
can be used too. A test holds that the drawings are what would be written.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

import grimp
from layering import ROOT, includes

PAGE = ROOT / "docs" / "ARCHITECTURE.md"
DRAWING = re.compile(r"(<!-- layers of (\w+): make docs -->\n).*?(<!-- end -->)", re.DOTALL)

Graph = Mapping[str, set[str]]
"""By folder, those that it uses."""


def c_graph() -> Graph:
    """Folders of C, without those of tests."""
    graph = defaultdict[str, set[str]](set)
    for one in includes():
        if "tests" not in one.file.parts and one.target != one.folder:
            graph[one.folder].add(one.target)
    return graph


def python_graph() -> Graph:
    """Folders and modules right in the package."""
    imports = grimp.build_graph("tornpage", cache_dir=None)
    graph = defaultdict[str, set[str]](set)
    for name in imports.modules:
        for used in imports.find_modules_directly_imported_by(name):
            if "." in name and "." in used and name.split(".")[1] != used.split(".")[1]:
                graph[name.split(".")[1]].add(used.split(".")[1])
    return graph


def below(graph: Graph, folder: str) -> set[str]:
    """All that a folder uses, by whatever way."""
    direct = graph.get(folder, set())
    return direct.union(*(below(graph, one) for one in direct))


def node(folder: str) -> str:
    """Mermaid's text; its names have no slash."""
    return f"{folder.replace('/', '_')}[{folder}]" if "/" in folder else folder


def drawing(graph: Graph) -> str:
    """Mermaid's text, without arrows that lead where others lead too."""
    lines = []
    for folder in sorted(graph):
        further = set[str]().union(*(below(graph, one) for one in graph[folder]))
        used = sorted(graph[folder] - further)
        lines.append(f"    {node(folder)} --> {' & '.join(map(node, used))}")
    return "\n".join(["```mermaid", "flowchart TD", *lines, "```"]) + "\n"


def page(text: str) -> str:
    """The page with its drawings made anew."""
    graphs = {"C": c_graph, "Python": python_graph}
    return DRAWING.sub(lambda m: m[1] + drawing(graphs[m[2]]()) + m[3], text)


def main(path: Path = PAGE) -> None:
    path.write_text(page(path.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    main()
