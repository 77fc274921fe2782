"""The command line: parse, call, print. One file a group of commands; the work is done by Memory."""

from evokey.cli.app import main

__all__ = ["main"]
