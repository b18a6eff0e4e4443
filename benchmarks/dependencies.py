"""Which modules of ours a program runs, and a hash of what they do.

A result is of the present algorithms as long as this hash is the one that it was measured with.
Comments, docstrings and blank lines do not count; neither do benchmarks themselves, which are
followed to find what they measure.
"""

import ast
import hashlib
import io
import re
import tokenize
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
_PRODUCT = re.compile(r"(mfhpo|integrations)/")
_STATEMENT = re.compile(r"(import|from) \w")


def code_of(*programs: str, root: Path = ROOT) -> str:
    """Hash of the product's modules that programs run.

    Parameters
    ----------
    programs
        Names of modules, as after ``python -m``, or paths of files below the root.
    root
        Folder of the project.

    Returns
    -------
    str
        Twelve hexadecimal digits, the same under every version of Python.

    Examples
    --------
    >>> len(code_of("benchmarks.papers.iise"))
    12
    """
    contents = hashlib.sha256()
    for file in modules_of(*programs, root=root):
        contents.update(f"{file}\n{_what_counts(root / file)}\n".encode())
    return contents.hexdigest()[:12]


def modules_of(*programs: str, root: Path = ROOT) -> list[str]:
    """The product's modules that programs run, as paths below the root.

    Imports are followed by name: ``from mfhpo import MFLUCB`` leads to the module that defines
    MFLUCB, and to no other that the package offers. A string that names a module, or holds an
    import, counts as an import, as for programs that start others. Imports for type checkers do
    not.

    Examples
    --------
    >>> "mfhpo/identification/elimination.py" in modules_of("benchmarks.papers.iise")
    True
    >>> modules_of("benchmarks.size")
    []
    """
    found: set[Path] = set()
    waiting = [
        root / name if "/" in name else _program(name, root) for name in dict.fromkeys(programs)
    ]
    while waiting:
        file = waiting.pop()
        if file not in found:
            found.add(file)
            waiting += _imported(file, root)
    paths = sorted(file.relative_to(root).as_posix() for file in found)
    return [path for path in paths if _PRODUCT.match(path)]


def _program(name: str, root: Path) -> Path:
    file = _file_of(name, root)
    if file is None or file.name == "__init__.py":  # a folder may have no __init__.py
        file = root.joinpath(*name.split("."), "__main__.py")
    if not file.is_file():
        raise ValueError(f"programs: no program of ours is named {name!r}.")
    return file


@cache
def _file_of(name: str, root: Path) -> Path | None:
    """File of a module of ours, None of another one."""
    for folder in (root, root / "integrations"):
        place = folder.joinpath(*name.split("."))
        for file in (place.with_suffix(".py"), place / "__init__.py"):
            if file.is_file():
                return file
    return None


@cache
def _parsed(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


@cache
def _imported(file: Path, root: Path) -> tuple[Path, ...]:
    tree = _parsed(file)
    return tuple(_follow(tree, tree, root))


def _follow(node: ast.AST, tree: ast.Module, root: Path) -> Iterator[Path]:
    """Files that what is below a node leads to; the tree is that of its module."""
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
        return
    if isinstance(node, ast.ImportFrom) and node.module:
        for alias in node.names:
            yield from _defining(node.module, alias.name, root)
    elif isinstance(node, ast.Import):
        for alias in node.names:
            yield from _used(alias, tree, root)
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield from _named(node.value, root)
    for child in ast.iter_child_nodes(node):
        yield from _follow(child, tree, root)


def _defining(module: str, name: str, root: Path) -> Iterator[Path]:
    """Where a name comes from that is imported from a module."""
    inner = _file_of(f"{module}.{name}", root)
    outer = _file_of(module, root)
    if inner is not None:
        yield inner
    elif outer is not None and outer.name == "__init__.py":
        offered = [
            (node.module, alias.name)
            for node in ast.walk(_parsed(outer))
            if isinstance(node, ast.ImportFrom) and node.module
            for alias in node.names
            if name in ("*", alias.asname or alias.name)
        ]
        for one in offered:
            yield from _defining(*one, root)
        if not offered or name == "*":
            yield outer
    elif outer is not None:
        yield outer


def _used(alias: ast.alias, tree: ast.Module, root: Path) -> Iterator[Path]:
    """What ``import module`` leads to: the names that are taken from a package, or a module."""
    file = _file_of(alias.name, root)
    if file is None or file.name != "__init__.py":
        yield from [] if file is None else [file]
        return
    known_as = alias.asname or alias.name
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Attribute)
            and ast.unparse(node.value) == known_as
            and not node.attr.startswith("__")  # such as a version, which does nothing
        ):
            yield from _defining(alias.name, node.attr, root)


def _named(text: str, root: Path) -> Iterator[Path]:
    if _STATEMENT.match(text):
        try:
            statements = ast.parse(text)
        except SyntaxError:
            return
        for node in statements.body:
            yield from _follow(node, statements, root)
    elif re.fullmatch(r"\w+(\.\w+)+", text) and (file := _file_of(text, root)) is not None:
        yield file


@cache
def _what_counts(file: Path) -> str:
    """A module without comments, docstrings and blank lines."""
    text = file.read_text(encoding="utf-8")
    lines = text.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
    for node in ast.walk(_parsed(file)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            _blank_docstrings(node.body, lines)
    return "\n".join(line.rstrip() for line in lines if line.strip())


def _blank_docstrings(body: Sequence[ast.stmt], lines: list[str]) -> None:
    """Strings that stand alone, also those below attributes."""
    for node in body:
        value = node.value if isinstance(node, ast.Expr) else None
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            for row in range(node.lineno - 1, node.end_lineno or node.lineno):
                lines[row] = ""
