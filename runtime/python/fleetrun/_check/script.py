"""A check of one script: its module, its tests, what it starts, and what nothing in it calls."""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import io
import os
import time
import tokenize

from fleetrun._check import package
from fleetrun._check.calls import Exit, Leave
from fleetrun._check.findings import Finding
from fleetrun._check.names import Caught, OutOfSteps
from fleetrun._check.statements import Statements
from fleetrun._check.surroundings import ARGUMENTS
from fleetrun._check.values import Class, Foreign, Frame, Function, Instance, Module
from fleetrun._decisions import table


@dataclasses.dataclass
class Result:
    """What a check of a script found, in the order in which a run comes to it. wants: what it needs of a run,
    and this machine, or this command line, has not."""

    script: str
    findings: list[Finding]
    possible: list[Finding]
    wants: list[Finding]
    seconds: float

    def add(self, built: Finding | None) -> None:
        """Takes what ended a build, which is the first failure of a run."""
        if built is not None:
            place = (built.file, built.line)
            same = [each for each in [*self.findings, *self.possible] if (each.file, each.line) == place]
            is_known = same and same[0].kind not in ("raise", "exit")
            first = dataclasses.replace(same[0], certain=True) if is_known else built
            self.findings = [first, *(each for each in self.findings if each not in same)]
            self.possible = [each for each in self.possible if each not in same]


class Script(Statements):
    """The walk of one script."""

    def run(self) -> None:
        """Walks it, and after it the scripts that it starts."""
        package.forget_programs()
        try:
            self.module = self.walked("__main__", os.path.abspath(self.script))
            self._tests()
            self._uncalled()
        except OutOfSteps:
            return

    def walked(self, name: str, path: str) -> Module:
        """The module of a file, walked the first time it is asked for. Throws: Caught, Exit."""
        path = os.path.relpath(path) if not os.path.relpath(path).startswith("../..") else path
        if name in self.modules and self.modules[name].path == path:
            return self.modules[name]
        module = self.modules[name] = Module(name, path)
        outer, self.module = self.module, module
        try:
            with open(path, "rb") as file:
                source = _decoded(file.read())
            module.tree = ast.parse(source, path)
            compile(source, path, "exec", dont_inherit=True)  # finds a return outside of functions, too
        except (SyntaxError, ValueError) as error:
            node = ast.Pass(
                lineno=getattr(error, "lineno", 1) or 1, col_offset=(getattr(error, "offset", 1) or 1) - 1
            )
            self.report(
                node,
                "syntax",
                f"{type(error).__name__}: {getattr(error, 'msg', error)}",
                "write it for Python 3",
                type(error),
            )
            module.has_unknown_names = True
            return module
        finally:
            self.module = outer
        return self._walk_module(module)

    def _walk_module(self, module: Module) -> Module:
        outer, self.module = self.module, module
        try:
            self.walk(module.tree.body if module.tree else [], Frame(module, module.names))
        except Leave as leave:
            is_main = module.name == "__main__"
            if not is_main and (leave.finding is not None or isinstance(leave, Exit)):
                raise
            if leave.finding is not None:
                self._ends(leave.finding)
        finally:
            self.module = outer
        return module

    def _ends(self, finding: Finding) -> None:
        """Takes what ends the script by its own will: a finding where the run has no more than this."""
        if self.around.words or not self.around.is_asked:
            self.add(finding)
        else:
            instead = ARGUMENTS
            self.wants[(finding.file, finding.line, finding.kind)] = dataclasses.replace(
                finding, instead=instead
            )

    def _tests(self) -> None:
        """Walks the cases of unittest, as its main() does."""
        self.guess += 1
        for cls in [each for each in self.module.names.values() if isinstance(each, Class)]:
            line = cls.line()
            if not any(isinstance(base, Foreign) and base.name.endswith("TestCase") for base in line):
                continue
            cases = {
                name
                for each in line
                if isinstance(each, Class)
                for name, value in each.names.items()
                if name.startswith("test") and isinstance(value, Function)
            }
            for case in sorted(cases):
                self._case(cls, case)

    def _case(self, cls: Class, case: str) -> None:
        function = self.in_class(cls, case)
        if any("skip" in ast.unparse(each) for each in function.node.decorator_list):
            return
        instance = self._made(cls)
        for name in ("setUpClass", "setUp", case):
            method = self.in_class(cls, name)
            if isinstance(method, Function):
                self._alone(method, cls if name == "setUpClass" else instance)

    def _alone(self, function: Function, instance: object) -> None:
        with contextlib.suppress(Leave, Caught):
            self.walk_function(function, instance, [], {}, False)

    def _uncalled(self) -> None:
        """Walks what nothing in the script calls: of a module without a main part as if it were called, of a
        program as what perhaps is."""
        own = [
            value
            for value in self.module.names.values()
            if isinstance(value, (Class, Function)) and value.module is self.module
        ]
        self.maybe += self._is_program(own)
        self.elsewhere += 1
        for value in own:
            if isinstance(value, Function):
                if not value.walks:
                    self._alone(value, None)
                continue
            missing = [each for each in value.names.values() if isinstance(each, Function) and not each.walks]
            if missing:
                self._methods(value, missing)

    def _is_program(self, own: list[Class | Function]) -> bool:
        """Whether the script does something by itself, or has cases of unittest."""
        functions = [
            each
            for value in own
            for each in ([value] if isinstance(value, Function) else value.names.values())
            if isinstance(each, Function)
        ]
        body = self.module.tree.body if self.module.tree else []
        return (
            any(each.walks for each in functions)
            or "unittest" in self.module.names
            or any(isinstance(node, ast.If) and "__name__" in ast.unparse(node.test) for node in body)
        )

    def _methods(self, cls: Class, missing: list[Function]) -> None:
        instance = self._made(cls)
        for function in missing:
            if instance is not None and not function.walks:
                self._alone(function, instance)

    def _made(self, cls: Class) -> Instance | None:
        """An object of a class that nothing in the script makes; None where it cannot be made."""
        with contextlib.suppress(Leave, Caught):
            try:
                return self.make(cls, [], {}, False)
            except package.Refused as refusal:
                self.refused(cls.node, refusal)
        return None


