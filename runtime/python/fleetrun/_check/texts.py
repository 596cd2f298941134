"""What is asked of a node again and again, each time that a walk comes to it."""

from __future__ import annotations

import ast
import functools


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
def reading(target: ast.expr) -> ast.expr:
    """The expression that reads what `target` writes."""
    return ast.copy_location(ast.parse(ast.unparse(target), mode="eval").body, target)
