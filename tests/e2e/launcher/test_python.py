"""Which interpreter runs a .py, and what `python` means in its pipe commands."""

import os
import py_compile
import shutil
import subprocess
import sys
import zipapp

import pytest

from fleetrun_job import clean_environment, find_fleetrun, wait_until

SHOW = """
import subprocess, sys
print(sys.executable, sys.prefix)
for name in ("python", "python3"):
    print(subprocess.check_output([name, "-c", "import sys; print(sys.prefix)"], text=True).strip())
"""


@pytest.fixture
def environment_directory(tmp_path):
    path = tmp_path / "env"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(path)], check=True)
    return path


def test_the_active_virtual_environment_is_used(work, environment_directory):
    work.script("show.py", SHOW)
    job = work.run("show.py", environment=clean_environment(VIRTUAL_ENV=str(environment_directory)))
    assert job.status == 0, job.err
    prefix = str(environment_directory)
    assert job.out.splitlines() == [f"{prefix}/bin/python {prefix}", prefix, prefix]


def test_python_means_the_same_interpreter_where_there_is_no_python(work, environment_directory):
    """As on Debian: the directory of the interpreter has python3 and no python.
    It stays in its virtual environment."""
    (environment_directory / "bin" / "python").unlink()
    target = os.path.realpath(sys.executable)
    for name in ("python3", f"python{sys.version_info[0]}.{sys.version_info[1]}"):
        path = environment_directory / "bin" / name
        path.unlink(missing_ok=True)
        path.symlink_to(target)
    work.script("show.py", SHOW)
    interpreter = environment_directory / "bin" / "python3"
    job = work.run("--python", interpreter, "show.py")
    assert job.status == 0, job.err
    prefix = str(environment_directory)
    assert job.out.splitlines() == [f"{interpreter} {prefix}", prefix, prefix]
    assert sorted(p.name for p in (work.directory / "log").iterdir() if p.name.startswith(".")) == []


def test_the_private_python_is_gone_after_sigkill_too(work, tmp_path):
    directory = tmp_path / "bin"
    directory.mkdir()
    (directory / "python3").symlink_to(os.path.realpath(sys.executable))
    work.script("wait.py", "import time\nprint('up', flush=True)\ntime.sleep(100)\n")
    job = work.start("--python", directory / "python3", "wait.py")
    job.wait_for_log("workerlog.0", "up")
    assert [p for p in (work.directory / "log").iterdir() if p.name.startswith(".python-")]
    job.process.kill()
    job.finish()
    wait_until(lambda: not [p for p in (work.directory / "log").iterdir() if p.name.startswith(".")],
               "the removal")


def test_an_interpreter_beside_fleetrun_comes_before_the_one_on_path(work, tmp_path):
    prefix = tmp_path / "prefix"
    prefix.mkdir()
    binary = find_fleetrun()
    init = os.path.join(os.path.dirname(binary), "fleetrun-init")
    shutil.copy(binary, prefix / "fleetrun")
    shutil.copy(init, prefix / "fleetrun-init")
    (prefix / "python3").write_text('#!/bin/sh\necho beside "$@"\n')
    (prefix / "python3").chmod(0o755)
    work.script("x.py", "")
    done = subprocess.run([prefix / "fleetrun", "x.py", "a"], cwd=work.directory, env=clean_environment(),
                          capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "beside -u x.py a\n"), done.stderr


def test_beside_all_programs_the_one_on_path_is_meant(work, tmp_path):
    """As with a package of the distribution, and conda."""
    (tmp_path / "python3").write_text('#!/bin/sh\necho on PATH "$@"\n')
    (tmp_path / "python3").chmod(0o755)
    work.script("x.py", "")
    shown = subprocess.run(["unshare", "--mount", "--map-root-user", "sh", "-c", """
mount --bind "$1" /usr/local/bin && PATH=$2:$PATH exec /usr/local/bin/fleetrun x.py""", "sh",
                            os.path.dirname(find_fleetrun()), tmp_path], cwd=work.directory,
                           env=clean_environment(), capture_output=True, text=True)
    if "unshare failed" in shown.stderr or "mount" in shown.stderr:
        pytest.skip(shown.stderr)
    assert (shown.returncode, shown.stdout) == (0, "on PATH -u x.py\n"), shown.stderr


