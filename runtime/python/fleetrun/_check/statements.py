"""Statements of a script, walked in the order in which a run would come to them.

Where a branch cannot be foreseen both arms are walked, and what is found there is not certain; but branches
on a process's role are taken by one process or another of the job, so both are.
"""

from __future__ import annotations

import ast
import builtins
import re
import types
from collections.abc import Callable
from typing import Any

from fleetrun._check import package
from fleetrun._check.calls import Calls, Exit, Leave, Raised, Return
from fleetrun._check.names import Caught
from fleetrun._check.texts import reading, stored_names, text_of
from fleetrun._check.values import (
    UNKNOWN,
    Class,
    Foreign,
    Frame,
    Function,
    Instance,
    Listing,
    Made,
    Mapping,
    Module,
    Opened,
    element,
    items_of,
    join,
    truth,
)

_UNROLLED = 64
_ROLE = re.compile(
    r"is_server|is_worker|is_first_worker|\brole\b|training_role|worker_index|trainer_id|"
    r"local_rank|get_rank|rank\b",
    re.IGNORECASE,
)


class Break(Leave):
    """break, or continue."""


class Statements(Calls):
    """Walks the statements of a module or function."""

    def walk(self, body: list[ast.stmt], frame: Frame) -> None:
        """Walks statements. Throws: Leave, Caught."""
        for node in body:
            self.count(node)
            self.here = node
            visit = getattr(self, "_" + type(node).__name__.lower() + "_statement", None)
            if visit is not None:
                visit(node, frame)
            else:
                for child in ast.iter_child_nodes(node):
                    if isinstance(child, ast.expr):
                        self.evaluate(child, frame)

    # ---- names ----

    def bind(self, target: ast.expr, value: Any, frame: Frame) -> None:
        """Gives `value` to what stands left of a `=`. Throws: Caught."""
        if isinstance(target, ast.Name):
            names = frame.module.names if target.id in frame.global_names else frame.names
            names[target.id] = value
        elif isinstance(target, (ast.Tuple, ast.List)):
            known = items_of(value)
            fits = known is not None and len(known) == len(target.elts)
            for i, each in enumerate(target.elts):
                inner = each.value if isinstance(each, ast.Starred) else each
                self.bind(inner, known[i] if fits and known else element(value), frame)
        elif isinstance(target, ast.Attribute):
            self.set_attribute(self.evaluate(target.value, frame), target.attr, value, target)
        elif isinstance(target, ast.Subscript):
            self._set_item(target, value, frame)

    def set_attribute(self, value: Any, name: str, given: Any, node: ast.AST) -> None:
        """value.name = given. Throws: Caught."""
        if isinstance(value, Made):
            try:
                package.assign(value, name, given)
            except package.Refused as refusal:
                self.refused(node, refusal)
        elif isinstance(value, Instance):
            before = value.attributes.get(name, given)
            value.attributes[name] = join(before, given) if self.maybe or self.in_loop else given
        elif isinstance(value, (Module, Class)):
            value.names[name] = given
        elif isinstance(value, Foreign) and (value.name, name) == ("sys", "path"):
            self.has_unknown_path = True

    def _set_item(self, target: ast.Subscript, value: Any, frame: Frame) -> None:
        owner = self.evaluate(target.value, frame)
        index = self.evaluate(target.slice, frame)
        if isinstance(owner, Mapping):
            if isinstance(index, (str, int)) and not self.maybe:
                owner.items[index] = value
            else:
                owner.exact = False
                owner.items.setdefault(index if isinstance(index, (str, int)) else "", value)
        elif isinstance(owner, Listing):
            owner.exact = False
            owner.items.append(value)
        elif isinstance(owner, Foreign) and owner.name == "os.environ":
            self.around.set_variable(index, value if not self.maybe else UNKNOWN)
        elif isinstance(owner, Foreign) and owner.name == "sys.path":
            if isinstance(index, int) and isinstance(value, str) and not self.maybe:
                self.path[index : index + (index == 0)] = [value]  # 0: instead of the script's own folder
            else:
                self.has_unknown_path = True

    def _assign_statement(self, node: ast.Assign, frame: Frame) -> None:
        value = self.evaluate(node.value, frame)
        for target in node.targets:
            self.bind(target, value, frame)

    def _annassign_statement(self, node: ast.AnnAssign, frame: Frame) -> None:
        if node.value is not None:
            self.bind(node.target, self.evaluate(node.value, frame), frame)

    def _augassign_statement(self, node: ast.AugAssign, frame: Frame) -> None:
        value = self.evaluate(node.value, frame)
        before = self.evaluate(reading(node.target), frame)
        if isinstance(before, Foreign) and before.name == "sys.path":
            return self.search("sys.path.extend", [value])
        loose = isinstance(before, Listing) and (self.maybe or self.in_loop)
        result = self.binary(node.op, before, value, node)
        if loose and isinstance(result, Listing):
            result.exact = False
        self.bind(node.target, result, frame)

    def _delete_statement(self, node: ast.Delete, frame: Frame) -> None:
        """Nothing: a name that is deleted is not used again."""

    def _global_statement(self, node: ast.Global, frame: Frame) -> None:
        frame.global_names.update(node.names)

    def _nonlocal_statement(self, node: ast.Nonlocal, frame: Frame) -> None:
        """Nothing: the outer value is read, and written for this function only."""

    # ---- imports ----

    def _import_statement(self, node: ast.Import, frame: Frame) -> None:
        for alias in node.names:
            module = self.import_module(alias.name, node)
            if alias.asname:
                self.bind(ast.Name(alias.asname), module, frame)
                continue
            top = alias.name.partition(".")[0]
            if package.is_package(top):
                module = package.load(top)
            elif "." in alias.name:
                module = self.modules.get(top) or self.own_module(top) or Foreign(top)
            self.bind(ast.Name(top), module, frame)

    def _importfrom_statement(self, node: ast.ImportFrom, frame: Frame) -> None:
        name = node.module or ""
        if name == "__future__":
            return
        if node.level:
            above = [] if frame.module.name == "__main__" else frame.module.name.split(".")
            is_folder = frame.module.path.endswith("__init__.py")
            if len(above) + is_folder <= node.level:
                text = "attempted relative import with no known parent package"
                self.report(node, "module", text, "import it by its name", ImportError)
                return
            above = above[: len(above) - node.level + is_folder]
            name = ".".join([*above, *([name] if name else [])])
        module = self.import_module(name, node) if name else UNKNOWN
        for alias in node.names:
            if alias.name == "*":
                self._import_all(module, frame)
            else:
                self.bind(
                    ast.Name(alias.asname or alias.name), self.import_from(module, alias.name, node), frame
                )

    def _import_all(self, module: Any, frame: Frame) -> None:
        if isinstance(module, types.ModuleType):
            for name in getattr(module, "__all__", None) or dir(module):
                if not name.startswith("_"):
                    frame.names[name] = package.attribute(module, name)
        elif isinstance(module, Module):
            frame.names.update({key: value for key, value in module.names.items() if key[0] != "_"})
            frame.module.has_unknown_names |= module.has_unknown_names
        else:
            frame.module.has_unknown_names = True

    # ---- definitions ----

    def _functiondef_statement(self, node: Any, frame: Frame) -> None:
        value: Any = self.make_function(node, frame)
        for decorator in reversed(node.decorator_list):
            found = self.evaluate(decorator, frame)
            name = found.name.partition(".")[2] if isinstance(found, Foreign) else ""
            if name in ("property", "staticmethod", "classmethod"):
                value.kind = name
                continue
            value.is_decorated = True
            if isinstance(found, Function):
                wrapped = self.apply(found, [value], {}, True)
                value = wrapped if isinstance(wrapped, Function) else value
        frame.names[node.name] = value

    _asyncfunctiondef_statement = _functiondef_statement

    def _classdef_statement(self, node: ast.ClassDef, frame: Frame) -> None:
        bases = [self.evaluate(base, frame) for base in node.bases]
        for word in node.keywords:
            self.evaluate(word.value, frame)
        for decorator in node.decorator_list:
            self.evaluate(decorator, frame)
        cls = Class(node, frame.module, bases)
        is_top = frame.names is frame.module.names or frame.is_class
        outer = frame.outer if is_top else (frame.names, *frame.outer)
        self.walk(node.body, Frame(frame.module, cls.names, outer, cls=cls, is_class=True))
        frame.names[node.name] = cls

    # ---- flow ----

    def _return_statement(self, node: ast.Return, frame: Frame) -> None:
        frame.returned.append(self.evaluate(node.value, frame))
        raise Return

    def _raise_statement(self, node: ast.Raise, frame: Frame) -> None:
        self.evaluate(node.exc, frame)
        raise self._raised(node, text_of(node.exc) if node.exc is not None else "")

    def _raised(self, node: ast.stmt, text: str) -> Raised:
        raised = (
            text and self.is_sure and not self.in_role and "NotImplemented" not in text and "Skip" not in text
        )
        return Raised(self.finding(node, "raise", f"the script raises {text[:200]}", "") if raised else None)

    def _assert_statement(self, node: ast.Assert, frame: Frame) -> None:
        if truth(self.evaluate(node.test, frame)) is False:
            raise self._raised(node, f"AssertionError: {text_of(node.test)}")

    def _break_statement(self, node: ast.Break, frame: Frame) -> None:
        raise Break

    _continue_statement = _break_statement

    def _if_statement(self, node: ast.If, frame: Frame) -> None:
        known = truth(self.evaluate(node.test, frame))
        if known is not None:
            self.walk(node.body if known else node.orelse, frame)
        else:
            self.arms(
                node,
                node.test,
                frame,
                lambda: self.walk(node.body, frame),
                lambda: self.walk(node.orelse, frame),
            )

    def arms(self, node: ast.AST, test: Any, frame: Frame, *arms: Callable[[], None]) -> None:
        """Walks each arm from here; what they leave is joined. Throws: Leave, where every arm does: the one
        behind which the script goes on."""
        unsure = not (isinstance(test, ast.expr) and _ROLE.search(text_of(test)))
        before = dict(frame.names)
        ends: list[dict[str, Any]] = []
        left: Leave | None = None
        for arm in arms:
            frame.names.clear()
            frame.names.update(before)
            self.maybe += unsure
            self.in_role += not unsure
            try:
                arm()
                ends.append(dict(frame.names))
            except Leave as leave:
                left = leave if left is None or isinstance(left, (Raised, Exit)) else left
            finally:
                self.in_role -= not unsure
                self.maybe -= unsure
        frame.names.clear()
        frame.names.update(_joined(ends) if ends else before)
        if not ends and left is not None:
            raise left

    def _for_statement(self, node: ast.For, frame: Frame) -> None:
        value = self.evaluate(node.iter, frame)
        known = items_of(value)
        if known is not None and len(known) <= _UNROLLED:
            try:
                for item in list(known):
                    self.bind(node.target, item, frame)
                    self._once(node.body, frame, False)
            except Break:
                return
        elif known != []:
            self._forget(node, frame)
            self.bind(node.target, element(value), frame)
            self._loop(node.body, frame)
        self.walk(node.orelse, frame)

    _asyncfor_statement = _for_statement

    def _while_statement(self, node: ast.While, frame: Frame) -> None:
        self._forget(node, frame)
        if truth(self.evaluate(node.test, frame)) is not False:
            self._loop(node.body, frame)
        self.walk(node.orelse, frame)

    def _loop(self, body: list[ast.stmt], frame: Frame) -> None:
        """Walks the body once, for all of the times."""
        self.in_loop += 1
        try:
            self._once(body, frame, True)
        except Break:
            pass
        finally:
            self.in_loop -= 1

    def _once(self, body: list[ast.stmt], frame: Frame, last: bool) -> None:
        try:
            self.walk(body, frame)
        except Break:
            if last or isinstance(self.here, ast.Break):
                raise

    @staticmethod
    def _forget(loop: ast.For | ast.While, frame: Frame) -> None:
        """Constants that the loop writes are not known within it."""
        for name in stored_names(loop):
            if isinstance(frame.names.get(name), (bool, int, float, str)):
                frame.names[name] = UNKNOWN

    def _with_statement(self, node: ast.With, frame: Frame) -> None:
        entered: list[Any] = []
        elsewhere = self.elsewhere
        expects = False
        for item in node.items:
            text = text_of(item.context_expr)
            expects = expects or "assertRaises" in text or "pytest.raises" in text
            value = self.evaluate(item.context_expr, frame)
            if item.optional_vars is not None:
                self.bind(
                    item.optional_vars,
                    value if isinstance(value, (Made, Instance, Opened)) else UNKNOWN,
                    frame,
                )
            self._enter(item.context_expr, value, frame, entered)
        try:
            if expects:
                self._expected(node.body, frame)
            else:
                self.walk(node.body, frame)
        finally:
            self.elsewhere = elsewhere
            for manager in reversed(entered):
                manager.__exit__(None, None, None)

    def _enter(self, node: ast.expr, value: Any, frame: Frame, entered: list[Any]) -> None:
        """Enters what says where programs are built; where that is not known, none are."""
        called = self.evaluate(node.func, frame) if isinstance(node, ast.Call) else None
        if not package.enter(called):
            return
        if self.builds and isinstance(value, Made) and value.real is not None:
            value.real.__enter__()
            entered.append(value.real)
        else:
            self.elsewhere += 1

    def _expected(self, body: list[ast.stmt], frame: Frame) -> None:
        """Walks what the script expects to fail."""
        self.handlers.append((BaseException,))
        try:
            self.walk(body, frame)
        except (Caught, Raised, Exit):
            pass
        finally:
            self.handlers.pop()

    _asyncwith_statement = _with_statement

    def _try_statement(self, node: ast.Try, frame: Frame) -> None:
        kinds = [(handler, self._caught_by(handler, frame)) for handler in node.handlers]
        self.handlers.append(tuple(each for _, found in kinds for each in found))
        depth, maybe, module, in_loop = self.depth, self.maybe, self.module, self.in_loop
        guess, in_role = self.guess, self.in_role
        try:
            try:
                self.walk(node.body, frame)
            finally:
                self.handlers.pop()
            self.walk(node.orelse, frame)
            self.maybe += self._may_leave(node.handlers)
        except Caught as caught:
            self.depth, self.maybe, self.module, self.in_loop = depth, maybe, module, in_loop
            self.guess, self.in_role = guess, in_role
            handler = next((each for each, found in kinds if issubclass(caught.error, found)), None)
            if handler is None:
                raise
            self._handle(handler, caught, frame)
        except Raised:
            self.depth, self.maybe, self.module, self.in_loop = depth, maybe, module, in_loop
            self.guess, self.in_role = guess, in_role
            if not node.handlers:
                raise
            self.arms(node, None, frame, *(self._body_of(each, frame) for each in node.handlers))
        finally:
            self.walk(node.finalbody, frame)

    _trystar_statement = _try_statement

    @staticmethod
    def _may_leave(handlers: list[ast.ExceptHandler]) -> bool:
        """Whether an error of any kind, which the body may have for its own reasons, ends the function."""
        broad = [each for each in handlers if each.type is None or text_of(each.type) == "Exception"]
        return any(
            isinstance(last, ast.Return) or "exit(" in text_of(last)
            for each in broad
            for last in each.body[-1:]
        )

    def _body_of(self, handler: ast.ExceptHandler, frame: Frame) -> Callable[[], None]:
        return lambda: self.walk(handler.body, frame)

    def _caught_by(self, handler: ast.ExceptHandler, frame: Frame) -> tuple[type[BaseException], ...]:
        if handler.type is None:
            return (BaseException,)
        nodes = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
        found = []
        for node in nodes:
            value = self.evaluate(node, frame)
            if isinstance(value, Foreign) and value.name.startswith("builtins."):
                value = getattr(builtins, value.name.partition(".")[2], None)
            if isinstance(value, type) and issubclass(value, BaseException):
                found.append(value)
        return tuple(found)

    def _handle(self, handler: ast.ExceptHandler, caught: Caught, frame: Frame) -> None:
        """Walks the handler of a finding, which is one after all where the handler gives up."""
        if handler.name:
            frame.names[handler.name] = UNKNOWN
        try:
            self.walk(handler.body, frame)
        except (Raised, Exit):
            self.add(caught.finding)
            raise


def _joined(ends: list[dict[str, Any]]) -> dict[str, Any]:
    """The names after a branch whose arms left these."""
    result = dict(ends[0])
    for names in ends[1:]:
        for name, value in names.items():
            result[name] = join(result[name], value) if name in result else value
    return result
