"""`python -m fedarena` is `bench`."""

import sys

from fedarena.cli import main

sys.exit(main())
