"""A data directory that breaks a rule of `verify`, and what its advice says to do, as code."""

from __future__ import annotations

from dataclasses import dataclass, field

from core.damage_steps import Step

# what advice about lost records says
LOST_OFFSETS = "from another replica"


@dataclass(frozen=True)
class Case:
    """A broken directory. Without `do`, the advice is a command, which is run as it is written."""

    code: str
    make: Step
    damage: Step
    partition: str = "tickets-0"
    # what the advice says, and this as code
    says: str = ""
    do: Step | None = None
    # nothing removes the finding: there is nothing to do, or it is about what cannot be had back here
    stays: bool = False
    is_deep: bool = False
    more: str = ""
    # the log start offsets that differ from those before the damage
    starts: dict[str, int] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return f"{self.code} {self.more}".strip()
