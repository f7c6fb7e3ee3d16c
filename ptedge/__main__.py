"""The entry of ``ptedge`` and of ``python -m ptedge``: signals first, before anything else takes time to load."""

from ptedge.signals import watch


def main() -> None:
    """Run the command line."""
    watch()
    from ptedge.cli import main as commands

    commands()


if __name__ == "__main__":
    main()
