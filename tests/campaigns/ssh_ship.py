"""Cases of ssh_table.py in which hosts have nothing but sshd: fleetrun and the script come by --ship."""

import os
import shutil

from fleetrun_job import find_fleetrun
from ssh_table import NOISE, case


def ships(wanted=None, **more):
    return case(wanted, flags="--ship --python=/usr/bin/python3", more=8, **more)


def empty(lab, shell, **files):
    """Accounts of that shell, where fleetrun is not."""
    lab.account(shell, **files)
    for host in (lab.h2, lab.h3):
        lab.hide(host, os.path.dirname(find_fleetrun()))
        (host.files / "job.py").unlink()


@ships()
def ship_to_bash_that_talks(lab):
    empty(lab, "/bin/bash", _bashrc=NOISE)


@ships()
def ship_to_csh(lab):
    empty(lab, "/bin/csh", _cshrc="echo hello from csh\nset noclobber\n")


@ships()
def ship_to_tcsh(lab):
    empty(lab, "/usr/bin/tcsh", _tcshrc="set noglob; set noclobber; echo hello\n")


@ships()
def ship_to_fish(lab):
    empty(lab, "/usr/bin/fish", _config__fish__config_fish="echo hello from fish\n")


@ships()
def ship_to_zsh(lab):
    empty(lab, "/usr/bin/zsh", _zshenv="setopt nounset noclobber shwordsplit nomatch\necho env\n")


@ships()
def ship_to_dash(lab):
    empty(lab, "/bin/dash", _profile=NOISE)


@ships()
def ship_to_mksh(lab):
    empty(lab, "/usr/bin/mksh", _mkshrc=NOISE)


@ships(wanted="restricted")
def ship_to_rbash(lab):
    empty(lab, "/bin/rbash")


@ships(wanted="room|written|Permission|ship_to")
def ship_to_a_home_that_takes_no_files(lab):
    empty(lab, "/bin/bash")
    os.chown(lab.rig.directory / "me", 0, 0)


@ships(wanted="room|written|exist|ship_to")
def ship_to_a_home_that_does_not_exist(lab):
    empty(lab, "/bin/bash")
    shutil.rmtree(lab.rig.directory / "me")


@ships(wanted="no such|nologin|not available|shell")
def ship_to_nologin(lab):
    empty(lab, "/usr/sbin/nologin")


@ships(wanted="shell|by hand")
def ship_to_a_bash_that_exits(lab):
    empty(lab, "/bin/bash", _bashrc="exit 0\n")
