"""`python -m paddle.distributed.fleet.launch` under the name that fleetrun gives it: fleetrun.launch."""

import sys

from fleetrun.launch import main

if __name__ == "__main__":
    sys.exit(main())
