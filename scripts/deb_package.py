"""Debian packages of fleetrun for the system that they are made on, for scripts/package."""
import gzip
import hashlib
import os
import shutil
import subprocess
import tempfile
from email.utils import formatdate
from pathlib import Path

from package_parts import PREFIX, PROJECT, ROOT, Refusal, build, install, licences_within, programs, run, say

VERSION = PROJECT["version"]
MAINTAINER = "fleetrun maintainers <maintainers@fleetrun.invalid>"
TAGS = "runtime,tools,python-runtime,man,completion,schema,devel"
# {package: (what it holds of the tree, its fields, what it is, its findings of lintian that are meant)}
PACKAGES = {
    "fleetrun": (
        ("usr/bin", "usr/share"),
        {"Section": "science", "Depends": "{libraries}",
         "Recommends": "python3-fleetrun, openssh-client, libssl3 | libssl3t64, libhwloc15"},
        "launcher and job orchestrator for distributed training",
        # fleetrun alone runs them, also where it copies them to and where no library may be.
        tuple(f"{finding} [usr/bin/{program}]" for program in ("fleetrun-init", "fleetrun-log")
              for finding in ("statically-linked-binary", "shared-library-lacks-prerequisites",
                              "no-manual-page")),
    ),
    "python3-fleetrun": (
        ("usr/lib/python3",),
        {"Section": "python",
         "Depends": "{libraries}, python3 (>= 3.11), python3 (<< 3.12), python3-numpy, "
                    f"fleetrun (= {VERSION})",
         "Recommends": "python3-six, python3-decorator, python3-pil"},
        "parameter servers, collectives and data sets for training, in Python", (),
    ),
    "libfleetrun-dev": (
        ("usr/include", "usr/lib"),
        {"Section": "libdevel", "Depends": "libgrpc++-dev, libspdlog-dev, zlib1g-dev"},
        "trainers and parameter servers of fleetrun, in C++20", (),
    ),
}
DESCRIPTION = """ fleetrun starts, watches and ends the processes of a training job, on one host
 or many, and trains sparse models on CPU clusters with a parameter server.
"""
# Debian's Python compiles what is installed, and removes what it compiled.
SCRIPTS = {
    script: f"#!/bin/sh\nset -e\nif command -v {tool} >/dev/null; then {tool} -p python3-fleetrun; fi\n"
    for script, tool in (("postinst", "py3compile"), ("prerm", "py3clean"))
}
COPYRIGHT = """Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: fleetrun

Files: *
Copyright: 2026 The authors of fleetrun
License: Apache-2.0
 On Debian systems, the full text is in /usr/share/common-licenses/Apache-2.0.

Files: launcher/ui/uplot/*
Copyright: 2022 Leon Sorokin
License: Expat
"""
# In the terms of the sources' copyright: what else is in the binaries of this folder.
COPYRIGHT_OF_BINDINGS = """
Files: runtime/python/*
Comment: compiled with nanobind, and robin-map in it, which come from PyPI
Copyright: 2026 The authors of fleetrun, 2022 Wenzel Jakob, 2017 Thibaut Goetghebuer-Planchon
License: Apache-2.0 and BSD-3-clause and Expat

License: BSD-3-clause
"""
EXPAT = ROOT / "launcher/ui/uplot/LICENSE"


def copyright_text(folder):
    """As Debian wants it: lines of a licence begin with a blank, and empty ones are a full stop."""
    def shown(text):
        return "".join(f" {line or '.'}\n" for line in text.split("\n\n", 1)[1].splitlines())

    expat, nanobind = EXPAT.read_text(encoding="utf-8"), licences_within(folder)["nanobind.LICENSE"]
    return COPYRIGHT + shown(expat.split("\n\n", 1)[1]) + COPYRIGHT_OF_BINDINGS + shown(nanobind)


def packed(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(text, 9, mtime=0))


