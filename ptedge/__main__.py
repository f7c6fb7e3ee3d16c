"""``python -m ptedge``: the same as the ``ptedge`` command."""

from ptedge.cli import main

if __name__ == "__main__":
    main()
