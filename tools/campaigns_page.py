"""`make docs`: writes docs/CAMPAIGNS.md from the models of a campaign file and of the workloads' parameters,
whose docstrings say what each key means. A test holds that the page is what would be written.
"""

from __future__ import annotations

import textwrap
from pathlib import Path

from pydantic import BaseModel

from tornpage.plans.campaign import Campaign, Hit, PowerLoss, load_campaign
from tornpage.plans.skeleton import skeleton
from tornpage.vocabulary.documented import keys_of
from tornpage.vocabulary.paths import ROOT, data_folder
from tornpage.workloads.workload import params_of, workload_names

PAGE = ROOT / "docs" / "CAMPAIGNS.md"
HEAD = """\
# Campaign files

A campaign is one TOML file. It says what runs, with which options, and which faults hit it. `make docs`
writes this page from the sources; do not edit it.

    tornpage list campaigns            # those that come with Tornpage
    tornpage new campaign mine         # mine.toml: the values of smoke, every key explained
    tornpage new campaign mine --like powerloss
    tornpage run mine.toml

Options of `tornpage run`, such as `--seed`, `--trials` and `--option`, take precedence over the file. An
unknown key is an error. A file has at most 1 MiB, and `cross` gives at most 1,000 configurations.
[FAULT_MODEL.md](FAULT_MODEL.md) explains the crash models.
"""
COLUMNS = "| key | value | default | meaning |\n|---|---|---|---|"


def table_of(model: type[BaseModel]) -> str:
    """Its keys as a table."""
    rows = [COLUMNS]
    for key in keys_of(model):
        default = f"`{key.default}`" if key.default not in ("", "none") else key.default
        cells = (f"`{key.name}`", key.value, default or "must be given", key.what)
        rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(rows)


def section(title: str, model: type[BaseModel]) -> str:
    """A heading, what the model's docstring says, its keys."""
    lead = textwrap.fill(" ".join((model.__doc__ or "").split()), 116)
    return f"{title}\n\n{lead}\n\n{table_of(model)}\n"


def page() -> str:
    """docs/CAMPAIGNS.md."""
    parts = [
        HEAD,
        section("## Keys", Campaign),
        section("## hit", Hit),
        section("## explore", PowerLoss),
        "## params\n\nBy workload. A parameter that is also an option of the target, such as page_size, "
        "takes the option's value.\n",
        *(section(f"### {name}", params_of(name)) for name in workload_names()),
        "## An example\n\nWhat `tornpage new campaign mine` writes:\n\n```toml\n"
        + skeleton(load_campaign("smoke", data_folder("workloads")))
        + "```\n",
    ]
    return "\n".join(parts)


def main(path: Path = PAGE) -> None:
    path.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
