"""Formulas as MathML, which browsers draw themselves: no script, no fonts from elsewhere."""

from docutils import nodes
from latex2mathml.converter import convert


def visit_inline(writer, node):
    writer.body.append(convert(node.astext()))
    raise nodes.SkipNode


def visit_block(writer, node):
    writer.body.append(f'<div class="math">{convert(node.astext(), display="block")}</div>')
    raise nodes.SkipNode


def setup(app):
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
