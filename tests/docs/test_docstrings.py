"""A function's docstring says what the function does, so it begins with a verb."""

import ast

import pytest

from tests.docs.pages import ROOT

NO_VERBS = {"What", "Whether", "How", "Of", "Who", "Where", "Which", "When", "The", "A", "An"}
PACKAGES = ["mfhpo", *(f"integrations/mfhpo_{host}" for host in ("optuna", "ray", "sklearn"))]


def is_property(function):
    names = [ast.unparse(decorator).split("(")[0] for decorator in function.decorator_list]
    return any(name.endswith(("property", ".setter")) for name in names)


@pytest.mark.parametrize("package", PACKAGES)
def test_docstrings_of_functions_begin_with_a_verb(package):
    wrong = []
    for path in sorted((ROOT / package).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not is_property(node):
                words = (ast.get_docstring(node) or "").split()
                if words and words[0] in NO_VERBS:
                    wrong.append(f"{path.relative_to(ROOT)}:{node.lineno} {node.name}: {words[0]}")
    assert not wrong, "\n".join(wrong)
