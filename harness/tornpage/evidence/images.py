"""Images of crashes that are kept: one per fingerprint: a bug that every second trial hits fills no disk."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Self

from tornpage.faults.image import remove_image
from tornpage.oracle.fingerprint import Fingerprint, fingerprint_of
from tornpage.store.rows import Run
from tornpage.store.store import Store
from tornpage.vocabulary.model import Outcome, TrialResult, Violation

__all__ = ["KeptImages", "images_of", "without_image"]


def images_of(out: Path, run: int) -> Path:
    """Where the images of a run are kept."""
    return out / "images" / str(run)


class KeptImages:
    """The fingerprints of a run that have an image."""

    def __init__(self) -> None:
        """None has."""
        self._known: set[tuple[Fingerprint, bool]] = set()

    @classmethod
    def of(cls, store: Store, run: Run) -> Self:
        """As the store has them."""
        images = cls()
        for row in store.trials(run.id):
            if row.result is not None and row.result.image is not None:
                images._known |= _shown(row.site, row.result.violations, _unstable(row.result))
        return images

    def only_new(self, site: str, result: TrialResult) -> TrialResult:
        """The result, without its image if all that it shows has one already. site: of the trial's row."""
        unstable = _unstable(result)
        if result.image is None or self.takes(site, result.violations, unstable=unstable):
            return result
        return without_image(result)

    def takes(self, site: str, violations: Iterable[Violation], *, unstable: bool = False) -> bool:
        """Whether an image that shows these violations is kept; it is, from now on. unstable: it showed them
        once, which is no reason not to keep one that shows them again."""
        found = _shown(site, violations, unstable)
        new = bool(found - self._known)
        self._known |= found if new else set()
        return new


def without_image(result: TrialResult) -> TrialResult:
    """The result; its image goes."""
    if result.image is not None:
        remove_image(result.image)
    return replace(result, image=None)


def _unstable(result: TrialResult) -> bool:
    return result.outcome is Outcome.UNSTABLE


def _shown(
    site: str, violations: Iterable[Violation], unstable: bool
) -> set[tuple[Fingerprint, bool]]:
    return {(fingerprint_of(violation, site), unstable) for violation in violations}
