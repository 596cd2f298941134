"""A new flag, operator or update rule is a row of one table, its reader and its test.

Three small patches on a copy of the sources; what they add is found in help, manual, completion, schema and
reference.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess

import pytest

from built_manual import BUILD, built

pytestmark = pytest.mark.skipif(not shutil.which("git"), reason="there is no git to list the sources")

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCES = ("cli", "launcher", "man", "ps", "runtime", "tests/unit")
PAGES = ("fleetrun.1", "fleetrun-environment.7", "fleetrun-operators.7", "fleetrun-tables.7")


def output_of(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, **options)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr
    return done.stdout


def copy(path, to):
    to.parent.mkdir(parents=True, exist_ok=True)
    shutil.copytree(path, to, symlinks=True) if path.is_dir() else shutil.copy2(path, to)


class Checkout:
    """A copy of sources and of what the targets are linked from; only what a patch changes is compiled."""

    def __init__(self, root):
        built("fleetrun.1")
        self.root, self.build = root, root / BUILD.name
        self.changed = set()
        files = output_of("git", "-c", "safe.directory=*", "ls-files", "-co", "--exclude-standard", cwd=ROOT)
        for name in files.split():
            if (ROOT / name).exists():
                copy(ROOT / name, root / name)
        self.targets = ["fleetrun", *(f"man/{page}" for page in PAGES)]
        inputs = output_of("ninja", "-C", BUILD, "-t", "inputs", *self.targets).split()
        kept = (".ninja_deps", ".ninja_log", "build.ninja", "meson-info", "meson-private")
        headers = [path.relative_to(BUILD).as_posix() for path in BUILD.rglob("*.h")]
        for name in {*kept, *self.targets, *inputs, *headers}:
            if not name.startswith(("/", "../")) and (BUILD / name).exists():
                copy(BUILD / name, self.build / name)

        rules = self.build / "build.ninja"  # programs of the build are called by their absolute paths
        rules.write_text(rules.read_text().replace(f"{ROOT}/", f"{root}/"))

    def edit(self, name, before, text):
        """Puts `text` before the one place with `before`, in the one file of this name that has it."""
        files = [path for folder in SOURCES for path in (self.root / folder).rglob(name)]
        path, = (path for path in files if path.read_text().count(before) == 1)
        old, times = path.read_text(), path.stat()
        path.write_text(old.replace(before, text + before))
        # Tests are not built here; a newer one would have all configured anew, from the real checkout.
        if name.endswith("_test.cc"):
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
        self.changed.add(path.relative_to(self.root).as_posix())

    def make(self):
        output = output_of("ninja", "-C", self.build, *self.targets)
        return re.findall(r"Compiling C\+\+ object (\S+)", output)

    def said(self, *arguments):
        return output_of(self.build / "fleetrun", *arguments)

    def page(self, name):
        text = (self.build / "man" / name).read_text()
        return re.sub(r"\\f[BIR]", "", text).replace("\\-", "-").replace("\\(ha", "^")

    def entry(self, page, head):
        return " ".join(self.page(page).partition(f".TP\n{head}\n")[2].partition("\n.")[0].split())


FLAG = '''  {"greeting", "salute", "FLEETRUN_GREETING", "hello", "WORD|hello|ahoy",
   Group::run, kOurs, Kind::value,
   "word that the job begins with", "It is for jobs that `somebody` looks at."},
'''
FLAG_READER = '''  if (values["greeting"].text == "hush") refuse(values["greeting"], "a greeting is to be heard");
'''
FLAG_TEST = '''TEST_CASE("a greeting is to be heard") {
  CHECK(refusal(options({{"greeting", "ahoy"}})) == "accepted");
  CHECK(refusal(options({{"greeting", "hush"}})) == "--greeting is 'hush': a greeting is to be heard");
}

'''
OPERATOR = '''      unary<Cube>("cube", "x to the third power", "unused = 7"),
      gradient_of<Cube>("cube_grad"),
'''
OPERATOR_FORMULA = '''struct Cube {
  template <class T>
  static T value(T x, Coefficients<T>) { return x * x * x; }
  template <class T>
  static T slope(T x, T, Coefficients<T>) { return T{3} * x * x; }
};
'''
RULE_ROW = '''    {UpdateRule::Kind::sign, "sign", "w -= lr * sign(g)", "nothing"},
'''
RULE_LOOP = '''    case sign:
      for (std::size_t i = 0; i < width; ++i) values[i] -= std::copysign(rule_.learning_rate, gradient(i));
      return;
'''
RULE_TEST = '''TEST_CASE("sign takes the learning rate, whatever the size of the gradient") {
  Row row(rule(UpdateRule::Kind::sign, 0.5f), 2);
  row.push({3.0f, -0.25f});
  CHECK(row.values == std::vector<float>{-0.5f, 0.5f});
  CHECK(row.state.empty());
}

'''


def patch_flag(checkout):
    checkout.edit("job_settings.cc", '  {"detach",', FLAG)
    checkout.edit("job_config_run.cc", '  if (values.given("python"))', FLAG_READER)
    checkout.edit("make_job_config_test.cc", 'TEST_CASE("every setting is in the table once', FLAG_TEST)


def patch_operator(checkout):
    checkout.edit("unary_operators.cc", '      unary<Sqrt>("sqrt"', OPERATOR)
    checkout.edit("unary_operators.cc", "struct Sqrt {", OPERATOR_FORMULA)


def patch_rule(checkout):
    checkout.edit("table_config.h", "  };\n  Kind kind = Kind::sgd;", "    sign,\n")
    checkout.edit("table_config.h", "};\n\ninline const UpdateRuleRow& row_of", RULE_ROW)
    checkout.edit("update_rule.cc", "    case sum:", RULE_LOOP)
    checkout.edit("update_rule_test.cc", 'TEST_CASE("sum adds the gradient")', RULE_TEST)


@pytest.fixture(scope="module")
def patched(tmp_path_factory):
    checkout = Checkout(tmp_path_factory.mktemp("checkout"))
    files = []
    for patch in (patch_flag, patch_operator, patch_rule):
        patch(checkout)
        files.append(checkout.changed)
        checkout.changed = set()
    checkout.files = files
    checkout.compiled = checkout.make()
    return checkout


def test_each_patch_is_of_three_files_at_most(patched):
    assert [len(files) for files in patched.files] == [3, 1, 3]


def test_little_is_compiled_again(patched):
    assert len(patched.compiled) <= 6, patched.compiled


def test_the_flag_is_in_the_help_and_is_read(patched):
    assert re.search(r"^  --greeting, --salute WORD\|hello\|ahoy$", patched.said("--help"), re.M)
    said = "word that the job begins with (variable FLEETRUN_GREETING, default hello)"
    assert said in " ".join(patched.said("--help").split())
    assert "env" in patched.said("--greeting=ahoy", "--dry_run", "/bin/true")
    refused = subprocess.run([patched.build / "fleetrun", "--salute=hush", "/bin/true"], capture_output=True,
                             text=True, timeout=30)
    assert refused.returncode == 125
    assert "--salute is 'hush': a greeting is to be heard" in refused.stderr


def test_the_flag_is_in_the_manual(patched):
    entry = patched.entry("fleetrun.1", "--greeting, --salute WORD|hello|ahoy")
    assert entry == ("Word that the job begins with. It is for jobs that somebody looks at. "
                     "Variable: FLEETRUN_GREETING. Default: hello.")
    assert patched.entry("fleetrun-environment.7", "FLEETRUN_GREETING") == "--greeting"


def test_the_flag_is_completed(patched):
    for shell in ("bash", "zsh"):
        script = patched.said(f"--completion={shell}")
        assert "--greeting" in script and "--salute" in script and "hello ahoy" in script
    assert "-l greeting -l salute" in patched.said("--completion=fish")


def test_the_flag_is_in_the_schema_of_job_files(patched):
    keys = json.loads(patched.said("--job_schema"))["properties"]
    assert keys["greeting"]["anyOf"][0] == {"enum": ["hello", "ahoy"]}
    assert keys["greeting"]["description"] == "word that the job begins with (default hello)"
    assert keys["salute"] == {"$ref": "#/properties/greeting"}


def test_the_operator_is_in_the_reference(patched):
    entry = patched.entry("fleetrun-operators.7", "cube (X) -> Out")
    assert entry == "x to the third power. Attribute: unused = 7."


def test_the_rule_is_in_the_reference(patched):
    assert patched.entry("fleetrun-tables.7", "sign") == "w -= lr * sign(g). State: nothing."
