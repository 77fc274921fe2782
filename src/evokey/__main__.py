"""python -m evokey: the command line."""

from evokey.cli import main

if __name__ == "__main__":
    main()
