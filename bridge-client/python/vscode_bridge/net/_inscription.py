"""Code in a net, compiled so that errors name the line of the net's own file.

The code is the body of a function with the parameter ``token``, so it may ``return``. A single
expression is the return value. All inscriptions of a net share their global names, which include
``vscode_bridge``.
"""

from __future__ import annotations

import ast
import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import FunctionType, ModuleType
from typing import Any, Callable, Dict, Optional, Sequence

import vscode_bridge


def namespace() -> Dict[str, Any]:
    """The global names of a net's inscriptions."""
    return {"__name__": "__inscriptions__", "vscode_bridge": vscode_bridge}


def compile_inscription(
    code: str, name: str, *, file: str, line: int, column: int, names: Dict[str, Any]
) -> Callable[[Any], Any]:
    """The function behind ``code``, whose first character stands at ``line`` and ``column``.

    Raises ``SyntaxError`` with the line in the file.
    """
    try:
        body = ast.parse(code, file).body
    except SyntaxError as error:
        error.lineno = (error.lineno or 1) + line - 1
        raise
    for statement in body:
        for node in ast.walk(statement):
            _shift(node, line - 1, column)
    if len(body) == 1 and isinstance(body[0], ast.Expr):
        body = [ast.copy_location(ast.Return(body[0].value), body[0])]

    module = ast.parse("def inscription(token): pass", file)
    function = module.body[0]
    assert isinstance(function, ast.FunctionDef)
    function.name = name if name.isidentifier() else "inscription"
    function.body = body or function.body
    exec(compile(module, file, "exec"), names)
    compiled = names.pop(function.name)
    assert isinstance(compiled, FunctionType)
    return compiled


def offer_engine_alias() -> None:
    """Makes ``from enginepy import vscode_bridge`` work where the original engine is not installed.

    The finder is the last one, so an installed engine is found before it.
    """
    if not any(isinstance(finder, _EngineAlias) for finder in sys.meta_path):
        sys.meta_path.append(_EngineAlias())


class _EngineAlias(MetaPathFinder, Loader):
    def find_spec(
        self,
        fullname: str,
        path: Optional[Sequence[str]],
        target: Optional[ModuleType] = None,
    ) -> Optional[ModuleSpec]:
        return ModuleSpec(fullname, self, is_package=True) if fullname == "enginepy" else None

    def exec_module(self, module: ModuleType) -> None:
        module.__doc__ = "Replaces the original engine, with vscode_bridge only."
        module.vscode_bridge = vscode_bridge  # type: ignore[attr-defined]
        sys.modules["enginepy.vscode_bridge"] = vscode_bridge


def _shift(node: ast.AST, lines: int, columns: int) -> None:
    if isinstance(node, (ast.stmt, ast.expr, ast.excepthandler, ast.arg, ast.keyword, ast.alias)):
        for name, by in (
            ("lineno", lines),
            ("end_lineno", lines),
            ("col_offset", columns),
            ("end_col_offset", columns),
        ):
            value = getattr(node, name, None)
            if value is not None:
                setattr(node, name, value + by)
