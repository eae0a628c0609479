"""From Python source to graphs.

Where a function passes on its way:

| module | what it does |
|---|---|
| `source` | the text of a Python function, its syntax tree, the place of each piece |
| `syntax`, `type_comments` | what is refused everywhere; types in comments |
| `definitions` | parameters, defaults, body, result: `compile_function` |
| `compiler`, `environment` | the state of compiling one function; its variables |
| `statements`, `augmented`, `loops`, `with_blocks` | what each kind of statement becomes |
| `expressions`, `conditions`, `indexing`, `dictionaries` | what each kind of expression means |
| `sugar`, `simple_value`, `special_forms`, `iteration` | what expressions stand for |
| `names`, `python_values`, `builtins` | what names outside of the function mean |
| `constants`, `annotations` | Python values as constants; annotations as types |
| `calls`, `forking` | calls of other compiled functions |
| `ssa`, `exits` | variables become values; early exits become conditions |
"""

from __future__ import annotations

from flambeau.jit.frontend.definitions import compile_function

__all__ = ["compile_function"]
