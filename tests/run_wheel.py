"""Install a wheel into an empty environment and run the README's example there. Called by `make package`."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"


def main(wheel: Path) -> None:
    example = re.search(r"```python\n(import evokey\n.*?)```", README.read_text("utf-8"), re.DOTALL)
    assert example is not None
    expected = re.findall(r"print\(.*#\s*(\S+)", example[1])
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = Path(folder) / "bin" / "python"
        subprocess.run([python, "-m", "pip", "install", "--quiet", wheel.resolve()], check=True)
        found = subprocess.run([python, "-c", example[1]], cwd=folder, check=True, capture_output=True, text=True)
    assert found.stdout.split() == expected, found.stdout
    sys.stdout.write(f"{wheel.name}: the README example printed {', '.join(expected)}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
