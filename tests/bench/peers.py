#!/usr/bin/env python3
"""usage: scripts/bench setup-peers [--check] [paddle26] [paddle33] [torch] [export]

Makes the environments of the programs that fleetrun is measured against or gives things to
(all of them, or the ones that are named):

  paddle26  Paddle 2.6.2, whose parameter server works   $FLEETRUN_PEERS, or .cache/peers
  paddle33  Paddle 3.3.1, the newest                      $FLEETRUN_PEERS_PADDLE3, or .cache/peers-paddle331
  torch     PyTorch with torchrun                         $FLEETRUN_PEERS_TORCH, or .cache/peers-torch
  export    TensorBoard and OpenTelemetry                 $FLEETRUN_PEERS_EXPORT, or .cache/peers-export

Open MPI's mpirun comes from Debian (apt-get install openmpi-bin); its absence is said, and nothing is
  installed for it.
  --check   only says what is there; exits 1 when something is missing
"""

import os
import pathlib
import shutil
import subprocess
import sys

CACHE = pathlib.Path(__file__).resolve().parents[2] / ".cache"
# name: (variable, folder, a program that proves it, packages)
PEERS = {
    "paddle26": ("FLEETRUN_PEERS", "peers", "fleetrun",
                 ["paddlepaddle==2.6.2", "numpy<2", "protobuf==4.25.8", "setuptools<80", "decorator==5.1.1"]),
    "paddle33": ("FLEETRUN_PEERS_PADDLE3", "peers-paddle331", "fleetrun",
                 ["paddlepaddle==3.3.1", "setuptools"]),
    "torch": ("FLEETRUN_PEERS_TORCH", "peers-torch", "torchrun", ["torch", "numpy"]),
    "export": ("FLEETRUN_PEERS_EXPORT", "peers-export", "tensorboard",
               ["tensorboard", "opentelemetry-exporter-otlp-proto-http"]),
}


def folder_of(name):
    variable, folder, _, _ = PEERS[name]
    return os.environ.get(variable, str(CACHE / folder))


def is_there(name):
    return os.path.exists(os.path.join(folder_of(name), "bin", PEERS[name][2]))


def make(name):
    """The folder of this peer, made where it was missing."""
    folder = folder_of(name)
    if is_there(name):
        return folder
    print(f"{name}: installing {' '.join(PEERS[name][3])} into {folder}", flush=True)
    if not os.path.exists(os.path.join(folder, "bin", "python")):
        subprocess.run(["/usr/bin/python3", "-m", "venv", folder], check=True)
    subprocess.run([os.path.join(folder, "bin", "pip"), "install", "--quiet", *PEERS[name][3]], check=True)
    return folder


def main():
    arguments = sys.argv[1:]
    if "--help" in arguments or "-h" in arguments:
        print(__doc__)
        return 0
    check = "--check" in arguments
    names = [argument for argument in arguments if argument != "--check"] or list(PEERS)
    unknown = [name for name in names if name not in PEERS]
    if unknown:
        sys.exit(f"bench: error: there is no peer {unknown[0]}\n  hint: there are {', '.join(PEERS)}")
    missing = 0
    for name in names:
        if not check:
            make(name)
        missing += not is_there(name)
        print(f"{name}: {folder_of(name) if is_there(name) else 'missing'}")
    mpirun = shutil.which("mpirun")
    print(f"mpirun: {mpirun or 'missing; apt-get install openmpi-bin'}")
    return 1 if missing or (check and not mpirun) else 0


if __name__ == "__main__":
    sys.exit(main())
