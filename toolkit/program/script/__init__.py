"""Read facts about a Python program from its text: imports, how ranks connect, and syntax errors."""

from toolkit.program.script.facts import Import, ScriptFacts, SyntaxFault
from toolkit.program.script.read import read_module, read_script, read_text

__all__ = ["Import", "ScriptFacts", "SyntaxFault", "read_module", "read_script", "read_text"]
