"""scripts/check-layers finds each kind of violation in a sample tree, and nothing in a clean one."""
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "check-layers"


def check(root):
    run = subprocess.run([SCRIPT, root], capture_output=True, text=True, timeout=60)
    return run.returncode, run.stdout


def write(root, path, text):
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


def test_the_sources_of_this_checkout_keep_to_the_graph():
    assert check(SCRIPT.parents[1]) == (
        0, "check-layers: the include graph, the owners of headers and the sizes are as drawn\n")


@pytest.mark.parametrize("path, text", [
    ("ps/rpc/server.cc", "#include <grpcpp/grpcpp.h>\n#include \"ps/server.h\"\n#include \"runtime/base/error.h\"\n"),
    ("cli/options.cc", "#include <CLI/CLI.hpp>\n#include \"launcher/plan.h\"\n"),
    ("runtime/fleet.cc", "#include \"ps/client.h\"\n#include \"dataset/batch.h\"\n"),
    ("tests/unit/ps/table_test.cc", "#include <doctest/doctest.h>\n#include \"dataset/batch.h\"\n"),
    ("ps/arena.cc", "if (!chunk) throw std::bad_alloc();\n"),
    ("launcher/host.cc", "#include <sys/socket.h>\n#include <unistd.h>\n#include <vector>\n"),
])
def test_what_the_graph_draws_is_accepted(tmp_path, path, text):
    write(tmp_path, path, text)
    assert check(tmp_path)[0] == 0


@pytest.mark.parametrize("path, text, finding", [
    ("ps/table.cc", "#include \"dataset/batch.h\"\n", 'ps/table.cc:1: includes "dataset/batch.h": ps may not look into dataset'),
    ("launcher/plan.h", "\n#include \"cli/options.h\"\n", 'launcher/plan.h:2: includes "cli/options.h": launcher may not look into cli'),
    ("runtime/engine/op.cc", "#include \"runtime/table_plan.h\"\n", "runtime/engine may not look into runtime"),
    ("dataset/pipe.cc", "#include \"tests/support/temp_dir.h\"\n", "nothing may look into tests/"),
    ("launcher/plan.cc", "#include <grpcpp/grpcpp.h>\n", "launcher/plan.cc:1: includes <grpcpp/grpcpp.h>, which belongs to ps/rpc"),
    ("ps/table.cc", "#include <grpcpp/grpcpp.h>\n", "ps/table.cc:1: includes <grpcpp/grpcpp.h>, which belongs to ps/rpc"),
    ("ps/rpc/service.h", "#include <grpcpp/grpcpp.h>\n", "includes <grpcpp/grpcpp.h> from a header"),
    ("cli/main.cc", "#include <fmt/format.h>\n", "<fmt/format.h>, which has no owner"),
    ("launcher/plan.cc", "auto x = getenv(\"HOME\");\n", "touches the environment"),
    ("launcher/plan.cc", "throw std::runtime_error(\"no\");\n", "throws something that is not fleetrun::Error"),
    ("dataset/slot.h", "\n" * 251, "dataset/slot.h:251: 251 lines; one subject each, at most 250"),
    ("dataset/slot.cc", "\n" * 601, "at most 600"),
    ("scripts/big", "\n" * 151, "at most 150"),
])
def test_a_violation_is_named_with_file_and_line(tmp_path, path, text, finding):
    write(tmp_path, path, text)
    status, found = check(tmp_path)
    assert status == 1
    assert finding in found
    assert found.count("\n") == 1


@pytest.mark.parametrize("header", ["boost/process", "hwloc", "toml++"])
def test_the_second_file_that_includes_a_heavy_header_is_one_too_many(tmp_path, header):
    for name in ("a", "b"):
        write(tmp_path, f"launcher/{name}.cc", f"#include <{header}/v2.h>\n")
    status, found = check(tmp_path)
    assert status == 1
    assert found == (f"launcher/b.cc:1: includes <{header}…>; launcher/a.cc already does, and one file is enough\n")