def lay_out(installed, usr):
    """Everything that was installed, where Debian wants it."""
    (package,) = installed.glob("lib/python3*/site-packages/fleetrun")
    shutil.copytree(package, usr / "lib/python3/dist-packages/fleetrun")
    shutil.rmtree(package.parents[1])
    shutil.copytree(installed, usr, dirs_exist_ok=True)
    for page in [*usr.glob("share/man/man?/*"), *usr.glob("share/man/*/man?/*")]:
        packed(page.with_name(page.name + ".gz"), page.read_bytes())
        page.unlink()
    machine = usr / "lib/x86_64-linux-gnu"
    machine.mkdir()
    shutil.move(usr / "lib/pkgconfig", machine)
    for described in machine.glob("pkgconfig/*.pc"):
        described.write_text(described.read_text().replace(f"prefix={PREFIX}", "prefix=/usr"))
    run("strip", "--strip-unneeded", "--remove-section=.comment", "--remove-section=.note", *programs(usr))
    run("strip", "--strip-debug", *usr.glob("lib/*.a"))


def libraries(tree, scratch):
    """The packages of the libraries that programs below `tree` need, for Depends."""
    found = programs(tree)
    if not found:
        return ""
    (scratch / "debian").mkdir(exist_ok=True)
    (scratch / "debian/control").write_text("Source: fleetrun\n")
    told = subprocess.run(["dpkg-shlibdeps", "-O", "--ignore-missing-info", *found], cwd=scratch, text=True,
                          capture_output=True, check=True).stdout
    return told.strip().removeprefix("shlibs:Depends=")


def describe(tree, name, fields, what, meant, scratch, folder):
    """Writes the papers of the package whose files lie in `tree`."""
    doc = tree / f"usr/share/doc/{name}"
    changed = formatdate(int(os.environ["SOURCE_DATE_EPOCH"]))
    entry = f"fleetrun ({VERSION}) unstable; urgency=medium\n\n  * See NEWS.\n\n -- {MAINTAINER}  {changed}\n"
    packed(doc / "changelog.gz", entry.encode())
    packed(doc / "NEWS.gz", (ROOT / "NEWS.md").read_bytes())
    (doc / "copyright").write_text(copyright_text(folder))
    if meant:
        overrides = tree / f"usr/share/lintian/overrides/{name}"
        overrides.parent.mkdir(parents=True)
        overrides.write_text("".join(f"{name}: {finding}\n" for finding in meant))
    files = sorted(path for path in tree.rglob("*") if path.is_file())
    size = sum(path.stat().st_size for path in files) >> 10
    depends = fields["Depends"].format(libraries=libraries(tree, scratch))
    head = {"Package": name, "Source": "fleetrun", "Version": VERSION, "Architecture": "amd64",
            "Maintainer": MAINTAINER, "Installed-Size": size, "Priority": "optional", **fields,
            "Depends": depends}
    papers = tree / "DEBIAN"
    papers.mkdir()
    (papers / "control").write_text("".join(f"{field}: {value}\n" for field, value in head.items())
                                    + f"Description: {what}\n{DESCRIPTION}")
    for script, text in SCRIPTS.items() if (tree / "usr/lib/python3").exists() else ():
        (papers / script).write_text(text)
    (papers / "md5sums").write_text("".join(
        f"{hashlib.md5(path.read_bytes()).hexdigest()}  {path.relative_to(tree)}\n" for path in files))


def package_debs(to, quick=False):
    if not shutil.which("dpkg-shlibdeps"):
        raise Refusal("dpkg-shlibdeps is missing, which finds what packages depend on: install dpkg-dev")
    say("compiling")
    folder = build("/usr/bin/python3", "cp3")
    with tempfile.TemporaryDirectory() as name_of_scratch:
        scratch = Path(name_of_scratch)
        whole = scratch / "whole"
        run("ninja", "-C", folder, "ps/libfleetrun_ps.a")
        lay_out(install(folder, scratch / "stage", TAGS), whole / "usr")
        for name, (parts, fields, what, meant) in PACKAGES.items():
            tree = scratch / name
            for part in parts:
                shutil.copytree(whole / part, tree / part, ignore=lambda _, names: {"python3"} & set(names))
            describe(tree, name, fields, what, meant, scratch, folder)
            for path in tree.rglob("*"):
                runs = path.is_dir() or "usr/bin/" in str(path) or path.name in SCRIPTS
                path.chmod(0o755 if runs else 0o644)
            run("dpkg-deb", "--root-owner-group", f"-z{1 if quick else 6}", "--build", tree, to)
            say(f"{to / name}_{VERSION}_amd64.deb")
