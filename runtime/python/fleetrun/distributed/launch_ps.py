"""`python -m paddle.distributed.launch_ps` under the name that fleetrun gives it: fleetrun.launch_ps."""

import sys

from fleetrun.launch_ps import main

if __name__ == "__main__":
    sys.exit(main())
