"""A wheel of fleetrun for one Python, for scripts/package."""
import os
import shutil
import sys
import tempfile
import zipfile
from pathlib import Path

from package_parts import (
    PROJECT,
    ROOT,
    Refusal,
    build,
    install,
    licences_within,
    programs,
    run,
    say,
    tag_of,
)

TAGS = "runtime,tools,python-runtime,man,completion,schema"  # what scripts/build installs, too
PLATFORM = "manylinux_2_35_x86_64"
MAX_BYTES = 40 << 20


def lay_out(installed, wheel, name):
    """Puts what was installed where a wheel wants it: the package on top, all else below NAME.data."""
    package = next(installed.rglob("fleetrun/__init__.py")).parent
    shutil.move(package, wheel / "fleetrun")
    shutil.move(installed / "bin", wheel / f"{name}.data/scripts")
    shutil.move(installed / "share", wheel / f"{name}.data/data/share")
    run("strip", "--strip-unneeded", *programs(wheel))


def copyrights(wheel):
    """{Debian's package: what it says of its copyright} of every library that these programs load."""
    words = [word for path in programs(wheel) for word in run("ldd", path, check=False).split()]
    libraries = {os.path.realpath(after) for word, after in zip(words, words[1:]) if word == "=>"}
    # Debian's packages name /lib what lies in /usr/lib: the last two parts of a path are the same in both.
    owners = {run("dpkg", "-S", "*/" + "/".join(library.split("/")[-2:])).split(":")[0]
              for library in libraries if os.path.exists(library)}
    return {owner: Path(f"/usr/share/doc/{owner}/copyright") for owner in sorted(owners)}


def describe(wheel, name, tag, folder):
    """Writes NAME.dist-info of what `folder` built. Its list of files is `wheel pack`'s."""
    from pyproject_metadata import StandardMetadata

    metadata = StandardMetadata.from_pyproject({"project": {**PROJECT, "readme": "README.md"}}, ROOT)
    papers = wheel / f"{name}.dist-info"
    papers.mkdir()
    (papers / "METADATA").write_text(str(metadata.as_rfc822()))
    (papers / "WHEEL").write_text("Wheel-Version: 1.0\nGenerator: fleetrun\nRoot-Is-Purelib: false\n"
                                  f"Tag: {tag}-linux_x86_64\n")
    (papers / "entry_points.txt").write_text("\n".join(
        line for group, entries in metadata.entrypoints.items()
        for line in (f"[{group}]", *(f"{entry} = {where}" for entry, where in entries.items()), "")))
    licenses = papers / "licenses"
    licenses.mkdir()
    shutil.copy(ROOT / "LICENSE", licenses)
    shutil.copy(ROOT / "launcher/ui/uplot/LICENSE", licenses / "uPlot.LICENSE")
    for file, text in licences_within(folder).items():
        (licenses / file).write_text(text)
    for owner, text in copyrights(wheel).items():
        shutil.copy(text, licenses / f"{owner}.copyright")


def package_wheel(python, to):
    tag = tag_of(python)
    name = f"fleetrun-{PROJECT['version']}"
    say(f"compiling for {tag}" + " (Python 3.12 and later)" * tag.endswith("-abi3"))
    folder = build(python, tag)
    with tempfile.TemporaryDirectory() as scratch:
        stage, wheel, packed = (Path(scratch) / part for part in ("stage", "wheel", "packed"))
        wheel.mkdir()
        packed.mkdir()
        (wheel / f"{name}.data/data").mkdir(parents=True)
        lay_out(install(folder, stage, TAGS), wheel, name)
        describe(wheel, name, tag, folder)
        run(sys.executable, "-m", "wheel", "pack", wheel, "--dest-dir", packed)
        say("putting the libraries in that a system may lack")
        run(sys.executable, "-m", "auditwheel", "repair", "--plat", PLATFORM, "--only-plat", "--wheel-dir",
            to, next(packed.iterdir()))
    made = to / f"{name}-{tag}-{PLATFORM}.whl"
    size = made.stat().st_size
    if size >= MAX_BYTES:
        made.unlink()
        raise Refusal(f"{made.name} would have {size >> 20} MB, and may have less than {MAX_BYTES >> 20}")
    with zipfile.ZipFile(made) as archive:
        say(f"{made}: {size / 2**20:.1f} MB, {len(archive.namelist())} files")
