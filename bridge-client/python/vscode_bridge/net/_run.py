"""Fires the transitions of a net.

The rules, which are those of the original engine where it has any:

- A transition is enabled when each of its input places has a token (two arcs from one place: two
  tokens) and its guards are true. A transition without input places never fires.
- A guard chooses: the oldest token of the first input place for which all guards are true is taken.
  From the other places the oldest is taken. The original asks its guards without a token.
- The first enabled transition in the order of the file fires.
- Consumed tokens are passed on to every output place. Before them go the values that inscriptions
  in ``execMode: async`` returned, except None. When such a value is a dictionary with a true
  ``_drop_moved_tokens``, the consumed tokens end here.
- An inscription that raises ends the run.
"""

from __future__ import annotations

from typing import Any, Callable, List, NamedTuple, Optional

from vscode_bridge import AsyncResult

from ._model import Inscription, InscriptionError, Net, Transition


class Firing(NamedTuple):
    """One step: the transition, the tokens that it consumed, and those that it produced."""

    transition: Transition
    consumed: List[Any]
    produced: List[Any]


class Run:
    """A run of a net. ``net.marking`` is its present marking."""

    def __init__(self, net: Net) -> None:
        self.net = net
        self.steps = 0

    def step(self) -> Optional[Firing]:
        """Fires one transition; None when none is enabled. Raises ``InscriptionError``."""
        for transition in self.net.transitions:
            chosen = self._choose(transition)
            if chosen is not None:
                self.steps += 1
                return self._fire(transition, chosen)
        return None

    def to_the_end(self, limit: int, watch: Callable[[Firing], object]) -> bool:
        """Steps until nothing is enabled. Returns False if ``limit`` steps were not enough."""
        while self.steps < limit:
            firing = self.step()
            if firing is None:
                return True
            watch(firing)
        return all(self._choose(transition) is None for transition in self.net.transitions)

    def _choose(self, transition: Transition) -> Optional[int]:
        """Index of the token in the first input place with which the transition is enabled."""
        inputs = transition.inputs
        if not inputs or any(len(self._tokens(name)) < inputs.count(name) for name in set(inputs)):
            return None
        for index, token in enumerate(self._tokens(inputs[0])):
            if all(_truth(transition, guard, token) for guard in transition.guards):
                return index
        return None

    def _fire(self, transition: Transition, chosen: int) -> Firing:
        first, *others = transition.inputs
        consumed = [self._tokens(first).pop(chosen)]
        consumed.extend(self._tokens(name).pop(0) for name in others)
        values = [
            value
            for inscription in transition.expressions
            for value in [_evaluate(transition, inscription, consumed[0])]
            if inscription.value_is_token and value is not None
        ]
        alone = any(isinstance(value, dict) and value.get("_drop_moved_tokens") for value in values)
        produced = values if alone else values + consumed
        for name in transition.outputs:
            self._tokens(name).extend(produced)
        return Firing(transition, consumed, produced)

    def _tokens(self, place: str) -> List[Any]:
        return self.net.marking[place]


def _evaluate(transition: Transition, inscription: Inscription, token: Any) -> Any:
    try:
        value = inscription.function(token)
        return value.wait() if isinstance(value, AsyncResult) else value
    except Exception as error:
        raise InscriptionError(transition, inscription) from error


def _truth(transition: Transition, guard: Inscription, token: Any) -> bool:
    value = _evaluate(transition, guard, token)
    if value is None:
        raise InscriptionError(transition, guard) from TypeError(
            "the guard returned nothing; use an expression, or return True or False"
        )
    return bool(value)
