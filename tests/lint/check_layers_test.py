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
    ("ps/rpc/server.cc",
     "#include <grpcpp/grpcpp.h>\n#include \"ps/server/server.h\"\n#include \"runtime/base/error.h\"\n"),
    ("cli/options.cc", "#include <CLI/CLI.hpp>\n#include \"launcher/plan/make_plan.h\"\n"),
    ("runtime/trainer/fleet.cc", "#include \"ps/client/client.h\"\n#include \"dataset/base/batch.h\"\n"),
    ("tests/unit/ps/table_test.cc", "#include <doctest/doctest.h>\n#include \"dataset/base/batch.h\"\n"),
    ("ps/table/arena.cc", "if (!chunk) throw std::bad_alloc();\n"),
    ("launcher/host/facts.cc", "#include <sys/socket.h>\n#include <unistd.h>\n#include <vector>\n"),
])
def test_what_the_graph_draws_is_accepted(tmp_path, path, text):
    write(tmp_path, path, text)
    assert check(tmp_path)[0] == 0


@pytest.mark.parametrize("path, text, finding", [
    ("ps/table/row.cc", "#include \"dataset/base/batch.h\"\n",
     'ps/table/row.cc:1: includes "dataset/base/batch.h": ps/table may not look into dataset/base'),
    ("launcher/plan/plan.h", "\n#include \"cli/options.h\"\n",
     'launcher/plan/plan.h:2: includes "cli/options.h": launcher/plan may not look into cli'),
    ("runtime/engine/op.cc", "#include \"runtime/trainer/table_plan.h\"\n",
     "runtime/engine may not look into runtime/trainer"),
    ("dataset/pipes/pipe.cc", "#include \"tests/support/temp_dir.h\"\n", "nothing may look into tests/"),
    ("launcher/plan/plan.cc", "#include <grpcpp/grpcpp.h>\n",
     "launcher/plan/plan.cc:1: includes <grpcpp/grpcpp.h>, which belongs to ps/rpc"),
    ("ps/table/row.cc", "#include <grpcpp/grpcpp.h>\n",
     "ps/table/row.cc:1: includes <grpcpp/grpcpp.h>, which belongs to ps/rpc"),
    ("ps/rpc/service.h", "#include <grpcpp/grpcpp.h>\n", "includes <grpcpp/grpcpp.h> from a header"),
    ("cli/main.cc", "#include <fmt/format.h>\n", "<fmt/format.h>, which has no owner"),
    ("launcher/plan/plan.cc", "auto x = getenv(\"HOME\");\n", "touches the environment"),
    ("launcher/plan/plan.cc", "throw std::runtime_error(\"no\");\n",
     "throws something that is not fleetrun::Error"),
    ("dataset/text/slot.h", "\n" * 251, "dataset/text/slot.h:251: 251 lines; one subject each, at most 250"),
    ("dataset/text/slot.cc", "\n" * 601, "at most 600"),
    ("ps/row.cc", "int x;\n", "ps/row.cc:1: lies in ps, which has no row in docs/rooms"),
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
        write(tmp_path, f"launcher/host/{name}.cc", f"#include <{header}/v2.h>\n")
    status, found = check(tmp_path)
    assert status == 1
    assert found == (f"launcher/host/b.cc:1: includes <{header}…>; "
                     "launcher/host/a.cc already does, and one file is enough\n")
