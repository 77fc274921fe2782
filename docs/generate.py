"""Write docs/cli.md from the command line itself; --check fails if the page is not what the program says."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from evokey.cli.app import app

PAGE = Path(__file__).parent / "cli.md"
HEAD = """# The command line

Every command takes `--at DIR` (default `./.evokey`, or the environment variable `EVOKEY_AT`) and `--json`.
Exit codes: 0 done, 1 failed, 2 wrong use. Completion for your shell: `evokey --install-completion`.
"""


def commands(group: Any, before: str = "") -> Iterator[tuple[str, Any]]:
    """All commands by their whole names, those of groups too."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, f"{before}{name} ")
        else:
            yield f"{before}{name}", command


def page() -> str:
    parts = [HEAD]
    for name, command in commands(typer.main.get_command(app)):
        context = typer.Context(command, info_name=f"evokey {name}")
        shown = [one for one in command.get_params(context) if one.name != "help"]
        words = [one.name if one.required else f"[{one.name}]" for one in shown if not one.opts[0].startswith("-")]
        usage = " ".join(["evokey", name, *words, "[OPTIONS]"])
        parts.append(f"## evokey {name}\n\n{(command.help or '').strip()}\n\n```text\n{usage}\n```\n")
        parts.append("| | |\n|---|---|")
        parts += [f"| `{', '.join(one.opts)}` | {getattr(one, 'help', '') or ''} |" for one in shown]
        parts.append("")
    return "\n".join(parts)


def main() -> None:
    if "--check" in sys.argv:
        sys.exit(PAGE.read_text("utf-8") != page())
    PAGE.write_text(page(), "utf-8")


if __name__ == "__main__":
    main()
