"""Expressions of a script, walked without running them: what they give, as far as that is known."""

from __future__ import annotations

import ast
import builtins
import operator
from collections.abc import Callable
from typing import Any

from fleetrun._check import foreign, package
from fleetrun._check.names import Names
from fleetrun._check.surroundings import ARGUMENTS
from fleetrun._check.values import (
    UNKNOWN,
    Abstract,
    Foreign,
    Frame,
    Function,
    Listing,
    Made,
    Mapped,
    Mapping,
    Unknown,
    element,
    items_of,
    join,
    truth,
)

_BINARY: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: operator.pow,
    ast.BitAnd: operator.and_, ast.BitOr: operator.or_, ast.BitXor: operator.xor,
    ast.LShift: operator.lshift, ast.RShift: operator.rshift,
}  # fmt: skip
_COMPARED: dict[type, Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le,
    ast.Gt: operator.gt, ast.GtE: operator.ge,
}  # fmt: skip
_UNARY: dict[type, Callable[[Any], Any]] = {
    ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Invert: operator.invert,
}  # fmt: skip
_UNROLLED = 64


class Expressions(Names):
    """Evaluates; calls and statements lie above."""

    def evaluate(self, node: ast.expr | None, frame: Frame) -> Any:
        """What the expression gives."""
        if node is None:
            return None
        self.count(node)
        visit = getattr(self, "_" + type(node).__name__.lower(), None)
        if visit is not None:
            return visit(node, frame)
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self.evaluate(child, frame)
        return UNKNOWN

    def call(self, node: ast.Call, frame: Frame) -> Any:
        """What a call gives."""
        raise NotImplementedError

    def make_function(self, node: Any, frame: Frame) -> Function:
        """A function of the script, at its definition."""
        raise NotImplementedError

    def bind(self, target: ast.expr, value: Any, frame: Frame) -> None:
        """Gives a value to what stands left of a `=`."""
        raise NotImplementedError

    def arms(self, node: ast.AST, test: Any, frame: Frame, *arms: Callable[[], None]) -> None:
        """Walks the arms of a branch that cannot be foreseen."""
        raise NotImplementedError

    def _constant(self, node: ast.Constant, frame: Frame) -> Any:
        return node.value

    def _name(self, node: ast.Name, frame: Frame) -> Any:
        for names in (frame.names, *frame.outer, frame.module.names):
            if node.id in names:
                return names[node.id]
        if node.id == "__name__":
            return frame.module.name
        if node.id == "__file__":
            return frame.module.path
        if hasattr(builtins, node.id):
            return Foreign("builtins." + node.id)
        self.undefined(node, frame)
        return UNKNOWN

    def _attribute(self, node: ast.Attribute, frame: Frame) -> Any:
        return self.attribute(self.evaluate(node.value, frame), node.attr, node)

    def _call(self, node: ast.Call, frame: Frame) -> Any:
        return self.call(node, frame)

    def _tuple(self, node: ast.Tuple, frame: Frame) -> Any:
        values, exact = self._values(node.elts, frame)
        return tuple(values) if exact else Listing(values, exact=False)

    def _list(self, node: ast.List, frame: Frame) -> Any:
        return Listing(*self._values(node.elts, frame))

    def _values(self, nodes: list[ast.expr], frame: Frame) -> tuple[list[Any], bool]:
        values: list[Any] = []
        exact = True
        for each in nodes:
            if isinstance(each, ast.Starred):
                value = self.evaluate(each.value, frame)
                known = items_of(value)
                exact = exact and known is not None
                values += known if known is not None else [element(value)]
            else:
                values.append(self.evaluate(each, frame))
        return values, exact

    def _set(self, node: ast.Set, frame: Frame) -> Any:
        return Listing(self._values(node.elts, frame)[0], exact=False)

    def _dict(self, node: ast.Dict, frame: Frame) -> Any:
        found = Mapping({})
        for key, value in zip(node.keys, node.values):
            name = self.evaluate(key, frame)
            item = self.evaluate(value, frame)
            if key is None:
                found.items.update(item.items if isinstance(item, Mapping) else {})
                found.exact = found.exact and isinstance(item, Mapping) and item.exact
            elif isinstance(name, (Abstract, tuple)):
                found.exact = False
            else:
                found.items[name] = item
        return found

    def _binop(self, node: ast.BinOp, frame: Frame) -> Any:
        if isinstance(node.op, ast.RShift) and isinstance(node.left, ast.Name) and node.left.id == "print":
            text = "print >> …: print is a function, and this is Python 2's"
            self.report(node, "argument", text, "write it for Python 3: print(…, file=…)", TypeError)
        return self.binary(node.op, self.evaluate(node.left, frame), self.evaluate(node.right, frame), node)

    def operate(self, function: Any, values: list[Any], node: ast.AST) -> Any:
        """An operator on variables of a program. Throws: Caught."""
        try:
            found = package.operate(function, values) if self.builds else None
        except package.Refused as refusal:
            self.refused(node, refusal)
            found = None
        if found is None or found.real is None:
            self.has_unbuilt = True
            return Made(next(each.cls for each in values if isinstance(each, Made)))
        return found

    def binary(self, op: ast.operator, left: Any, right: Any, node: ast.AST) -> Any:
        """left op right. Throws: Caught."""
        if package.is_variable(left) or package.is_variable(right):
            return self.operate(_BINARY.get(type(op), operator.matmul), [left, right], node)
        if isinstance(left, Listing) and isinstance(op, (ast.Add, ast.Mult)):
            if isinstance(op, ast.Add) and isinstance(right, Listing) and Mapped in (type(left), type(right)):
                text = "a list and what map() gives cannot be added: it is no list"
                self.report(node, "argument", text, "write it for Python 3: list(map(…))", TypeError)
            return self._lists(op, left, right)
        if isinstance(op, ast.Mod) and isinstance(left, str) and not isinstance(right, (Abstract, tuple)):
            right = (right,)
        return (
            foreign.compute(_BINARY.get(type(op), operator.add), [left, right], {})
            if (type(op) in _BINARY)
            else UNKNOWN
        )

    def _lists(self, op: ast.operator, left: Listing, right: Any) -> Any:
        if isinstance(op, ast.Mult):
            if isinstance(right, int) and len(left.items) * right <= 256:
                return Listing(left.items * right, left.exact)
            return Listing(left.items, exact=False)
        known = items_of(right)
        if known is not None:
            return Listing([*left.items, *known], left.exact)
        others = right.items if isinstance(right, Listing) else [UNKNOWN]
        return Listing([*left.items, *others], exact=False)

    def _unaryop(self, node: ast.UnaryOp, frame: Frame) -> Any:
        value = self.evaluate(node.operand, frame)
        if isinstance(node.op, ast.Not):
            known = truth(value)
            return UNKNOWN if known is None else not known
        if package.is_variable(value):
            return self.operate(_UNARY[type(node.op)], [value], node)
        return foreign.compute(_UNARY[type(node.op)], [value], {})

    def _boolop(self, node: ast.BoolOp, frame: Frame) -> Any:
        ends = isinstance(node.op, ast.Or)
        result: Any = None
        unknown = False
        for i, each in enumerate(node.values):
            self.maybe += unknown
            try:
                value = self.evaluate(each, frame)
            finally:
                self.maybe -= unknown
            known = truth(value)
            if known is ends and not unknown:
                return value
            if known is ends:
                return value if not ends else UNKNOWN
            unknown = unknown or known is None
            result = value if not i else join(result, value)
        return UNKNOWN if unknown else value

    def _compare(self, node: ast.Compare, frame: Frame) -> Any:
        left = self.evaluate(node.left, frame)
        rights = [self.evaluate(each, frame) for each in node.comparators]
        if len(rights) != 1:
            return UNKNOWN
        return self._compared(node.ops[0], left, rights[0])

    def _compared(self, op: ast.cmpop, left: Any, right: Any) -> Any:
        if isinstance(op, (ast.Is, ast.IsNot)):
            known = _is(left, right)
            return UNKNOWN if known is None else known == isinstance(op, ast.Is)
        if isinstance(op, (ast.In, ast.NotIn)):
            found = _within(left, right)
            return UNKNOWN if found is None else found == isinstance(op, ast.In)
        if isinstance(op, (ast.Eq, ast.NotEq)) and (left is None or right is None):
            known = _is(left, right)
            return UNKNOWN if known is None else known == isinstance(op, ast.Eq)
        if package.is_variable(left) or package.is_variable(right):
            return self.operate(_COMPARED[type(op)], [left, right], self.here)
        return foreign.compute(_COMPARED[type(op)], [left, right], {})

    def _ifexp(self, node: ast.IfExp, frame: Frame) -> Any:
        known = truth(self.evaluate(node.test, frame))
        if known is not None:
            return self.evaluate(node.body if known else node.orelse, frame)
        values: list[Any] = []
        self.arms(
            node,
            node.test,
            frame,
            lambda: values.append(self.evaluate(node.body, frame)),
            lambda: values.append(self.evaluate(node.orelse, frame)),
        )
        return join(*values) if len(values) == 2 else UNKNOWN

    def _subscript(self, node: ast.Subscript, frame: Frame) -> Any:
        value = self.evaluate(node.value, frame)
        index = self.evaluate(node.slice, frame)
        if package.is_variable(value):
            return self.operate(operator.getitem, [value, index], node)
        if isinstance(value, Mapping) and not isinstance(index, (Abstract, tuple)):
            return value.items.get(index, UNKNOWN)
        if isinstance(value, Foreign) and value.name == "os.environ":
            return self._variable(index)
        if isinstance(value, Foreign) and value.name == "sys.path" and index == 0:
            return self.path[0]
        if isinstance(index, int):
            known = items_of(value)
            if value is self.around.argv and known is not None and index >= len(known):
                self.want("argument", f"the script needs an argument {index}", ARGUMENTS, IndexError)
            if known is not None:
                return known[index] if -len(known) <= index < len(known) else UNKNOWN
        if isinstance(value, (str, tuple)):
            return foreign.compute(operator.getitem, [value, index], {})
        if isinstance(value, Listing) and isinstance(index, slice):
            return Listing(value.items[index], value.exact) if value.exact else value
        return element(value) if isinstance(value, Listing) else UNKNOWN

    def _variable(self, name: Any) -> Any:
        """os.environ[name]."""
        value = self.around.variable(name, None)
        if value is None:
            self.want("argument", f"{name!r} is not in the environment", f"set {name}", KeyError)
        return UNKNOWN if value is None else value

    def _slice(self, node: ast.Slice, frame: Frame) -> Any:
        parts = [self.evaluate(each, frame) for each in (node.lower, node.upper, node.step)]
        known = all(each is None or isinstance(each, int) for each in parts)
        return slice(*parts) if known else UNKNOWN

    def _joinedstr(self, node: ast.JoinedStr, frame: Frame) -> Any:
        parts = [self.evaluate(each, frame) for each in node.values]
        return "".join(parts) if all(isinstance(each, str) for each in parts) else UNKNOWN

    def _formattedvalue(self, node: ast.FormattedValue, frame: Frame) -> Any:
        value = self.evaluate(node.value, frame)
        return str(value) if isinstance(value, (str, int)) and node.format_spec is None else UNKNOWN

    def _lambda(self, node: ast.Lambda, frame: Frame) -> Any:
        return self.make_function(node, frame)

    def _namedexpr(self, node: ast.NamedExpr, frame: Frame) -> Any:
        value = self.evaluate(node.value, frame)
        self.bind(node.target, value, frame)
        return value

    def _yield(self, node: ast.Yield, frame: Frame) -> Any:
        frame.returned.append(Listing([self.evaluate(node.value, frame)], exact=False))
        return UNKNOWN

    def _listcomp(self, node: ast.ListComp, frame: Frame) -> Any:
        return self._comprehension(node, [node.elt], frame)

    def _generatorexp(self, node: ast.GeneratorExp, frame: Frame) -> Any:
        return self._comprehension(node, [node.elt], frame)

    def _setcomp(self, node: ast.SetComp, frame: Frame) -> Any:
        found = self._comprehension(node, [node.elt], frame)
        return Listing(found.items, exact=False)

    def _dictcomp(self, node: ast.DictComp, frame: Frame) -> Any:
        pairs = self._comprehension(node, [node.key, node.value], frame)
        exact = pairs.exact and all(not isinstance(key, (Abstract, tuple)) for key, _ in pairs.items)
        return Mapping(
            {key: value for key, value in pairs.items if not isinstance(key, (Abstract, tuple))}, exact
        )

    def _comprehension(self, node: Any, wanted: list[ast.expr], frame: Frame) -> Listing:
        inner = Frame(frame.module, {}, (frame.names, *frame.outer), cls=frame.cls, self=frame.self)
        result = Listing([])
        self._generate(node.generators, wanted, inner, result)
        return result

    def _generate(self, generators: Any, wanted: list[ast.expr], frame: Frame, result: Listing) -> None:
        if not generators:
            values = [self.evaluate(each, frame) for each in wanted]
            result.items.append(values[0] if len(values) == 1 else tuple(values))
            return
        first, *rest = generators
        value = self.evaluate(first.iter, frame)
        known = items_of(value)
        if known is None or len(known) > _UNROLLED:
            result.exact = False
            known = [element(value)]
        for item in known:
            self.bind(first.target, item, frame)
            tests = [truth(self.evaluate(test, frame)) for test in first.ifs]
            if False not in tests:
                result.exact = result.exact and None not in tests
                self._generate(rest, wanted, frame, result)


def _is(left: Any, right: Any) -> bool | None:
    """Whether left is right, for None, truth values and types."""
    if isinstance(left, Foreign) and isinstance(right, Foreign):
        both = left.name.startswith("builtins.") and right.name.startswith("builtins.")
        return left.name == right.name if both else None
    if isinstance(left, (Unknown, Foreign)) or isinstance(right, (Unknown, Foreign)):
        return None
    return left is right


def _within(left: Any, right: Any) -> bool | None:
    """Whether left is in right."""
    if isinstance(left, Abstract):
        return None
    if isinstance(right, str):
        return left in right if isinstance(left, str) else None
    if isinstance(right, Mapping) and left in right.items:
        return True
    known = items_of(right)
    if known is None or any(isinstance(item, Abstract) for item in known):
        return None
    return left in known
