"""Some files of a git repository at one commit, and nothing else of it."""

import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

_UNREACHABLE = re.compile(r"unable to access '[^']*': (.*)")


def check_out(repository: str, commit: str, files: Sequence[str], folder: Path) -> None:
    """Fetch files of a commit, without the repository's history and its other files.

    The commit's name is a hash of all that it holds, and git checks it.

    Parameters
    ----------
    repository
        What git fetches from: a URL or a folder.
    commit
        Its full hexadecimal name.
    files
        Paths in the repository.
    folder
        An empty folder that they are written to, at the same paths.

    Raises
    ------
    OSError
        If git is not installed, the repository cannot be reached, or lacks the commit or a file.
        The message is one line.
    """

    def git(*arguments: str) -> None:
        try:
            subprocess.run(
                ["git", *arguments],
                cwd=folder,
                env={**os.environ, "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"},
                capture_output=True,
                text=True,
                check=True,
            )
        except FileNotFoundError:
            raise OSError("git is not installed") from None
        except subprocess.CalledProcessError as error:
            *_, said = error.stderr.strip().splitlines() or [f"git {arguments[0]} failed"]
            if reason := _UNREACHABLE.search(said):  # the same for all repositories of a host
                raise OSError(reason[1]) from None
            raise OSError(f"{repository}: {said}") from None

    git("init", "--quiet")
    git("remote", "add", "origin", repository)
    git("sparse-checkout", "set", "--no-cone", *(f"/{file}" for file in files))
    git("fetch", "--quiet", "--depth=1", "--filter=blob:none", "origin", commit)
    git("checkout", "--quiet", "--detach", commit)
    if missing := [file for file in files if not (folder / file).is_file()]:
        raise OSError(f"{repository} has no {', '.join(missing)} at {commit[:12]}")
