"""An OCI image of fleetrun on the Debian that it is made on, for scripts/package."""
import gzip
import hashlib
import json
import os
import platform
import shutil
import tarfile
import tempfile
from datetime import datetime, timezone
from pathlib import Path

from deb_package import VERSION, package_debs
from package_parts import PROJECT, Refusal, run, say

# fleetrun k8s names it, too. Nothing is published: a name without a registry would be asked of somebody's.
NAME = f"localhost/fleetrun:{VERSION}"
USER = 1000  # as a number, which is how Kubernetes sees that it is not root's; fleetrun k8s runs pods as it
WORK = "/work"
CONFIG = {
    "User": f"{USER}:{USER}",
    "Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8"],
    # Process 1 collects what is orphaned and passes signals on; the command is any, also a shell.
    "Entrypoint": ["fleetrun-init", "--"],
    "Cmd": ["fleetrun", "--help"],
    "WorkingDir": WORK,
    "Labels": {"org.opencontainers.image.title": "fleetrun", "org.opencontainers.image.version": VERSION,
               "org.opencontainers.image.description": PROJECT["description"],
               "org.opencontainers.image.licenses": "Apache-2.0"},
}
MAX_BYTES = 150 << 20
# What fleetrun only recommends, as far as it is of use in a container (libssl comes with Python). Of the two
# packages that say that /bin is in /usr, the one that needs no Perl.
ALSO = ("libhwloc15", "usr-is-merged")
LEFT_OUT = ("doc", "info", "lintian", "locale", "man")
HOOKS = "/usr/share/mmdebstrap/hooks"


def make_system(debs, to):
    """A tar with Debian's packages and these; mmdebstrap sorts it and sets its times."""
    run("mmdebstrap", "--quiet", "--variant=apt", "--format=tar", "--skip=output/dev",
        f"--hook-dir={HOOKS}/merged-usr", f"--hook-dir={HOOKS}/file-mirror-automount",
        *(f"--dpkgopt=path-exclude=/usr/share/{folder}/*" for folder in LEFT_OUT),
        "--dpkgopt=path-include=/usr/share/doc/*/copyright",
        *(f"--include={deb}" for deb in debs), f"--include={','.join(ALSO)}",
        f'--customize-hook=chroot "$1" useradd --uid {USER} --create-home --shell /bin/bash fleetrun',
        f'--customize-hook=install -d -o {USER} -g {USER} "$1{WORK}"',
        # What is this machine's, of which containers are given their own, and what nobody reads.
        '--customize-hook=cd "$1" && rm etc/hostname etc/resolv.conf',
        '--customize-hook=cd "$1" && rm -f var/cache/debconf/*-old var/lib/dpkg/*-old',
        platform.freedesktop_os_release()["VERSION_CODENAME"], to)


def write_blob(folder, data, kind):
    """Its descriptor."""
    digest = hashlib.sha256(data).hexdigest()
    (folder / digest).write_bytes(data)
    return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": f"sha256:{digest}", "size": len(data)}


def write_json(folder, kind, **values):
    return write_blob(folder, json.dumps(values, sort_keys=True).encode(), f"{kind}+json")


def plain(member):
    """As everybody's tar would have it."""
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mode = 0o755 if member.isdir() else 0o644
    member.mtime = int(os.environ["SOURCE_DATE_EPOCH"])
    return member


def pack_image(system, scratch, made):
    """Writes an image of one layer, the bytes of the tar `system`, as an OCI layout in a tar."""
    created = datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), timezone.utc).isoformat()
    layout = scratch / "layout"
    blobs = layout / "blobs/sha256"
    blobs.mkdir(parents=True)
    layer = write_blob(blobs, gzip.compress(system, 6, mtime=0), "layer.v1.tar+gzip")
    config = write_json(
        blobs, "config.v1", created=created, architecture="amd64", os="linux", config=CONFIG,
        rootfs={"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(system).hexdigest()}"]},
        history=[{"created": created, "created_by": "scripts/package image"}])
    manifest = write_json(blobs, "manifest.v1", schemaVersion=2, config=config, layers=[layer],
                          mediaType="application/vnd.oci.image.manifest.v1+json")
    # The second is what containerd reads.
    names = {"org.opencontainers.image.ref.name": NAME, "io.containerd.image.name": NAME}
    index = {"schemaVersion": 2, "manifests": [{**manifest, "annotations": names}]}
    (layout / "index.json").write_text(json.dumps(index))
    (layout / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
    with tarfile.open(made, "w", format=tarfile.USTAR_FORMAT) as archive:
        for path in sorted(layout.rglob("*")):
            archive.add(path, path.relative_to(layout), recursive=False, filter=plain)


def package_image(to):
    if not shutil.which("mmdebstrap"):
        raise Refusal("mmdebstrap is missing, which makes the image's system: install mmdebstrap")
    made = to / f"fleetrun-{VERSION}-image.tar"
    with tempfile.TemporaryDirectory() as name_of_scratch:
        scratch = Path(name_of_scratch)
        scratch.chmod(0o755)  # mmdebstrap reads the packages as another user
        package_debs(scratch)
        say("installing them into a Debian of their own")
        system = scratch / "system.tar"
        make_system([scratch / f"{name}_{VERSION}_amd64.deb" for name in ("fleetrun", "python3-fleetrun")],
                    system)
        unpacked = system.stat().st_size
        pack_image(system.read_bytes(), scratch, made)
    size = made.stat().st_size
    if size >= MAX_BYTES:
        made.unlink()
        raise Refusal(f"{made.name} would have {size >> 20} MB, and may have less than {MAX_BYTES >> 20}")
    say(f"{made}: {NAME}, {size / 2**20:.1f} MB, {unpacked / 2**20:.0f} MB unpacked")
