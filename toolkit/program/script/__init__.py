"""Facts in the text of a Python program: its imports, how its ranks join, lines that cannot run."""

from toolkit.program.script.facts import Import, ScriptFacts, SyntaxFault
from toolkit.program.script.read import read_module, read_script, read_text

__all__ = ["Import", "ScriptFacts", "SyntaxFault", "read_module", "read_script", "read_text"]
