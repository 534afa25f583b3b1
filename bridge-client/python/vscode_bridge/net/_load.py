"""Reads a net from a YAML file. Every error names the file and the line.

It reads ``pnml``, ``net``, ``page``, and in a page ``place``, ``transition`` and ``arc``. Each may
be a list or a single mapping, and plural names are accepted. Net tokens are in
``evolve: initialTokens`` as ``- value: ...``, or in ``marking`` as a list. Inscriptions are in
``evolve: inscriptions`` or directly in ``inscriptions``. Arcs are beside the places, or inside a
transition, where the end that is this transition may be left out. Other members, such as names,
graphics and types, are skipped.
"""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Optional, Tuple, Union

import yaml

from ._inscription import compile_inscription, namespace
from ._model import Inscription, Net, NetError, Transition


def load(file: str) -> Net:
    """The net in ``file``. Raises ``NetError``, or ``OSError`` when it cannot be read."""
    with open(file, encoding="utf-8-sig") as stream:
        try:
            text = stream.read()
        except UnicodeDecodeError as error:
            raise NetError(file, 1, f"the file is not UTF-8 text: {error}") from error
    try:
        root = yaml.compose(text, yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        raise NetError(file, line, f"not valid YAML: {error.problem or error.context}") from error
    except yaml.YAMLError as error:
        raise NetError(file, 1, f"not valid YAML: {error}") from error
    return _Reader(file, text).net(root)


class _Reader:
    """Walks the YAML nodes, which know their lines."""

    def __init__(self, file: str, text: str) -> None:
        self._file = file
        self._lines = text.splitlines()
        self._names = namespace()
        self._values: Any = yaml.SafeLoader("")  # its stubs differ from release to release
        self._transitions: Dict[str, Transition] = {}
        self._net = Net("net")

    def net(self, root: Optional[yaml.Node]) -> Net:
        if root is None:
            raise NetError(self._file, 1, "the file is empty; a net starts with 'pnml:'")
        pnml = self._required(root, "pnml")
        nets = list(self._items(pnml, "net"))
        if len(nets) != 1:
            node = nets[1] if nets else pnml
            raise self._wrong(
                node, f"expected one net in 'net', found {len(nets)}; put each in a file"
            )
        self._net.id = self._text(nets[0], "id", "net")
        parts = [nets[0], *self._items(nets[0], "page")]
        for part in parts:
            for node in self._items(part, "place"):
                self._place(node)
        for part in parts:
            for node in self._items(part, "transition"):
                self._transition(node)
        for part in parts:
            for node in self._items(part, "arc"):
                self._arc(node, None)
        for part in parts:
            for node in self._items(part, "transition"):
                for arc in self._items(node, "arc"):
                    self._arc(arc, self._text(node, "id"))
        if not self._net.transitions:
            raise self._wrong(nets[0], "the net has no transition, so there is nothing to run")
        return self._net

    # Parts of a net.

    def _place(self, node: yaml.Node) -> None:
        place = self._new_id(node)
        tokens: List[Any] = []
        for holder in self._with_evolve(node):
            for item in self._list(holder, "initialTokens"):
                value = self._member(item, "value") if isinstance(item, yaml.MappingNode) else item
                if value is None:
                    raise self._wrong(item, "a token is written '- value: ...'")
                tokens.append(self._value(value))
            tokens.extend(self._value(item) for item in self._list(holder, "marking"))
        self._net.marking[place] = tokens

    def _transition(self, node: yaml.Node) -> None:
        transition = Transition(self._new_id(node), _line(node))
        self._transitions[transition.id] = transition
        self._net.transitions.append(transition)
        for holder in self._with_evolve(node):
            for item in self._items(holder, "inscription"):
                inscription, kind = self._inscription(item)
                (transition.guards if kind == "guard" else transition.expressions).append(
                    inscription
                )

    def _inscription(self, node: yaml.Node) -> Tuple[Inscription, str]:
        self._one_of(node, "language", "python")
        self._one_of(node, "source", "inline")
        kind = self._one_of(node, "kind", "expression", "guard")
        mode = self._one_of(node, "execMode", "sync", "async")
        name = self._text(node, "id", kind)
        code = self._required(node, "code")
        if not isinstance(code, yaml.ScalarNode):
            raise self._wrong(code, "'code' must be text; write 'code: |' and the code below it")
        line, column = self._start(code)
        try:
            function = compile_inscription(
                code.value,
                name,
                file=self._file,
                line=line,
                column=column,
                names=self._names,
            )
        except SyntaxError as error:
            raise NetError(
                self._file, error.lineno or line, f"inscription {name!r}: {error.msg}"
            ) from error
        return Inscription(name, line, function, value_is_token=mode == "async"), kind

    def _arc(self, node: yaml.Node, inside: Optional[str]) -> None:
        source = self._text(node, "source", inside)
        target = self._text(node, "target", inside)
        for end in (source, target):
            if end not in self._net.marking and end not in self._transitions:
                raise self._wrong(node, f"the arc names {end!r}, which is no place or transition")
        if source in self._net.marking and target in self._transitions:
            self._transitions[target].inputs.append(source)
        elif source in self._transitions and target in self._net.marking:
            self._transitions[source].outputs.append(target)
        else:
            raise self._wrong(
                node, f"the arc from {source!r} to {target!r} must join a place and a transition"
            )

    # Members of a node.

    def _items(self, node: yaml.Node, name: str) -> Iterator[yaml.Node]:
        """The mappings under ``name`` or its plural: those of a list, or a single one."""
        for key in (name, f"{name}s"):
            member = self._member(node, key)
            if member is None:
                continue
            items = member.value if isinstance(member, yaml.SequenceNode) else [member]
            for item in items:
                if not isinstance(item, yaml.MappingNode):
                    raise self._wrong(item, f"each item of {key!r} must be a mapping with an 'id'")
                yield item

    def _list(self, node: yaml.Node, name: str) -> List[yaml.Node]:
        member = self._member(node, name)
        if member is None:
            return []
        if not isinstance(member, yaml.SequenceNode):
            raise self._wrong(member, f"{name!r} must be a list of tokens")
        return list(member.value)

    def _with_evolve(self, node: yaml.Node) -> Iterator[yaml.Node]:
        yield node
        evolve = self._member(node, "evolve")
        if evolve is not None:
            yield evolve

    def _member(self, node: yaml.Node, name: str) -> Optional[yaml.Node]:
        if not isinstance(node, yaml.MappingNode):
            return None
        found: List[yaml.Node] = [value for key, value in node.value if key.value == name]
        if len(found) > 1:
            raise self._wrong(found[1], f"{name!r} is given twice")
        return found[0] if found and not _is_null(found[0]) else None

    def _required(self, node: yaml.Node, name: str) -> yaml.Node:
        member = self._member(node, name)
        if member is None:
            raise self._wrong(node, f"{name!r} is missing here")
        return member

    def _text(self, node: yaml.Node, name: str, otherwise: Optional[str] = None) -> str:
        if otherwise is not None and self._member(node, name) is None:
            return otherwise
        member = self._required(node, name)
        if not isinstance(member, yaml.ScalarNode):
            raise self._wrong(member, f"{name!r} must be text")
        return str(member.value)

    def _one_of(self, node: yaml.Node, name: str, *known: str) -> str:
        value = self._text(node, name, known[0])
        if value not in known:
            raise self._wrong(
                self._required(node, name),
                f"{name}: {value} is not supported; use {' or '.join(known)}",
            )
        return value

    def _new_id(self, node: yaml.Node) -> str:
        name = self._text(node, "id")
        if name in self._net.marking or name in self._transitions:
            raise self._wrong(node, f"the id {name!r} is used twice")
        return name

    def _value(self, node: yaml.Node) -> Any:
        try:
            return self._values.construct_object(node, deep=True)
        except yaml.YAMLError as error:
            raise self._wrong(node, f"this value cannot be a token: {error}") from error

    def _start(self, code: yaml.ScalarNode) -> Tuple[int, int]:
        """Line and column of the first character of the code. A block starts below its ``|``."""
        if code.style not in ("|", ">"):
            return _line(code), 0
        line = _line(code) + 1
        below = (text for text in self._lines[line - 1 :] if text.strip())
        first = next(below, "")
        return line, len(first) - len(first.lstrip(" "))

    def _wrong(self, node: yaml.Node, problem: str) -> NetError:
        return NetError(self._file, _line(node), problem)


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1


def _is_null(node: Union[yaml.Node, Any]) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.tag == "tag:yaml.org,2002:null"
