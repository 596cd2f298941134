"""`python -m fleetrun`: the same as `python -m fleetrun.launch`."""

import sys

from fleetrun.launch import main

sys.exit(main())