def check(script: str, words: list[str], folders: list[str]) -> Result:
    """Reads a script and what it imports; nothing of it is executed.

    words: the script's arguments. folders: where else its modules are looked for.
    """
    begin = time.monotonic()
    findings: dict[tuple[str, int, str], Finding] = {}
    wants: dict[tuple[str, int, str], Finding] = {}
    waiting = [os.path.abspath(script)]
    seen: set[str] = set()
    while waiting and len(seen) < 8:
        path = waiting.pop(0)
        if path in seen:
            continue
        seen.add(path)
        walk = Script(os.path.relpath(path), words if len(seen) == 1 else None, folders)
        walk.run()
        for key, finding in walk.findings.items():
            findings.setdefault(key, finding)
        wants = {**wants, **walk.wants}
        waiting += walk.started
    certain = [each for each in findings.values() if each.certain]
    possible = [each for each in findings.values() if not each.certain]
    return Result(script, _said_at_once(certain), possible, [*wants.values()], time.monotonic() - begin)


def _decoded(source: bytes) -> bytes:
    """The bytes of a file. Throws: SyntaxError where a run cannot decode them, comments too, which ast.parse
    leaves out."""
    try:
        source.decode(tokenize.detect_encoding(io.BytesIO(source).readline)[0])
    except UnicodeDecodeError as error:
        told = SyntaxError(f"Non-UTF-8 code starting with {source[error.start : error.start + 1]!r}")
        told.lineno = source[: error.start].count(b"\n") + 1
        raise told from error
    return source


def _said_at_once(findings: list[Finding]) -> list[Finding]:
    """The first finding of a script of dynamic mode says that it is one."""
    reasons = table()[0]
    dynamic = [reasons[word].partition(";")[0] for word in ("dynamic", "vision")]
    found = next((each for each in findings if any(reason in each.text for reason in dynamic)), None)
    if found is None or found is findings[0]:
        return findings
    way_out = reasons["dynamic"].partition("; ")[2]
    place = f"{found.file}:{found.line}"
    text = f"{findings[0].text}; {place} is of dynamic mode, and this engine runs static programs"
    return [dataclasses.replace(findings[0], text=text, instead=way_out), *findings[1:]]
