"""Make the packages of this environment visible in another one: `python integrations/below.py OTHER`."""

import sys
import sysconfig
from pathlib import Path

own = sysconfig.get_path("purelib")
other = sysconfig.get_path("purelib", vars={"base": sys.argv[1], "platbase": sys.argv[1]})
Path(other, "below.pth").write_text(f"import site; site.addsitedir({own!r})\n", "utf-8")
