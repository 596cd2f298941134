"""What is asked of a node again and again, each time that a walk comes to it."""

from __future__ import annotations

import ast
import functools
import inspect


@functools.cache
def text_of(node: ast.AST) -> str:
    """The node as a script writes it."""
    return ast.unparse(node)


@functools.cache
def stored_names(node: ast.AST) -> frozenset[str]:
    """The names that statements in the node write."""
    return frozenset(
        each.id for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
    )


@functools.cache
def bound_names(module: ast.AST) -> frozenset[str]:
    """Every name that anything in a module binds, wherever."""
    found = set(stored_names(module))
    for each in ast.walk(module):
        if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.ExceptHandler)):
            found.add(each.name or "")
        elif isinstance(each, ast.alias):
            found.add(each.asname or each.name.partition(".")[0])
        elif isinstance(each, ast.arg):
            found.add(each.arg)
        elif isinstance(each, (ast.MatchAs, ast.MatchStar)):
            found.add(each.name or "")
    return frozenset(found)


@functools.cache
def signature_of(function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> inspect.Signature:
    """The parameters of a function of the script."""
    words, kinds = function.args, inspect.Parameter
    places = [*words.posonlyargs, *words.args]
    needed = len(places) - len(words.defaults)
    found = [
        kinds(
            each.arg,
            kinds.POSITIONAL_ONLY if i < len(words.posonlyargs) else kinds.POSITIONAL_OR_KEYWORD,
            default=kinds.empty if i < needed else None,
        )
        for i, each in enumerate(places)
    ]
    if words.vararg:
        found.append(kinds(words.vararg.arg, kinds.VAR_POSITIONAL))
    for each, default in zip(words.kwonlyargs, words.kw_defaults):
        found.append(kinds(each.arg, kinds.KEYWORD_ONLY, default=kinds.empty if default is None else None))
    if words.kwarg:
        found.append(kinds(words.kwarg.arg, kinds.VAR_KEYWORD))
    return inspect.Signature(found)


@functools.cache
def reading(target: ast.expr) -> ast.expr:
    """The expression that reads what `target` writes."""
    return ast.copy_location(ast.parse(ast.unparse(target), mode="eval").body, target)
