"""A net as a value, and the two ways in which one can be wrong."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Callable, Dict, List


@dataclass(frozen=True)
class Inscription:
    """Code at a transition."""

    id: str
    line: int
    function: Callable[[Any], Any]
    """Takes the first consumed token."""

    value_is_token: bool = False
    """True for ``execMode: async``: the return value of the code becomes a net token."""


@dataclass
class Transition:
    """Takes a token from each input place and passes them on to each output place."""

    id: str
    line: int
    inputs: List[str] = field(default_factory=list)
    outputs: List[str] = field(default_factory=list)
    guards: List[Inscription] = field(default_factory=list)
    expressions: List[Inscription] = field(default_factory=list)


@dataclass
class Net:
    """Places with their tokens, oldest first, and transitions in the order of the file."""

    id: str
    marking: Dict[str, List[Any]] = field(default_factory=dict)
    transitions: List[Transition] = field(default_factory=list)


class NetError(Exception):
    """The file is not a net that can be run. The message starts with ``FILE:LINE:``."""

    def __init__(self, file: str, line: int, problem: str) -> None:
        super().__init__(f"{file}:{line}: {problem}")


class InscriptionError(Exception):
    """The code of an inscription raised an exception, which is ``__cause__``."""

    def __init__(self, transition: Transition, inscription: Inscription) -> None:
        super().__init__(f"transition {transition.id!r}, inscription {inscription.id!r}")
        self.transition = transition
        self.inscription = inscription
