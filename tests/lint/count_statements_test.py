"""scripts/count-statements: what counts, and that neither layout nor comments do."""
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "count-statements"


def count(root, path, text):
    """How many statements a tree has whose only file is `path`."""
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)
    run = subprocess.run([SCRIPT, root], capture_output=True, text=True, timeout=60, check=True)
    return int(run.stdout.splitlines()[-1].split()[1])


@pytest.mark.parametrize("text, statements", [
    ("int f(int a) { return a; }", 2),
    ("// ; ;\nint f(int a)\n{\n\n  return a;  /* ; */\n}\n", 2),
    ("for (int i = 0; i < 3; ++i) g(i);", 2),
    ("for (int i = 0; i < 3; ++i) {\n  g(i);\n}", 2),
    ("auto f() const noexcept -> std::vector<int> { return {}; }", 2),
    ("std::sort(a, b, [](int x) { return x; });", 3),
    ("if constexpr (x) y(); else z();", 3),
    ('const char* s = R"(a; if (b) c;)" "; ;";\nchar c = \';\';\nint n = 1\'000;', 3),
    ("#define A ; ; \\\n  ;\n#include <a>\nint x;", 1),
    ("int rows[][2] = {{1, 2}, {f(3), 4}};", 1),
])
def test_statements_of_cpp(tmp_path, text, statements):
    assert count(tmp_path, "ps/a.cc", text) == statements


@pytest.mark.parametrize("path, text, statements", [
    ("runtime/python/fleetrun/a.py",
     '"""Words."""\nimport os\n\n\ndef f():\n    """More."""\n    return (1,\n            2)\n', 2),
    ("runtime/python/fleetrun/a.py",
     "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import os\nx = 1; y = 2\n", 2),
    ("runtime/python/fleetrun/a.pyi", "def f() -> int: ...\n", 0),
    ("scripts/a.py", "x = 1; y = 2\n", 0),
    ("tests/unit/a.cc", "int x;\n", 0),
])
def test_statements_of_python_and_what_is_not_of_the_product(tmp_path, path, text, statements):
    assert count(tmp_path, path, text) == statements
