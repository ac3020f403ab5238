"""Sphinx extension: formulas as MathML, which browsers show without any script."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml

# Sizes of delimiters, which stretch by themselves in MathML.
_SIZE = re.compile(r"\\[Bb]igg?[lrm]?(?![A-Za-z])")


def mathml(tex: str, *, block: bool) -> str:
    """Return a formula of LaTeX as MathML."""
    return tex2mathml(_SIZE.sub("", tex).strip(), as_block=block)


def _inline(writer: Any, node: nodes.math) -> None:
    writer.body.append(mathml(node.astext(), block=False))
    raise nodes.SkipNode


def _block(writer: Any, node: nodes.math_block) -> None:
    formula = mathml(node.astext(), block=True)
    writer.body.append(f'<div class="formula">{formula}</div>')
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, Any]:
    """Register with Sphinx."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
