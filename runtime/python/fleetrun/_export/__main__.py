"""What `fleetrun export` runs: as a file, so that no module of the current folder stands in the way."""

import os
import sys

_HERE = os.path.dirname(os.path.realpath(__file__))
if sys.path and os.path.realpath(sys.path[0] or os.curdir) in (_HERE, os.path.realpath(os.curdir)):
    del sys.path[0]
sys.path.append(os.path.dirname(os.path.dirname(_HERE)))

from fleetrun._export.command import main  # noqa: E402

sys.exit(main(sys.argv[1:]))
