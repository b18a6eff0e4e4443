"""What to install where a package is missing: its own packages, as no index need have ours."""

from importlib.metadata import PackageNotFoundError, requires


def missing(caller: str, package: str, extra: str) -> str:
    """Return an ImportError's message: who needs which package, and what installs `extra`."""
    try:
        wanted = [line.partition(";") for line in requires("mfhpo") or ()]
    except PackageNotFoundError:  # run from a checkout that is not installed
        wanted = []
    mark = f"extra == {extra!r}"
    named = [name.strip() for name, _, when in wanted if when.strip() == mark] or [package.lower()]
    packages = " ".join(f'"{name}"' for name in named)
    return f"{caller} needs {package}, which is not installed; pip install {packages}"