def test_a_program_installed_for_the_chosen_interpreter_comes_before_those_on_path(work, tmp_path):
    folders = [tmp_path / name for name in ("chosen", "path")]
    for folder in folders:
        folder.mkdir()
        for name in ("python3", "torchrun"):
            (folder / name).write_text(f'#!/bin/sh\necho {folder.name} "$@"\n')
            (folder / name).chmod(0o755)
    path = f"{folders[1]}:{os.environ['PATH']}"
    for python, found in ((folders[0] / "python3", "chosen"), ("python3", "path")):
        job = work.run("--python", python, "torchrun", "x.py", environment=clean_environment(PATH=path))
        assert (job.status, job.out) == (0, f"{found} x.py\n"), job.err
        assert f"each process runs {tmp_path / found / 'torchrun'}; fleetrun's own torchrun" in job.err
        assert f"PYTHON_EXEC={python} fleetrun torchrun" in job.err


def test_a_program_that_is_not_the_chosen_interpreters_is_named(work, tmp_path):
    for name in ("python3", "tool", "bin/tool"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("#!/bin/sh\n")
        path.chmod(0o755)

    def says(*words):
        path = f"{tmp_path}/bin:{os.environ['PATH']}"
        return "does not run" in work.run(*words, environment=clean_environment(PATH=path)).err

    assert not says("--python", tmp_path / "python3", "tool")  # it is beside that one
    assert not says("tool")
    (tmp_path / "tool").unlink()
    assert says("--python", tmp_path / "python3", "tool")
    for words in ([tmp_path / "bin/tool"], ["--no_python", "tool"]):
        assert not says("--python", tmp_path / "python3", *words)


def test_what_python_runs_by_its_name_is_run_in_python(work):
    (work.directory / "app").mkdir()
    work.script("app/__main__.py", "import sys\nprint(sys.argv[1])\n")
    zipapp.create_archive(work.directory / "app", work.directory / "app.pyz")
    py_compile.compile(work.directory / "app" / "__main__.py", cfile=work.directory / "app.pyc")
    for command in (["app.pyz"], ["app.pyc"], ["./app"], ["--run_path", "app"]):
        job = work.run(*command, "said")
        assert (job.status, job.out) == (0, "said\n"), job.err


def test_compat_puts_the_package_alias_first(work, python, tmp_path):
    package = tmp_path / "site" / "fleetrun" / "_compat" / "paddle"
    package.mkdir(parents=True)
    (package.parent.parent / "__init__.py").write_text("raise SystemExit('it is asked for, not imported')")
    (package / "__init__.py").write_text("name = 'ours'")
    work.script("train.py", "import os, paddle\nprint(paddle.name, os.environ['FLEETRUN_COMPAT'])\n")
    env = clean_environment(PYTHONPATH=str(tmp_path / "site"))
    job = work.run("--python", python, "--compat=paddle", "train.py", environment=env)
    assert (job.status, job.out) == (0, "ours paddle\n"), job.err
    alone = work.run("--python", python, "--compat=paddle", "train.py")
    assert alone.status == 125 and "--compat=paddle needs the Python package fleetrun" in alone.err
    assert "pip install" in alone.err


def test_a_file_or_folder_named_fleetrun_is_what_stands_in_the_way(work, python):
    work.script("train.py", "import paddle\n")
    own = work.script("fleetrun.py", "")
    job = work.run("--python", python, "--compat=paddle", "train.py")
    assert job.status == 125 and "fleetrun.py, which stands in its way" in job.err, job.err
    assert "rename it" in job.err
    os.unlink(own)
    work.script("train.py", "import fleetrun.fluid\n")
    (work.directory / "fleetrun").mkdir()
    (work.directory / "fleetrun" / "__init__.py").write_text("")
    job = work.run("--python", python, "train.py")
    assert "hint:" in job.err and "a file or folder named fleetrun beside the script" in job.err, job.err


def test_a_script_that_imports_paddle_without_one_is_told_the_flag(work, python):
    work.script("train.py", "import paddle\n")
    job = work.run("--python", python, "train.py")
    assert "hint: fleetrun --compat=paddle runs it without Paddle" in job.err, job.err
