"""The command `mfhpo`, or what it lacks: its parts need the packages of the extra "cli"."""

import sys

from mfhpo._validation.missing import missing


def main() -> None:
    """Run the command, or say in one line what it lacks."""
    try:
        from mfhpo_optuna.command_line import app
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("mfhpo"):
            raise
        sys.exit(missing("mfhpo", error.name, "cli"))
    app(prog_name="mfhpo")


if __name__ == "__main__":
    main()
