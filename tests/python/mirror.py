"""Checks that values of the wire fit the types of the package: same members, right types."""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterable, Literal, Union, get_args, get_origin
from typing import get_type_hints as members_of


def misfit(value: object, kind: Any, place: str = "value") -> str:
    """Describes what is wrong with a value; empty if nothing is."""
    if kind is Any:
        return ""
    if hasattr(kind, "__required_keys__"):
        return _of_object(value, kind, place)
    of_generic = _GENERIC.get(get_origin(kind))
    return of_generic(value, kind, place) if of_generic else _of_scalar(value, kind, place)


def _of_object(value: object, kind: Any, place: str) -> str:
    if not isinstance(value, dict):
        return f"{place}: {value!r} is no object"
    members = members_of(kind)
    missing = sorted(set(kind.__required_keys__) - set(value))
    unknown = sorted(set(value) - set(members))
    if missing or unknown:
        return f"{place}: {kind.__name__} lacks {missing} and does not know {unknown}"
    return _first(misfit(each, members[name], f"{place}.{name}") for name, each in value.items())


def _of_scalar(value: object, kind: Any, place: str) -> str:
    fits = isinstance(value, (int, float) if kind is float else kind)
    if isinstance(value, bool):
        fits = kind is bool
    return "" if fits else f"{place}: {value!r} is no {kind.__name__}"


def _of_union(value: object, kind: Any, place: str) -> str:
    problems = [misfit(value, each, place) for each in get_args(kind)]
    return "" if "" in problems else " or ".join(problems)


def _of_literal(value: object, kind: Any, place: str) -> str:
    words = get_args(kind)
    return "" if value in words else f"{place}: {value!r} is none of {words}"


def _of_list(value: object, kind: Any, place: str) -> str:
    if not isinstance(value, list):
        return f"{place}: {value!r} is no list"
    (item,) = get_args(kind)
    return _first(misfit(each, item, f"{place}[{n}]") for n, each in enumerate(value))


def _of_dict(value: object, kind: Any, place: str) -> str:
    if not isinstance(value, dict):
        return f"{place}: {value!r} is no object"
    _, item = get_args(kind)
    return _first(misfit(each, item, f"{place}.{name}") for name, each in value.items())


def _first(problems: Iterable[str]) -> str:
    return next((problem for problem in problems if problem), "")


_GENERIC: Dict[Any, Callable[[object, Any, str], str]] = {
    Union: _of_union,
    Literal: _of_literal,
    list: _of_list,
    dict: _of_dict,
}
